"""The recording of a run with `--explain` or `--view`, in memory, and its analysis."""

from __future__ import annotations

import os

from pysmpi.analysis.graph import READING, graph_of
from pysmpi.analysis.interval import compute_error, parts_of, prediction_interval
from pysmpi.analysis.page import write_page
from pysmpi.analysis.path import COMPUTE
from pysmpi.analysis.scene import scene_of
from pysmpi.analysis.steps import steps
from pysmpi.analysis.why import Analysis, analyse
from pysmpi.io.output import OutputFile
from pysmpi.network.errors import network_errors
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
        self.machine = run.machine

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
            self._estimate(analysis, result)
            result.analysis = analysis.report()
            if self.called:
                result.scene = scene_of(self.name, graph)
            if self.page is not None:
                step("page")
                with self.page.writing():
                    write_page(self.page.path, [(self.name, analysis)], energy=result.energy)
                self.page.keep()

    def _estimate(self, analysis: Analysis, result: Result) -> None:
        """Add the interval of the prediction, if the run ended well and took time."""
        if result.exit_status or analysis.graph.seconds <= 0.0 or result.schedule is not None:
            return
        settings, preset = self.machine.settings, result.preset
        hosts = [slot.host for slot in self.machine.slots]
        local = sum(
            piece.seconds
            for piece in analysis.path.pieces
            if 0 <= piece.rank < len(hosts)
            and 0 <= piece.receiver < len(hosts)
            and hosts[piece.rank] is hosts[piece.receiver]
        )
        shared = len(set(hosts)) < len(hosts) and settings.number("memory/bound") == 0.0
        blocks = [one.seconds for one in analysis.path.pieces if one.cause == COMPUTE]
        compute = compute_error(
            result.compute, result.compute_factor, settings.value("compute/error"), shared,
            sum(blocks) / max(1, len(blocks)),
        )  # fmt: skip
        network = network_errors(preset, settings)
        sampling = result.intervals and result.intervals["sampling"]
        around = (0.0, 0.0)
        if sampling:
            low, high = sampling["low_seconds"], sampling["high_seconds"]
            assert low is not None and high is not None
            around = result.seconds - low, high - result.seconds
        analysis.interval = prediction_interval(
            analysis.graph,
            parts_of(compute, network, local / analysis.graph.seconds, preset),
            {
                "compute": analysis.sensitivity["compute"],
                "latency": analysis.sensitivity["latency"],
                "overhead": analysis.sensitivity["overhead"],
                "transfer": analysis.sensitivity["bandwidth"],
            },
            around,
        )
        result.intervals = {"prediction": analysis.interval, "sampling": sampling or None}

    def close(self, error: BaseException | None) -> None:
        """Delete a page that is not complete."""
        self.recorder.close(error)
        if self.page is not None:
            self.page.__exit__(None, None, None)
