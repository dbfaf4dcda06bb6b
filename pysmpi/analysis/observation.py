"""The recording of a run with `--explain` or `--view`, in memory, and its analysis."""

from __future__ import annotations

import os

from pysmpi.analysis.graph import READING, graph_of
from pysmpi.analysis.page import write_page
from pysmpi.analysis.scene import scene_of
from pysmpi.analysis.steps import steps
from pysmpi.analysis.why import analyse
from pysmpi.io.output import OutputFile
from pysmpi.ranks.instruments import Instrument, InstrumentedRun
from pysmpi.reports.result import Result
from pysmpi.trace.model import Recording
from pysmpi.trace.recorder import Recorder


class Observation(Instrument):
    """Records a run, analyses it, and writes the page `view`.

    Raises UsageError before the run if the file cannot be written.
    """

    def __init__(self, view: str | os.PathLike[str] | None) -> None:
        self.view = view
        # An analysis needs events and calls, but not the operations of the calls.
        self.recording = Recording(operations=False)
        self.recorder = Recorder(self.recording)
        self.page: OutputFile | None = None
        self.name = ""  # of the program
        self.called = True  # from Python, where `pysmpi.animate` may follow

    def prepare(self, run: InstrumentedRun) -> None:
        """Open the file of the page."""
        self.name = run.program.name
        self.called = run.command is None
        if self.view is not None:
            self.page = OutputFile("--view", os.fspath(self.view))

    def attach(self, run: InstrumentedRun) -> None:
        """Start to record."""
        self.recorder.attach(run)

    def finish(self, result: Result) -> None:
        """Analyse the run, and write its page."""
        self.recorder.finish(result)
        if not self.recording.places:
            return
        calls = 0 if self.called else len(self.recording.calls)
        with steps(2 + (self.page is not None), calls) as step:
            step(READING[1])
            graph = graph_of(self.recording)
            step(READING[2])
            analysis = analyse(graph)
            result.analysis = analysis.report()
            if self.called:
                result.scene = scene_of(self.name, graph)
            if self.page is not None:
                step("page")
                with self.page.writing():
                    write_page(self.page.path, [(self.name, analysis)], energy=result.energy)
                self.page.keep()

    def close(self, error: BaseException | None) -> None:
        """Delete a page that is not complete."""
        self.recorder.close(error)
        if self.page is not None:
            self.page.__exit__(None, None, None)
