"""The recording of a run with `--explain` or `--view`, in memory, and its analysis."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from pysmpi.analysis.graph import graph_of
from pysmpi.analysis.page import write_page
from pysmpi.analysis.why import Analysis, analyse
from pysmpi.io.output import OutputFile
from pysmpi.job.job import Job
from pysmpi.reports.result import Result
from pysmpi.trace.model import Recording
from pysmpi.trace.recorder import Recorder, attached


class Observation:
    """The recorder of a run, and the page to write from it."""

    def __init__(self, recorder: Recorder, kept: Recording, page: OutputFile | None) -> None:
        self.recorder = recorder
        self.kept = kept
        self.page = page
        self.analysis: Analysis | None = None

    def conclude(self, job: Job, result: Result) -> None:
        """The run is over: analyse it, and write its page."""
        self.recorder.finish()
        if not self.kept.places:
            return
        self.analysis = analyse(graph_of(self.kept))
        result.analysis = self.analysis.report()
        if self.page is not None:
            with self.page.writing():
                write_page(self.page.path, [(job.program.name, self.analysis)])
            self.page.keep()


@contextmanager
def observation(job: Job) -> Iterator[Observation]:
    """Record a job that runs inside the context.

    Raises UsageError before the run if a file cannot be written.
    """
    with ExitStack() as stack:
        page = None
        if job.options.view is not None:
            page = stack.enter_context(OutputFile("--view", os.fspath(job.options.view)))
        # An analysis needs events and calls, but not the operations of the calls.
        kept = Recording(operations=False)
        recorder = stack.enter_context(attached(Recorder(kept), job))
        yield Observation(recorder, kept, page)
