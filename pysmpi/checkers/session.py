"""A session: the checkers of one run, their shared state, and their findings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pysmpi.checkers.clocks import Clocks
from pysmpi.checkers.memory import MemoryWatch
from pysmpi.checkers.pending import PendingOperations
from pysmpi.checkers.registry import Checker, Exemption
from pysmpi.kernel.requests import AbstractProcess, KernelRequest
from pysmpi.mpi.calls import CallKind, MpiCall
from pysmpi.mpi.point_to_point.polling import MOST
from pysmpi.mpi.point_to_point.requests import Request
from pysmpi.python.frames import BOUNDARY, library_site
from pysmpi.ranks.instruments import Instrument, InstrumentedRun
from pysmpi.ranks.outcomes import RankState
from pysmpi.ranks.simulation import Simulation
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


class OpenCall:
    """A call that is under way, and the one in which its process was before."""

    __slots__ = ("paused", "process", "outer", "result", "returned")

    def __init__(self, paused: Any, process: AbstractProcess, outer: MpiCall | None) -> None:
        self.paused = paused  # what the watch of memory has paused
        self.process = process
        self.outer = outer
        self.result: object = None
        self.returned = False


class CheckSession(Instrument, RequestOrigins):
    """The checkers of one run.

    `call_of(request)` is the call that started a request of the kernel, while it is under way.
    `clean` is true if every rank came to the end of its program; then anything that is left is an
    error. `deadlocked` is true if the run ended by a deadlock. `judge` decides about findings that
    may make no difference; without it, doubtful ones are dropped.
    """

    run: InstrumentedRun

    def __init__(
        self,
        checkers: Sequence[Checker],
        judge: Judge | None = None,
        exemptions: Sequence[Exemption] = (),
    ) -> None:
        self.checkers = list(checkers)
        self.judge = judge
        self.exemptions = exemptions
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
        watchers = [one for one in self.checkers if one.needs_pending]
        self.pending = PendingOperations(watchers)
        self.explained: set[MpiCall] = set()
        timed = any(one.needs_clocks for one in self.checkers)
        self.listeners: list[Any] = [
            *([self.clocks] if timed else ()), *([self.pending] if watchers else ()),
            *self.checkers,
        ]  # fmt: skip
        self._open: dict[int, OpenCall] = {}  # by the id of the call

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
            simulation.listen(one)

    def close(self, error: BaseException | None) -> None:
        """Stop checking."""
        for one in self.checkers:
            one.close()
        if self.simulation is not None:
            for one in [self, *self.listeners]:
                self.simulation.universe.ignore(one)

    def finish(self, result: Result) -> None:
        """Add the findings to the result: the report, and the exit status."""
        findings = self._conclusions(result.deadlock is not None)
        if self.judge is not None and any(one.match is not None for one in findings):
            findings = self.judge(self.run, result, findings)
        else:
            findings = [one for one in findings if not one.doubtful]
        result.findings = findings
        if not findings:
            return
        parts = [report(findings)]
        if result.error:
            parts.append(result.error.rstrip("\n"))
        result.error = "\n".join(parts)
        if any(finding.error for finding in findings):
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
        self.findings = [
            one for one in joined(self.findings) if not any(e.holds(one) for e in self.exemptions)
        ]
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
                    prepared = self._prepared.get(id(operation))
                    if prepared is not None:
                        return prepared[1]
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
                self.starts = {
                    one: started_by for one, started_by in self.starts.items() if not one.done
                }
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

    def call_made(self, call: MpiCall) -> None:
        """A call begins."""
        process = call.rank.process
        self._open[id(call)] = OpenCall(self.memory.pause(), process, self._calls.get(process))
        self._calls[process] = call
        name = call.name
        question = call.procedure.kind is CallKind.LOCAL and name.startswith("Get_")
        if not question or name in _LOCATED:
            site = call.site  # while its frame is there
            library = library_site(BOUNDARY)
            if library != site:
                call.library = library

    def call_returned(self, call: MpiCall, result: object) -> None:
        """A call has returned; its request is noted once all checkers have heard of it."""
        self._open[id(call)].result = result
        self._open[id(call)].returned = True

    def call_left(self, call: MpiCall) -> None:
        """A call is over, also by an exception."""
        entry = self._open.pop(id(call))
        if entry.returned:
            if isinstance(entry.result, Request):
                self._note(entry.result, call)
            elif call.name in ("Start", "Startall"):
                self._note_partitioned(call)
        if entry.outer is None:
            self._calls.pop(entry.process, None)
        else:
            self._calls[entry.process] = entry.outer
        if self.memory.tracing:
            self.memory.proceed(call.rank, entry.paused)
