"""A session: the checkers of one run, their shared state, and their findings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pysmpi.checkers.clocks import Clocks
from pysmpi.checkers.memory import MemoryWatch
from pysmpi.checkers.registry import Checker
from pysmpi.kernel.requests import AbstractProcess, KernelRequest
from pysmpi.mpi import calls
from pysmpi.mpi.base.ranks import Rank, current
from pysmpi.mpi.calls import CallKind, MpiCall, Procedure
from pysmpi.mpi.point_to_point.polling import MOST
from pysmpi.mpi.point_to_point.requests import Request
from pysmpi.ranks.instruments import Instrument, InstrumentedRun
from pysmpi.ranks.simulation import RankState, Simulation
from pysmpi.reports.exit_status import MPI_ERROR
from pysmpi.reports.findings import Finding, joined, report
from pysmpi.reports.result import Result
from pysmpi.reports.waiting import ORIGINS, RequestOrigins

# Local questions that return objects.
_LOCATED = frozenset(("Get_group", "Get_remote_group", "Get_info"))


_MOST_POLLS = 20_000  # failed tests in a row that are a livelock: observed calls are slow
_MANY = 10_000  # started requests before those that are complete are dropped


# Judges the findings of a run.
Judge = Callable[[Any, Result, Sequence[Finding]], list[Finding]]


class CheckSession(Instrument, RequestOrigins):
    """The checkers of one run.

    `call_of(request)` is the call that started a request of the kernel, while it is under way.
    `clean` is true if every rank came to the end of its program; then anything that is left is an
    error. `deadlocked` is true if the run ended by a deadlock. `judge` decides about findings that
    may make no difference; without it, doubtful ones are dropped.
    """

    run: InstrumentedRun

    def __init__(self, checkers: Sequence[Checker], judge: Judge | None = None) -> None:
        self.checkers = list(checkers)
        self.judge = judge
        for one in checkers:
            one.session = self
        self.findings: list[Finding] = []
        self.clean = False
        self.deadlocked = False
        self.simulation: Simulation | None = None
        self.starts: dict[KernelRequest, MpiCall] = {}
        self._calls: dict[AbstractProcess, MpiCall] = {}
        self._prepared: dict[int, tuple[object, MpiCall]] = {}  # persistent operations, by id
        self.memory = MemoryWatch()
        self.clocks = Clocks(self)
        timed = any(one.needs_clocks for one in self.checkers)
        self.listeners: list[Any] = [*([self.clocks] if timed else ()), *self.checkers]
        self._made = self._methods("call_made")
        self._returned = self._methods("call_returned")
        self._failed = self._methods("call_failed")
        self._open: set[int] = set()

    def _methods(self, name: str) -> list[Callable[..., object]]:
        return [getattr(one, name) for one in self.listeners if hasattr(one, name)]

    def prepare(self, run: InstrumentedRun) -> None:
        """Let each rank have its own order of sets, as processes do."""
        self.run = run
        run.own_orders = True

    def attach(self, run: InstrumentedRun) -> None:
        """Begin to check."""
        simulation = self.simulation = run.simulation
        if simulation.watch.most == MOST:
            simulation.watch.most = _MOST_POLLS
        ORIGINS.put(simulation.universe, self)
        for one in self.checkers:
            one.begin(simulation)
        for one in self.listeners:
            simulation.universe.listen(one)
        calls.observe(self._observer)

    def close(self, error: BaseException | None) -> None:
        """Stop checking."""
        if self.simulation is not None:
            calls.observe_no_more()
            for one in [self, *self.listeners]:
                self.simulation.universe.ignore(one)

    def finish(self, result: Result) -> None:
        """Add the findings to the result: the report, and the exit status."""
        found = self._conclusions(result.deadlock is not None)
        if self.judge is not None and any(one.match is not None for one in found):
            found = self.judge(self.run, result, found)
        else:
            found = [one for one in found if not one.doubtful]
        result.findings = found
        if not found:
            return
        parts = [report(found)]
        if result.error:
            parts.append(result.error.rstrip("\n"))
        result.error = "\n".join(parts)
        if any(finding.error for finding in found):
            result.exit_status = result.exit_status or MPI_ERROR

    def _conclusions(self, deadlocked: bool) -> list[Finding]:
        """The findings of a run; a problem of several ranks at one line is one finding."""
        simulation = self.simulation
        self.deadlocked = deadlocked
        if simulation is not None:
            outcomes = simulation.outcomes
            self.clean = (
                simulation.universe.aborted is None
                and all(outcome.state is RankState.FINISHED for outcome in outcomes)
                and simulation.hard_exit is None
            )
            for one in self.checkers:
                one.finish(simulation)
        # Ranks that make different collective calls may wait for each other because of that.
        codes = {finding.kind.code for finding in self.findings}
        if "PSM111" in codes:
            self.findings = [one for one in self.findings if one.kind.code != "PSM122"]
        self.findings = joined(self.findings)
        return self.findings

    def report(self, finding: Finding) -> None:
        """Note a problem."""
        self.findings.append(finding)

    def started_by(self, request: KernelRequest) -> MpiCall | None:
        """The call that started a request, if it is under way."""
        return self.starts.get(request)

    def call_on(self, process: AbstractProcess) -> MpiCall | None:
        """The call in which a process is."""
        return self._calls.get(process)

    def prepared_by(self, call: MpiCall, request: KernelRequest | None) -> MpiCall:
        """The call that made a persistent request which `call` starts; for others `call` itself."""
        if call.name in ("Start", "Startall"):
            for operation in call.operations:
                if operation.request is request and request is not None:
                    known = self._prepared.get(id(operation))
                    if known is not None:
                        return known[1]
        return call

    # Events of the kernel.

    def request_started(self, request: KernelRequest, process: AbstractProcess, now: float) -> None:
        """A call starts a request."""
        call = self._calls.get(process)
        if call is not None:
            self.starts[request] = call

    def request_completed(self, request: KernelRequest, now: float) -> None:
        """A request is complete: its start is no longer needed, except for a message."""
        message = getattr(request, "message", None)
        if message is not None or not hasattr(request, "mode"):
            self.starts.pop(request, None)
            if message is not None:
                self.starts.pop(message, None)

    def _note(self, handle: Request, call: MpiCall) -> None:
        """Remember the call that started a non-blocking collective operation."""
        operation = handle._impl
        if operation is not None and call.name.endswith("_init"):
            self._prepared[id(operation)] = operation, call
        request = getattr(operation, "request", None)
        if request is not None and not request.done and hasattr(operation, "contribution"):
            if len(self.starts) > _MANY:
                self.starts = {one: made for one, made in self.starts.items() if not one.done}
            self.starts[request] = call

    def _note_partitioned(self, call: MpiCall) -> None:
        """Remember the call that started a partitioned operation, which waits for its other side.

        Others have started requests of the kernel.
        """
        for operation in call.operations:
            request = operation.request
            if request is not None and hasattr(operation, "partitions") and not request.done:
                self.starts[request] = call

    # Calls.

    def _observer(self, procedure: Procedure, function: Any) -> object:
        made, returned, failed = self._made, self._returned, self._failed
        simulation = self.simulation
        assert simulation is not None
        engine, universe, memory = simulation.engine, simulation.universe, self.memory
        open_calls, by_process = self._open, self._calls
        starts = procedure.name in ("Start", "Startall")
        silent = procedure.kind is CallKind.LOCAL and procedure.name.startswith("Get_")

        def observed(*values: Any, **named: Any) -> object:
            rank = current()
            if rank.universe is not universe or engine.stopped:
                return function(*values, **named)
            call = rank.call
            if call is None or call.procedure is not procedure or id(call) in open_calls:
                return function(*values, **named)
            key, process = id(call), rank.process
            paused = memory.pause()
            open_calls.add(key)
            outer = by_process.get(process)
            by_process[process] = call
            if silent and procedure.name not in _LOCATED:
                pass  # a question whose line is not needed
            else:
                _ = call.site  # while its frame is there
            try:
                _quietly(rank, made, call)
                try:
                    result = function(*values, **named)
                except Exception as error:
                    if not engine.stopped:
                        _quietly(rank, failed, call, error)
                    raise
                if not engine.stopped:
                    _quietly(rank, returned, call, result)
                    if isinstance(result, Request):
                        self._note(result, call)
                    elif starts:
                        self._note_partitioned(call)
                return result
            finally:
                open_calls.discard(key)
                if outer is None:
                    by_process.pop(process, None)
                else:
                    by_process[process] = outer
                if memory.tracing:
                    memory.proceed(rank, paused)

        return observed


def _quietly(rank: Rank, methods: Sequence[Callable[..., object]], *arguments: object) -> None:
    """Tell checkers of a call; their work is no compute of the program."""
    timer = rank.timer
    running = timer is not None and not rank.in_call
    if running:
        rank.process.debt += timer.stop()
    for method in methods:
        method(*arguments)
    if running:
        timer.start()
