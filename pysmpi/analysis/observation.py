"""The record of a run with `--explain`, `--view` or `--trace FILE.npz`, and its analysis."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from pysmpi.analysis.graph import EventGraph
from pysmpi.analysis.page import write_page
from pysmpi.analysis.why import Analysis, analyse
from pysmpi.analysis.wishes import is_record
from pysmpi.output import OutputFile
from pysmpi.runtime.job import Job
from pysmpi.runtime.result import Result
from pysmpi.trace.activity import ActivityRecorder, observing


class Observation:
    """The recorder of a run, and the files to write from it."""

    def __init__(self, recorder: ActivityRecorder, files: dict[str, OutputFile]) -> None:
        self.recorder = recorder
        self.files = files
        self.analysis: Analysis | None = None

    def conclude(self, job: Job, result: Result) -> None:
        """The run is over: analyse it, and write its files."""
        record = self.recorder.finish(result)
        if "--trace" in self.files:
            record.save(self.files["--trace"].path)
            self.files["--trace"].keep()
        if job.options.explain or "--view" in self.files:
            self.analysis = analyse(EventGraph(record))
            result.analysis = self.analysis.report()
        if "--view" in self.files:
            write_page(self.files["--view"].path, [(job.program.name, record, self.analysis)])
            self.files["--view"].keep()


@contextmanager
def observation(job: Job) -> Iterator[Observation]:
    """Record a job that runs inside the context.

    Raises UsageError before the run if a file cannot be written.
    """
    options = job.options
    files: dict[str, OutputFile] = {}
    with ExitStack() as stack:
        if is_record(options):
            assert options.trace is not None
            name = os.fspath(options.trace)
            files["--trace"] = stack.enter_context(OutputFile("--trace", name))
        if options.view is not None:
            files["--view"] = stack.enter_context(OutputFile("--view", os.fspath(options.view)))
        recorder = stack.enter_context(observing(job))
        yield Observation(recorder, files)
