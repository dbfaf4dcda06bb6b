"""The state that the checkers of one run share, and the calls and requests of which they hear.

Every MPI call and every request of a checked run passes through it.
"""

from __future__ import annotations

from collections.abc import Callable

from pysmpi.checkers.awaited import AwaitedOperations
from pysmpi.checkers.clocks import Clocks
from pysmpi.checkers.memory import MemoryWatch
from pysmpi.checkers.pending import PendingOperations
from pysmpi.kernel.requests import AbstractProcess, KernelRequest, Receive, Send
from pysmpi.mpi.base.procedures import CallKind, Procedure
from pysmpi.mpi.base.ranks import MpiCall, Universe
from pysmpi.mpi.point_to_point.requests import Request
from pysmpi.reports.findings import Finding

# Local questions that return objects.
_LOCATED = frozenset(("Get_group", "Get_remote_group", "Get_info"))
_STARTS = frozenset(("Start", "Startall"))
_MANY = 10_000  # started requests before those that are complete are dropped


class CallPlan:
    """The methods of checkers that hear of the calls of a procedure."""

    __slots__ = ("begins", "returns", "failures", "leaves", "located", "starts", "prepares")

    def __init__(self, listeners: list[object], procedure: Procedure) -> None:
        self.begins = _methods(listeners, "call_made", procedure)
        self.returns = _methods(listeners, "call_returned", procedure)
        self.failures = _methods(listeners, "call_failed", procedure)
        self.leaves = _methods(listeners, "call_left", procedure)
        name = procedure.name
        question = procedure.kind is CallKind.LOCAL and name.startswith("Get_")
        self.located = not question or name in _LOCATED
        self.starts = name in _STARTS
        self.prepares = name.endswith("_init")


def _methods(
    listeners: list[object], event: str, procedure: Procedure
) -> list[Callable[..., object]]:
    methods: list[Callable[..., object]] = []
    for listener in listeners:
        method = getattr(listener, event, None)
        if method is not None:
            concerns = getattr(listener, "concerns", None)
            if concerns is None or concerns(event, procedure):
                methods.append(method)
    return methods


class OpenCall:
    """A call that is under way, and the one in which its process was before."""

    __slots__ = ("paused", "process", "outer", "plan", "result", "returned")

    def __init__(
        self, paused: bool, process: AbstractProcess, outer: MpiCall | None, plan: CallPlan
    ) -> None:
        self.paused = paused  # whether the watch of memory was active before
        self.process = process
        self.outer = outer
        self.plan = plan
        self.result: object = None
        self.returned = False


class CheckContext:
    """The state that the checkers of a run share.

    `listeners` hear of each call, those in front first. `starts` has the calls that started
    requests which are under way. `clean` is true if every rank came to the end of its program; then
    anything that is left is an error. `deadlocked` is true if the run ended by a deadlock.
    """

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self.clean: bool = False
        self.deadlocked: bool = False
        self.starts: dict[KernelRequest, MpiCall] = {}
        self.memory: MemoryWatch = MemoryWatch()
        self.calls: dict[AbstractProcess, MpiCall] = {}
        self.operations: AwaitedOperations = AwaitedOperations()
        self.clocks: Clocks = Clocks(self.calls, self.operations)
        self.pending: PendingOperations = PendingOperations()
        self.explained: set[MpiCall] = set()  # whose memory another finding already concerns
        self.listeners: list[object] = []
        self._prepared: dict[int, tuple[object, MpiCall]] = {}  # persistent operations, by id
        self._open: dict[int, OpenCall] = {}  # by the id of the call
        self._plans: dict[Procedure, CallPlan] = {}
        self._contexts: dict[int, bool] = {}  # by number, whether their messages are the program's
        self.universe: Universe

    def report(self, finding: Finding) -> None:
        """Note a problem."""
        self.findings.append(finding)

    def call_on(self, process: AbstractProcess) -> MpiCall | None:
        """The call in which a process is."""
        return self.calls.get(process)

    def prepared_by(self, call: MpiCall, request: KernelRequest | None) -> MpiCall:
        """The call that made a persistent request which `call` starts; for others `call` itself."""
        if request is not None and call.name in _STARTS:
            for operation in call.operations:
                if operation.request is request:
                    prepared = self._prepared.get(id(operation))
                    if prepared is not None:
                        return prepared[1]
        return call

    def of_program(self, request: Send | Receive) -> bool:
        """Whether a message is one of the program's own, and no part of a collective call."""
        context = request.context
        own = self._contexts.get(context.number)
        if own is not None:
            return own
        communicator = self.universe.communicators.get(context.number)
        if communicator is None:
            return False
        own = communicator.kind != "window" and communicator.coll is not context
        self._contexts[context.number] = own
        return own

    def forget(self) -> None:
        """Release what checkers remember: the run is over."""
        self.listeners = []
        self._plans.clear()
        self.starts = {}
        self.calls = {}
        self.operations = AwaitedOperations()
        self.clocks = Clocks(self.calls, self.operations)
        self.pending = PendingOperations()
        self._prepared.clear()

    # Events of the kernel.

    def request_started(self, request: KernelRequest, process: AbstractProcess, now: float) -> None:
        """A call starts a request."""
        call = self.calls.get(process)
        if call is not None:
            self.starts[request] = call

    def request_completed(self, request: KernelRequest, now: float) -> None:
        """A request is complete: its start is no longer needed, except for a message."""
        if isinstance(request, Receive):
            self.starts.pop(request, None)
            message = request.message
            if message is not None:
                self.starts.pop(message, None)
        elif not isinstance(request, Send):
            self.starts.pop(request, None)

    # Calls.

    def call_made(self, call: MpiCall) -> None:
        """A call begins."""
        paused = self.memory.pause()
        process: AbstractProcess = call.rank.process
        plan = self._plans.get(call.procedure)
        if plan is None:
            plan = self._plans[call.procedure] = CallPlan(self.listeners, call.procedure)
        self._open[id(call)] = OpenCall(paused, process, self.calls.get(process), plan)
        if plan.located:
            call.locate()
        for method in plan.begins:
            method(call)
        self.calls[process] = call

    def call_returned(self, call: MpiCall, result: object) -> None:
        """A call has returned; its request is noted once all checkers have heard of it."""
        entry = self._open[id(call)]
        entry.result = result
        entry.returned = True
        for method in entry.plan.returns:
            method(call, result)

    def call_failed(self, call: MpiCall, error: BaseException) -> None:
        """A call has raised an exception."""
        for method in self._open[id(call)].plan.failures:
            method(call, error)

    def call_left(self, call: MpiCall) -> None:
        """A call is over, also by an exception."""
        entry = self._open.pop(id(call))
        for method in entry.plan.leaves:
            method(call)
        if entry.returned:
            if isinstance(entry.result, Request):
                self._note(entry.result, call, entry.plan)
            elif entry.plan.starts:
                self._note_partitioned(call)
        if entry.outer is None:
            self.calls.pop(entry.process, None)
        else:
            self.calls[entry.process] = entry.outer
        if self.memory.tracing:
            self.memory.proceed(call.rank, entry.paused)

    def _note(self, handle: Request, call: MpiCall, plan: CallPlan) -> None:
        """Remember the call that started a non-blocking collective operation."""
        operation = handle._impl
        if operation is not None and plan.prepares:
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
