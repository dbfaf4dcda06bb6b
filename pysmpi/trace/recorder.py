"""The recorder of a run: the operations of its calls, and its events."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any

from pysmpi.io.output import OutputFile
from pysmpi.machine import Machine
from pysmpi.platform.model import Platform
from pysmpi.trace.call_recorder import CallRecorder
from pysmpi.trace.event_recorder import EventRecorder
from pysmpi.trace.events import Format
from pysmpi.trace.formats import find_format, is_packed
from pysmpi.trace.messages import listener_of
from pysmpi.trace.model import MACHINE, NAME, VERSION, Recording
from pysmpi.version import __version__

if TYPE_CHECKING:
    from pysmpi.job.job import Job
    from pysmpi.ranks.simulation import Simulation


class Recorder:
    """Records one simulation in one format; a context manager.

    `start` attaches it to a simulation that has not run yet, `finish` completes the file. Leaving
    the context always detaches it. Events are recorded if the format wants them.
    """

    def __init__(self, format: Format) -> None:
        self.format = format
        self.simulation: Simulation | None = None
        self._calls: CallRecorder | None = None
        self._events: EventRecorder | None = None
        self._sink = listener_of(format)

    def __enter__(self) -> Recorder:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._detach()
        if self._events is not None and error is not None:
            self._events.flush()
        self.format.close()

    def start(self, simulation: Simulation) -> None:
        """Start to listen to a simulation."""
        self.simulation = simulation
        choose = getattr(self.format, "choose", None)
        if choose is not None:
            choose(simulation.universe.selection)
        self._calls = CallRecorder(self.format, simulation)
        simulation.universe.listen(self._calls)
        if self._sink is not None:
            # It asks the recorder of calls, so this one must hear of a call first.
            self._events = EventRecorder(self._sink, self._calls)
            simulation.universe.listen(self._events)

    def describe(self, facts: Mapping[str, object]) -> None:
        """Pass facts of the run on, as plain data."""
        describe = getattr(self.format, "describe", None)
        if describe is not None:
            describe(facts)

    def finish(self) -> None:
        """The simulation is over: complete the file."""
        self._detach()
        simulation = self.simulation
        if simulation is not None:
            assert self._calls is not None
            outcomes = simulation.outcomes
            self._calls.finish()
            if self._events is not None:
                processes = simulation.universe.processes
                self._events.finish(
                    [(process, one.date, one.status) for process, one in zip(processes, outcomes)]
                )
                finish = getattr(self._sink, "finish", None)
                if finish is not None:
                    finish()
            self.format.end([outcome.date for outcome in outcomes])
        self.format.close()

    def _detach(self) -> None:
        if self.simulation is not None:
            for listener in (self._calls, self._events):
                self.simulation.universe.ignore(listener)


def recorder_for(name: str, path: str | None = None, format: str | None = None) -> Recorder:
    """A recorder in a format, or in the one that the suffix of `name` says; it writes to `path`."""
    return Recorder(find_format(name, format).open(path or name, is_packed(name)))


@contextmanager
def recording(
    job: Job, name: str | os.PathLike[str], format: str | None = None
) -> Iterator[Recorder]:
    """Record a job that runs inside the context, in file `name`.

    Raises UsageError before the run if the file cannot be written. A run that ends with an
    exception, such as Ctrl-C, leaves no file, except in a format whose files can be read to any
    line: their lines are written under the final name.
    """
    name = os.fspath(name)
    chosen = find_format(name, format)
    with ExitStack() as stack:
        direct = chosen.streams or chosen.several
        target = stack.enter_context(OutputFile("--trace", name, direct=direct))
        stack.enter_context(target.writing())
        recorder = recorder_for(name, target.path, format)
        stack.enter_context(attached(recorder, job))
        yield recorder
        recorder.finish()
        target.keep()


@contextmanager
def in_memory(job: Job, operations: bool = True) -> Iterator[Recording]:
    """Record a job that runs inside the context, in memory, with or without operations."""
    kept = Recording(operations=operations)
    with attached(Recorder(kept), job) as recorder:
        yield kept
        recorder.finish()


@contextmanager
def attached(recorder: Recorder, job: Job) -> Iterator[Recorder]:
    """Let a recorder listen to a job that runs inside the context."""
    before = job.on_start

    def start(simulation: Simulation) -> None:
        if before is not None:
            before(simulation)
        recorder.describe(_facts(job))
        recorder.start(simulation)

    job.on_start = start
    try:
        with recorder:
            yield recorder
    finally:
        job.on_start = before


def _facts(job: Job) -> dict[str, object]:
    """The facts of a run."""
    options = job.options
    return {
        **facts_of(
            job.machine,
            options.nprocs,
            job.program.name,
            {name: getattr(options, name) for name in MACHINE},
        ),  # fmt: skip
        "compute": str(job.compute),
        "data": options.data,
        "command": job.command,
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
