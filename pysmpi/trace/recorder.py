"""The recorder of a run: the operations of its calls, and its events."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

from pysmpi.io.output import OutputFile
from pysmpi.machine import Machine
from pysmpi.platform.model import Platform
from pysmpi.ranks.instruments import Instrument, InstrumentedRun
from pysmpi.ranks.simulation import Simulation
from pysmpi.trace.call_recorder import CallRecorder
from pysmpi.trace.event_recorder import EventRecorder
from pysmpi.trace.events import Format
from pysmpi.trace.formats import find_format, is_packed
from pysmpi.trace.messages import listener_of
from pysmpi.trace.model import MACHINE, NAME, VERSION
from pysmpi.version import __version__


class Recorder(Instrument):
    """Records a run in one format. Events are recorded if the format wants them."""

    def __init__(self, format: Format) -> None:
        self.format = format
        self.simulation: Simulation | None = None
        self._calls: CallRecorder | None = None
        self._events: EventRecorder | None = None
        self._sink = listener_of(format)

    def attach(self, run: InstrumentedRun) -> None:
        """Start to listen to a simulation."""
        describe = getattr(self.format, "describe", None)
        if describe is not None:
            describe(_facts(run))
        simulation = self.simulation = run.simulation
        choose = getattr(self.format, "choose", None)
        if choose is not None:
            choose(simulation.universe.selection)
        self._calls = CallRecorder(self.format, simulation)
        simulation.universe.listen(self._calls)
        if self._sink is not None:
            # It asks the recorder of calls, so this one must hear of a call first.
            self._events = EventRecorder(self._sink, self._calls)
            simulation.universe.listen(self._events)

    def finish(self, result: object) -> None:
        """Complete the file."""
        self._detach()
        simulation = self.simulation
        if simulation is not None:
            assert self._calls is not None
            outcomes = simulation.outcomes
            self._calls.finish()
            if self._events is not None:
                processes = simulation.universe.processes
                self._events.finish(
                    [(process, one.time, one.status) for process, one in zip(processes, outcomes)]
                )
                finish = getattr(self._sink, "finish", None)
                if finish is not None:
                    finish()
            self.format.end([outcome.time for outcome in outcomes])
        self.format.close()

    def close(self, error: BaseException | None) -> None:
        """Close the file."""
        self._detach()
        if self._events is not None and error is not None:
            self._events.flush()
        self.format.close()

    def _detach(self) -> None:
        if self.simulation is not None:
            for listener in (self._calls, self._events):
                self.simulation.universe.ignore(listener)


def recorder_for(name: str, path: str | None = None, format: str | None = None) -> Recorder:
    """A recorder in a format, or in the one that the suffix of `name` says; it writes to `path`."""
    return Recorder(find_format(name, format).open(path or name, is_packed(name)))


class TraceFile(Instrument):
    """Records a run in file `name`.

    Raises UsageError before the run if the file cannot be written. A run that ends with an
    exception, such as Ctrl-C, leaves no file, except in a format whose files can be read to any
    line: their lines are written under the final name.
    """

    def __init__(self, name: str | os.PathLike[str], format: str | None = None) -> None:
        self.name = os.fspath(name)
        self.format = format

    def prepare(self, run: InstrumentedRun) -> None:
        """Open the file."""
        kind = find_format(self.name, self.format)
        with ExitStack() as stack:
            direct = kind.streams or kind.several
            self._file = stack.enter_context(OutputFile("--trace", self.name, direct=direct))
            stack.enter_context(self._file.writing())
            self._recorder = recorder_for(self.name, self._file.path, self.format)
            stack.push(lambda kind, error, trace: self._recorder.close(error))
            self._open = stack.pop_all()

    def attach(self, run: InstrumentedRun) -> None:
        """Start to record."""
        self._recorder.attach(run)

    def finish(self, result: object) -> None:
        """Complete the file."""
        self._recorder.finish(result)
        self._file.keep()

    def close(self, error: BaseException | None) -> None:
        """Delete a file that is not complete."""
        kind = None if error is None else type(error)
        self._open.__exit__(kind, error, None if error is None else error.__traceback__)


def _facts(run: InstrumentedRun) -> dict[str, object]:
    """The facts of a run."""
    options = run.options
    return {
        **facts_of(
            run.machine,
            options.nprocs,
            run.program.name,
            {name: getattr(options, name) for name in MACHINE},
        ),
        "compute": str(run.compute),
        "data": options.data,
        "command": run.command,
    }


def facts_of(
    machine: Machine, nprocs: int, program: str, options: Mapping[str, Any]
) -> dict[str, object]:
    """The facts that a replay of a recording on the same machine needs."""
    given: dict[str, Any] = {}
    for name in MACHINE:
        value = options.get(name)
        if isinstance(value, Platform):
            value = value.name
        elif isinstance(value, (str, os.PathLike)):
            value = os.fspath(value)
            if name != "model" and os.path.exists(value):
                value = os.path.abspath(value)
        elif value is not None:
            value = dict(value)
        if value:
            given[name] = value
    return {
        "format": NAME,
        "version": VERSION,
        "pysmpi": __version__,
        "program": program,
        "nprocs": nprocs,
        "platform": machine.platform.name,
        "model": machine.model.name,
        "preset": machine.preset(),
        "selector": machine.selection.selector,
        "machine": given,
    }
