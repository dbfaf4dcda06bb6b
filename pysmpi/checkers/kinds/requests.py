"""Requests that are never completed, never started, or never freed."""

from __future__ import annotations

import pickle
from collections.abc import Sequence

from pysmpi import text
from pysmpi.checkers.base import Checker
from pysmpi.checkers.describing import call_text
from pysmpi.checkers.problems.requests import Incomplete, ObjectLost, Unstarted
from pysmpi.checkers.registry import checker
from pysmpi.mpi.calls import MpiCall, Procedure, Role
from pysmpi.mpi.collective.background import CollectiveOperation
from pysmpi.mpi.point_to_point.envelopes import ObjectBuffer
from pysmpi.mpi.point_to_point.operations import (
    NoOperation,
    PairOperation,
    ReceiveOperation,
    RequestOperation,
    SendOperation,
)
from pysmpi.mpi.point_to_point.partitioned import PartitionedSend
from pysmpi.mpi.point_to_point.requests import Request
from pysmpi.mpi.rma.calls import AccessOperation
from pysmpi.python.frames import CallSite
from pysmpi.ranks.outcomes import RankState
from pysmpi.ranks.simulation import Simulation
from pysmpi.reports.findings import Finding, Place

_RECEIVE = (
    "3.9: an active receive is not freed, as nothing shows afterwards that the message is there"
)
_COLLECTIVE = "6.12: the request of a non-blocking collective call is not freed"
_ACCESS = "12.3.5: the request of a one-sided call is not freed"
_NONE = pickle.dumps(None, pickle.HIGHEST_PROTOCOL)
_COMPLETING = frozenset("Wait Waitall Waitany Waitsome Test Testall Testany Testsome".split())


class Tracked:
    """A request of a rank: its handle, its operation, the call that made it, and its starts."""

    __slots__ = ("handle", "operation", "call", "started", "persistent", "verified",
                 "awaited")  # fmt: skip

    def __init__(self, handle: Request, operation: RequestOperation, call: MpiCall) -> None:
        self.handle = handle
        self.operation = operation
        self.call = call
        self.persistent = operation.persistent
        self.started: MpiCall | None = None if self.persistent else call
        self.verified = False  # a call has said that it is complete, and has left the request
        self.awaited = False  # a call has waited for it


class RequestChecks(Checker):
    """Follows the requests of every rank from their start to their completion."""

    def __init__(self) -> None:
        self.tracked: dict[int, Tracked] = {}  # by id of the operation
        self.operations: dict[int, list[RequestOperation]] = {}  # by id of the call
        self.active: set[int] = set()  # persistent operations that are freed while they run

    def concerns(self, event: str, procedure: Procedure) -> bool:
        """Calls with requests, and results of all."""
        return event == "call_returned" or Role.REQUEST in procedure.places

    def call_made(self, call: MpiCall) -> None:
        """Note the operations that the call may complete or start."""
        operations = _operations(call)
        if operations:
            self.operations[id(call)] = operations
            if call.name in ("Free", "free"):
                for operation in operations:
                    if operation.persistent and operation.request is not None:
                        self.active.add(id(operation))
            if call.name in ("Start", "Startall"):
                for operation in operations:
                    tracked = self.tracked.get(id(operation))
                    if tracked is not None:
                        tracked.started = call

    def call_returned(self, call: MpiCall, result: object) -> None:
        """Note new requests, and forget those that are complete."""
        operations = self.operations.pop(id(call), None)
        if operations is not None and call.name in _COMPLETING:
            for operation in operations:
                self._look_for_object(call, operation)
        if operations is None and call.handles:
            operations = [tracked.operation for tracked in self._of_handles(call.handles)]
        for operation in operations or ():
            tracked = self.tracked.get(id(operation))
            if tracked is not None and tracked.operation is operation:
                freed = call.name in ("Free", "free")
                if call.name in ("Get_status", "get_status") and result:
                    tracked.verified = True
                if call.name in _COMPLETING:
                    tracked.awaited = True
                if freed or (not tracked.persistent and _over(tracked, call, result)):
                    if freed and tracked.awaited and tracked.started is None:
                        self._never_started(tracked)
                    if freed:
                        self._look_at_freed(tracked, call)
                    del self.tracked[id(operation)]
        if isinstance(result, Request):
            self._track(call, result)
        elif isinstance(result, tuple):
            for handle in result:
                if isinstance(handle, Request):
                    self._track(call, handle)

    def _track(self, call: MpiCall, handle: Request) -> None:
        operation = handle._impl
        if isinstance(operation, RequestOperation):
            if not call.values or handle is not call.values[0]:
                self.tracked[id(operation)] = Tracked(handle, operation, call)

    def _look_at_freed(self, tracked: Tracked, call: MpiCall) -> None:
        """Report a freed request that MPI does not let a program free."""
        operation, pids = tracked.operation, [call.rank.pid]
        active = id(operation) in self.active
        self.active.discard(id(operation))
        if isinstance(operation, SendOperation | NoOperation | PairOperation) or tracked.verified:
            return
        if isinstance(operation, ReceiveOperation):
            if tracked.persistent and active and not operation.cancelled:
                self.session.report(_freed(tracked, call, _RECEIVE))
        elif isinstance(operation, CollectiveOperation) and not tracked.persistent:
            self.session.report(_freed(tracked, call, _COLLECTIVE))
        elif isinstance(operation, AccessOperation):
            self.session.report(_freed(tracked, call, _ACCESS))
        elif active:
            self.session.report(_unready(tracked, pids) or _incomplete(tracked, pids))

    def _look_for_object(self, call: MpiCall, operation: RequestOperation) -> None:
        if not isinstance(operation, ReceiveOperation) or operation.unpickle is None:
            return
        tracked = self.tracked.get(id(operation))
        request = operation.request
        if tracked is None or tracked.handle._impl is not None or request is None:
            return
        data = request.payload.data if isinstance(request.payload, ObjectBuffer) else None
        if data is None or bytes(data[:8]) == _NONE or operation.cancelled:
            return
        receive = tracked.call
        self.session.report(
            Finding(
                ObjectLost,
                f"{call.name} completes {receive.name}, and the received object is lost",
                [*_rows(call, [call.rank.pid]), *_rows(receive, [call.rank.pid], "made here")],
                "mpi4py: only lower-case calls return the objects of lower-case receives",
                f"call {call.name.lower()}, which returns the object",
            )
        )

    def call_failed(self, call: MpiCall, error: BaseException) -> None:
        """A request whose completion failed is complete."""
        for operation in self.operations.pop(id(call), ()):
            tracked = self.tracked.get(id(operation))
            if tracked is not None and tracked.handle._impl is None:
                del self.tracked[id(operation)]

    def _of_handles(self, handles: Sequence[object]) -> list[Tracked]:
        wanted = {id(handle) for handle in handles}
        return [tracked for tracked in self.tracked.values() if id(tracked.handle) in wanted]

    def _never_started(self, tracked: Tracked) -> None:
        self.session.report(_unstarted(tracked.call, [tracked.call.rank.pid]))

    def finish(self, simulation: Simulation) -> None:
        """Report the requests that are left."""
        outcomes = simulation.outcomes
        waiting = [one for operations in self.operations.values() for one in operations]
        groups: dict[object, tuple[Tracked, list[int]]] = {}
        for tracked in self.tracked.values():
            pid = tracked.call.rank.pid
            if not self.session.clean or outcomes[pid].state is not RankState.FINISHED:
                last = outcomes[pid].state is RankState.FINISHED or tracked.operation in waiting
                unready = _unready(tracked, [pid]) if self.session.deadlocked and last else None
                if unready is not None:
                    self.session.report(unready)
                continue
            if not tracked.persistent and tracked.handle._impl is None:
                continue
            active = tracked.started is not None and tracked.operation.request is not None
            start = tracked.started or tracked.call
            unstarted = tracked.started is None
            key = tracked.call.site, start.site, start.library, active, unstarted
            groups.setdefault(key, (tracked, []))[1].append(pid)
        for tracked, pids in groups.values():
            if tracked.started is None:
                self.session.report(_unstarted(tracked.call, pids))
            elif tracked.persistent and tracked.operation.request is None:
                self.session.report(_unfreed(tracked.call, pids))
            else:
                self.session.report(_unready(tracked, pids) or _incomplete(tracked, pids))


def _operations(call: MpiCall) -> list[RequestOperation]:
    operations: list[RequestOperation] = []
    values = call.values
    for i, _ in call.procedure.places.get(Role.REQUEST, ()):
        value = values[i] if i < len(values) else None
        for item in value if isinstance(value, (list, tuple)) else (value,):
            operation = getattr(item, "_impl", None)
            if isinstance(operation, RequestOperation):
                operations.append(operation)
    return operations


_ALWAYS = frozenset(("Wait", "wait", "Waitall", "waitall"))


def _over(tracked: Tracked, call: MpiCall, result: object) -> bool:
    """Whether a call that has returned completed an operation."""
    if tracked.handle._impl is None or call.name in _ALWAYS:
        return True
    if call.name in ("Test", "test", "Testall", "testall"):
        done = result[0] if isinstance(result, tuple) else result
        return bool(done)
    return False


def _rows(call: MpiCall, pids: list[int], note: str = "") -> list[Place]:
    return [Place(sorted(set(pids)), call_text(call), _site(call), note, call.library)]


def _site(call: MpiCall) -> CallSite | None:
    site: CallSite | None = call.site
    return site


def _incomplete(tracked: Tracked, pids: list[int]) -> Finding:
    call = tracked.started or tracked.call
    places = _rows(call, pids, "started here")
    if call is not tracked.call:
        places += _rows(tracked.call, pids, "made here")
    name = tracked.call.name
    count = f" ({len(pids):,} times)" if len(pids) > len(set(pids)) else ""
    return Finding(
        Incomplete,
        f"no Wait or Test completes the request of {name}{count}",
        places,
        "MPI 4.1, sections 3.7.3 and 11.2.2: a program completes every operation that it has "
        "started before it finalizes MPI",
        "keep the request, and call Wait (or MPI.Request.Waitall) on it",
    )


def _freed(tracked: Tracked, call: MpiCall, rule: str) -> Finding:
    pids = [call.rank.pid]
    return Finding(
        Incomplete,
        f"Free drops the request of {tracked.call.name}, which no Wait or Test has completed",
        [*_rows(call, pids), *_rows(tracked.started or tracked.call, pids, "started here")],
        f"MPI 4.1, section {rule}",
        "call Wait on the request in place of Free, or before it",
    )


def _unstarted(call: MpiCall, pids: list[int]) -> Finding:
    return Finding(
        Unstarted,
        f"the request of {call.name} is never started",
        _rows(call, pids, "made here"),
        "MPI 4.1, section 3.9: a persistent request is inactive until Start, and communicates "
        "nothing",
        "call Start() on the request before each Wait()",
    )


def _unready(tracked: Tracked, pids: list[int]) -> Finding | None:
    """A partitioned send that waits for its partitions; None for other requests."""
    operation, start = tracked.operation, tracked.started
    if start is None or not isinstance(operation, PartitionedSend) or operation.request is None:
        return None
    missing = sorted(set(range(operation.partitions)) - operation.marked)
    if not missing:
        return None
    noun = "partition" if len(missing) == 1 else "partitions"
    verb = "is" if len(missing) == 1 else "are"
    return Finding(
        Unstarted,
        f"{noun} {text.ranges(missing)} of {tracked.call.name} {verb} never ready",
        [*_rows(start, pids, "started here"), *_rows(tracked.call, pids, "made here")],
        "MPI 4.1, section 4.2.1: a partitioned send is complete only after Pready of every "
        "partition",
        "call Pready for each partition after each Start()",
    )


def _unfreed(call: MpiCall, pids: list[int]) -> Finding:
    return Finding(
        Unstarted,
        f"the persistent request of {call.name} is not freed before MPI.Finalize",
        _rows(call, pids, "made here"),
        "MPI 4.1, section 3.9: a persistent request lives until it is freed",
        "call Free() on the request after its last Wait()",
    )


checker("requests", "requests that are never completed, started or freed")(RequestChecks)
