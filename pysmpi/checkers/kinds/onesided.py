"""One-sided communication: its epochs, and accesses that conflict."""

from __future__ import annotations

from typing import Any

from pysmpi import text
from pysmpi.checkers.describing import op_name, place
from pysmpi.checkers.memory import WatchedRegion, overlap
from pysmpi.checkers.memory_of_calls import (
    memory_of_arguments,
    memory_of_contribution,
    memory_of_operation,
    receives,
)
from pysmpi.checkers.registry import Checker, checker
from pysmpi.checkers.window_uses import (
    COMMUNICATE,
    GETS,
    PUTS,
    LocalBuffers,
    SideState,
    WindowUse,
    access_memory,
    conflict,
)
from pysmpi.diagnostics import Diagnostic, register
from pysmpi.mpi.base.constants import (
    ERR_RMA_SYNC,
    MODE_NOPRECEDE,
    MODE_NOSUCCEED,
    PROC_NULL,
    WIN_FLAVOR_SHARED,
)
from pysmpi.mpi.base.exceptions import Exception as MPIException
from pysmpi.mpi.base.ranks import Rank
from pysmpi.mpi.calls import CallKind, MpiCall
from pysmpi.mpi.collective.contribution import Contribution
from pysmpi.mpi.point_to_point.operations import RequestOperation
from pysmpi.mpi.point_to_point.requests import Request
from pysmpi.mpi.rma.window import WindowSide
from pysmpi.mpi.rma.windows import Win
from pysmpi.python.frames import CallSite
from pysmpi.ranks.simulation import Simulation
from pysmpi.reports.findings import Finding, Place


@register
class EpochError(Diagnostic):
    """The calls that open and close the epochs of a window are in a wrong order.

    A `Put`, `Get` or `Accumulate` needs an epoch: between two fences, between `Start` and
    `Complete`, or between `Lock` and `Unlock`. Epochs of one process at a window do not overlap,
    and each is closed before the window is freed.

    ## Why it is bad

    Without an epoch, or before its end, the data may arrive at any time or never.

    ## Example

    ```python
    window.Fence()
    window.Put(data, 1)
    window.Free()  # no Fence closes the epoch: the data may not be there
    ```

    ## What to do

    Close each epoch by the call that belongs to it, before the next one begins: `Fence` by `Fence`,
    `Lock` by `Unlock`, `Start` by `Complete`, `Post` by `Wait`. Give the last fence before other
    kinds of epochs the assertion `MPI.MODE_NOSUCCEED`.

    ## References

    MPI 4.1, section 12.5 (synchronization calls).
    """

    code = "PSM123"
    title = "wrong epoch of a window"


@register
class AccessesConflict(Diagnostic):
    """Two accesses to the same memory of a window can happen in any order, and one of them writes.

    The report has the lines of both accesses and the bytes that they share. An access may be a
    `Put`, `Get` or `Accumulate`, another MPI call whose buffer lies in the window, or a line of the
    program that uses the memory of the window directly. Accumulate operations with the same
    operator do not conflict. Also a buffer that the program, or another MPI call, uses before a
    `Put` or `Get` that owns it is complete.

    ## Why it is bad

    The result depends on the order, which MPI leaves open.

    ## Example

    ```python
    window.Fence()
    window.Put(data, 0)  # every rank writes to the same place of rank 0
    window.Fence()
    ```

    ## What to do

    Separate the accesses by synchronization (a fence, `Unlock` before `Lock`, `Flush` and a
    message), use different places of the window, or use `Accumulate` with one operator.

    ## References

    MPI 4.1, sections 12.7 (semantics and correctness) and 12.3 (communication calls).
    """

    code = "PSM124"
    title = "conflicting accesses to a window"


_COMPLETES = frozenset(("Fence", "Unlock", "Unlock_all", "Flush", "Flush_all", "Complete"))
_OPENS = frozenset(("Lock", "Lock_all", "Start"))
_CLOSES = {
    "Lock": "Unlock",
    "Lock_all": "Unlock_all",
    "Start": "Complete",
    "Post": "Wait",
    "Fence": "Fence",
}
_RULE = "MPI 4.1, section 12.5: "
_MANY = 64  # accesses of a window at one process before those that are over are dropped


@checker("onesided", "epochs of windows, and conflicting accesses to their memory")
class OneSidedChecks(Checker):
    """Follows the epochs of every process at every window, and compares its accesses."""

    needs_clocks = True

    def __init__(self) -> None:
        self.sides: dict[tuple[int, int], SideState] = {}  # by window, pid
        self.accesses: dict[tuple[int, int], list[WindowUse]] = {}  # by window, pid of the target
        self.windows: dict[int, MpiCall] = {}
        self.failures: list[tuple[BaseException, Finding]] = []
        self.reported: set[object] = set()
        self.number = 0
        self.memories: dict[int, dict[int, WatchedRegion]] = {}  # by pid, by window
        # Uses by operations that are not complete, with the handles of these, by pid.
        self.open: dict[int, list[tuple[Request, WindowUse]]] = {}
        self.written: dict[int, list[WatchedRegion]] = {}  # at the end of a call, by its id

    def _state(self, side: WindowSide) -> SideState:
        key = side.window.communicator.p2p.number, side.rank.pid
        state = self.sides.get(key)
        if state is None:
            state = self.sides[key] = SideState()
        return state

    # Calls.

    def call_made(self, call: MpiCall) -> None:
        """Compare an access with the others; follow the epochs."""
        side = _side(call)
        if side is None:
            if call.kind in (CallKind.POINT_TO_POINT, CallKind.FILE) and self._follows(call):
                self._arguments(call)
            return
        name = call.name
        if name == "Free":
            number = side.window.communicator.p2p.number
            if self.memories.get(call.rank.pid, {}).pop(number, None) is not None:
                self.session.memory.forget(call.rank, (self, "window", number))
        elif name in COMMUNICATE:
            self._access(call, side)
        elif name in _COMPLETES:
            # Before the call returns, other ranks may already go on.
            if name == "Fence":
                self._fence(call, side)
            target = call.arguments["rank"] if name in ("Unlock", "Flush") else None
            self._complete(call, side, self._state(side), target)

    def call_returned(self, call: MpiCall, result: object) -> None:
        """Complete accesses; watch the memory of new windows."""
        if (
            isinstance(result, Win)
            and result._impl is not None
            and call.kind is not (CallKind.LOCAL)
        ):
            self._watch(call, result._impl)
            return
        side = _side(call)
        name = call.name
        self._end_others(call, result)
        if side is None:
            if name in ("Wait", "wait", "Waitall", "waitall") and self.sides:
                self._complete_locally(call)
            return
        state = self._state(side)
        match name:
            case "Fence" | "Unlock_all" | "Flush_all" | "Complete" | "Flush_local_all":
                self._release_buffers(call.rank, state, None)
            case "Unlock" | "Flush" | "Flush_local":
                self._release_buffers(call.rank, state, call.arguments["rank"])
        if name in _OPENS or name == "Post":
            state.opened[name, call.arguments.get("rank", -1)] = call
            if name != "Post" and state.fence is not None:
                if state.inner is None:
                    state.inner = call
                if not state.fenced_before and state.used is None:
                    self._inside_fence(state, call)
        for opener, closer in _CLOSES.items():
            if name == closer and opener != "Fence":
                state.opened.pop((opener, call.arguments.get("rank", -1)), None)
        if name == "Test" and result:
            state.opened.pop(("Post", -1), None)

    def call_failed(self, call: MpiCall, error: BaseException) -> None:
        """An error of synchronization: name the line of the epoch that is open."""
        self.written.pop(id(call), None)
        side = _side(call)
        if side is None or not isinstance(error, MPIException):
            return
        if error.Get_error_class() != ERR_RMA_SYNC:
            return
        state = self._state(side)
        places = [place(call, "not allowed here")]
        last = [*state.opened.values(), *([state.fence] if state.fence is not None else [])]
        if last:
            places.append(place(last[0], "the epoch that is open"))
            if state.used is not None and last[0] is state.fence:
                places.append(place(state.used, "its first access"))
        detail = str(error).partition(": ")[2] or str(error)
        self.failures.append(
            (error, Finding(
                EpochError, f"{call.name}: {detail}", places,
                _RULE + "an access needs an epoch, and the epochs of a process at a window do not "
                "overlap",
                "open the epoch before, and close each by the call that belongs to it",
            ))
        )  # fmt: skip

    # Epochs.

    def _fence(self, call: MpiCall, side: WindowSide) -> None:
        state = self._state(side)
        assertion = call.arguments.get("assertion", 0)
        modes = int(assertion) if isinstance(assertion, int) else 0
        if state.inner is not None and state.fence is not None and not modes & MODE_NOPRECEDE:
            self._inside_fence(state, state.inner)
        state.fenced_before = state.used is not None
        state.fence = None if modes & MODE_NOSUCCEED else call
        state.used = state.inner = None

    def _inside_fence(self, state: SideState, call: MpiCall) -> None:
        fence = state.fence
        if fence is None or ("fence", fence.site, call.site) in self.reported:
            return
        self.reported.add(("fence", fence.site, call.site))
        self.session.report(
            Finding(
                EpochError,
                f"{call.name} inside of the epoch that a Fence has opened",
                [place(call, "opens an epoch"), place(fence, "the epoch that is open")],
                _RULE + "the epochs of a process at a window do not overlap",
                "close the fence epoch by a Fence with MPI.MODE_NOSUCCEED before, or use one kind "
                "of epoch",
            )
        )

    def _unclosed(self, state: SideState) -> None:
        for (name, _), call in state.opened.items():
            self.session.report(
                Finding(
                    EpochError,
                    f"no {_CLOSES[name]} closes the epoch that {name} has opened",
                    [place(call, "opens the epoch")],
                    _RULE + "an access is complete at the end of its epoch",
                    f"call {_CLOSES[name]} before the window is freed",
                )
            )
        if state.used is not None and state.fence is not None:
            self.session.report(
                Finding(
                    EpochError,
                    f"no Fence follows {state.used.name}: its epoch is never closed",
                    [place(state.used, "not completed"), place(state.fence, "opens the epoch")],
                    "MPI 4.1, section 12.5.1: an access between fences is complete after the "
                    "second one",
                    "call Fence in all ranks of the window after the access",
                )
            )

    # Accesses.

    def _access(self, call: MpiCall, side: WindowSide) -> None:
        state = self._state(side)
        arguments = call.arguments
        try:
            target = int(arguments["target_rank"])
            if target == PROC_NULL:
                return
            other = side.window.sides[target]
            pieces, reads, writes = access_memory(call, other)
        except Exception:  # the call itself will refuse the arguments
            return
        passive = side.passive(target)
        if not passive and side.started is None and state.used is None and side.fenced:
            state.used = call
        name = call.name
        kind = "write" if name in PUTS else "read" if name in GETS else "update"
        op = ""
        if kind == "update":
            op = "swap" if name == "Compare_and_swap" else op_name(arguments["op"])
            if op == "NO_OP":
                kind = "update"
        pid = call.rank.pid
        clocks = self.session.clocks
        access = WindowUse(
            pid, call, call.site, kind, pieces, clocks.stamp(pid), other.rank.pid, op
        )  # fmt: skip
        access.toward = other.rank.pid
        self._enter(side.window.communicator.p2p.number, access)
        state.pending.append(access)
        for owned in state.buffers:
            if owned.meets(reads, writes):
                self._buffer_reused(call, owned.call)
                break
        # The local buffers may lie in a window that others reach.
        for kind, memory in (("read", reads), ("write", writes)):
            for window, used in self._in_windows(call, kind, memory):
                used.toward = access.toward
                self._enter(window, used)
                state.pending.append(used)
        self.number += 1
        key = self.number
        state.buffers.append(LocalBuffers(call, target, key, reads, writes))
        rank = call.rank

        def touched(rank: Rank, writing: bool, memory: WatchedRegion, site: CallSite) -> None:
            if writing or overlap([memory], writes):
                self._touched(call, writing, site)

        self.session.memory.watch(rank, (self, key), [*reads, *writes], touched)

    def _buffer_reused(self, call: MpiCall, owner: MpiCall) -> None:
        key = ("reused", owner.site, call.site)
        if key in self.reported:
            return
        self.reported.add(key)
        self.session.report(
            Finding(
                AccessesConflict,
                f"{call.name} uses the local buffer of {owner.name}, which is not complete",
                [place(call, "uses the buffer"), place(owner, "owns the buffer")],
                "MPI 4.1, section 12.3: the buffers of an access belong to MPI until it is "
                "complete",
                "use another buffer, or complete the access before (Flush, Unlock, Fence)",
            )
        )

    # Other calls.

    def _follows(self, call: MpiCall) -> bool:
        """Whether the rank has windows, or buffers that one-sided calls own."""
        return call.rank.pid in self.memories

    def _arguments(self, call: MpiCall) -> None:
        """The buffers of a call that is complete when it returns."""
        if call.name[0].islower() or call.name[0] == "I" or call.name.endswith("_init"):
            return
        reads: list[WatchedRegion] = []
        writes: list[WatchedRegion] = []
        for name, memory in memory_of_arguments(call).items():
            (writes if receives(call, name) else reads).extend(memory)
        self._use(call, reads, writes)

    def collective_entered(self, contribution: Contribution, rank: Rank) -> None:
        """The buffers of a collective call that is complete when it returns."""
        call = self.session.call_on(rank.process)
        if call is None or not self._follows(call) or call.kind is not CallKind.COLLECTIVE:
            return
        if not call.name[0].islower() and call.name[0] != "I" and "tart" not in call.name:
            self._use(call, *memory_of_contribution(contribution))

    def _use(self, call: MpiCall, reads: list[WatchedRegion], writes: list[WatchedRegion]) -> None:
        """A call reads its memory from now on, and has written to it when it returns."""
        self._meet(call, reads, writes)
        for window, used in self._in_windows(call, "read", reads):
            used.done = used.clock.count + 1
            self._enter(window, used)
        if writes:
            self.written[id(call)] = writes

    def _meet(self, call: MpiCall, reads: list[WatchedRegion], writes: list[WatchedRegion]) -> None:
        """Compare memory with the buffers of one-sided calls of the same rank."""
        pid = call.rank.pid
        for (_, member), state in self.sides.items():
            for owned in state.buffers if member == pid else ():
                if owned.meets(reads, writes):
                    self._buffer_reused(call, owned.call)
                    return

    def _in_windows(
        self, call: MpiCall, kind: str, memory: list[WatchedRegion]
    ) -> list[tuple[int, WindowUse]]:
        """The uses of the rank's own windows by some memory of a call."""
        pid = call.rank.pid
        uses = []
        for window, whole in self.memories.get(pid, {}).items():
            if overlap(memory, [whole]):
                stamp = self.session.clocks.stamp(pid)
                uses.append((window, WindowUse(pid, call, call.site, kind, memory, stamp, pid)))
        return uses

    def _end_others(self, call: MpiCall, result: object) -> None:
        """A call has returned: what it has written; operations that it has begun or completed."""
        pid = call.rank.pid
        for window, used in self._in_windows(call, "write", self.written.pop(id(call), [])):
            used.done = used.clock.count + 1
            self._enter(window, used)
        if pid not in self.memories:
            return
        count = self.session.clocks.now(pid).count
        still_open = []
        for handle, used in self.open.pop(pid, ()):
            operation: Any = handle._impl
            if operation is None or (operation.persistent and operation.request is None):
                used.done = count
            else:
                still_open.append((handle, used))
        if still_open:
            self.open[pid] = still_open
        if call.name in ("Start", "Startall"):
            first = call.values[0]
            for handle in first if isinstance(first, list | tuple) else (first,):
                self._begin(call, handle)
        for handle in result if isinstance(result, tuple) else (result,):
            if isinstance(handle, Request) and not any(handle is one for one in call.values[:1]):
                self._begin(call, handle)

    def _begin(self, call: MpiCall, handle: object) -> None:
        """A non-blocking operation has begun."""
        operation = handle._impl if isinstance(handle, Request) else None
        if not isinstance(operation, RequestOperation) or operation.request is None:
            return
        reads, writes = memory_of_operation(operation, handle)
        self._meet(call, reads, writes)
        for kind, memory in (("read", reads), ("write", writes)):
            for window, used in self._in_windows(call, kind, memory):
                self._enter(window, used)
                assert isinstance(handle, Request)
                self.open.setdefault(call.rank.pid, []).append((handle, used))

    def _touched(self, call: MpiCall, writing: bool, site: CallSite) -> None:
        key = ("buffer", call.site, site)
        if key in self.reported:
            return
        self.reported.add(key)
        pid = call.rank.pid
        self.session.report(
            Finding(
                AccessesConflict,
                f"the local buffer of {call.name} is {'written' if writing else 'read'} before "
                "the access is complete",
                [
                    Place(
                        [pid],
                        f"the program {'writes' if writing else 'reads'}",
                        site,
                        "touches the buffer",
                    ),
                    place(call, "owns the buffer"),
                ],
                "MPI 4.1, section 12.3: the buffers of an access belong to MPI until the epoch "
                "ends, or a Flush",
                "move the use behind the call that closes the epoch",
            )  # fmt: skip
        )

    def _enter(self, window: int, access: WindowUse) -> None:
        """Compare an access with the others to the same memory, and remember it."""
        accesses = self.accesses.setdefault((window, access.target), [])
        for other in accesses:
            if other.before(access.clock) or not conflict(other, access):
                continue
            if other.toward < 0 and access.toward < 0:
                continue  # both are of the target: other checkers compare them
            if other.call is access.call and other.call is not None:
                continue
            if overlap(other.pieces, access.pieces):
                self._report(other, access)
        if len(accesses) > _MANY:
            clocks = self.session.clocks
            alive = [clocks.now(pid) for pid in self._members(window)]
            accesses[:] = [one for one in accesses if not all(one.before(clock) for clock in alive)]
        accesses.append(access)

    def _members(self, window: int) -> list[int]:
        return [pid for number, pid in self.sides if number == window]

    def _report(self, first: WindowUse, second: WindowUse) -> None:
        key = ("conflict", frozenset((first.site, second.site)))
        if key in self.reported:
            return
        self.reported.add(key)
        low = max(one.pieces[0].low for one in (first, second))
        high = min(one.pieces[0].high for one in (first, second))
        names = [one.call.name if one.call is not None else one.what for one in (second, first)]
        self.session.report(
            Finding(
                AccessesConflict,
                f"{names[0]} and {names[1]} reach the same "
                f"{text.count(max(1, high - low), 'byte')} at rank {second.target} in any order",
                [second.place(""), first.place("")],
                "MPI 4.1, section 12.7: the result of concurrent accesses to one place is "
                "undefined if one of them writes, except for accumulate operations with one "
                "operator",
                "synchronize between the two, use different places, or Accumulate",
                more=["no synchronization orders the two: neither happens before the other"],
            )
        )

    def _complete(self, call: MpiCall, side: WindowSide, state: SideState, target: Any) -> None:
        pid = call.rank.pid
        count = self.session.clocks.now(pid).count
        group = side.window.communicator.group
        incomplete = []
        for access in state.pending:
            if target is None or access.toward == group[int(target)]:
                access.done = count
            else:
                incomplete.append(access)
        state.pending = incomplete

    def _release_buffers(self, rank: Rank, state: SideState, target: object) -> None:
        for entry in list(state.buffers):
            if target is None or entry.target == target:
                state.buffers.remove(entry)
                self.session.memory.forget(rank, (self, entry.key))

    def _complete_locally(self, call: MpiCall) -> None:
        """A request-based access is complete at its origin: its buffers are free."""
        pid = call.rank.pid
        for (_, other), state in self.sides.items():
            if other == pid:
                for access in state.pending:
                    if access.call is not None and access.call.name.startswith("R"):
                        self._release_buffers(call.rank, state, None)
                        break

    # The memory of windows.

    def _watch(self, call: MpiCall, side: WindowSide) -> None:
        number = side.window.communicator.p2p.number
        self.windows[number] = call
        self._state(side)
        self.memories.setdefault(call.rank.pid, {})
        if side.memory.nbytes == 0 or side.window.flavor == WIN_FLAVOR_SHARED:
            return
        rank = call.rank
        pid = rank.pid
        clocks = self.session.clocks

        def used(rank: Rank, writing: bool, memory: WatchedRegion, site: CallSite) -> None:
            clock = clocks.stamp(pid)
            what = "the program writes" if writing else "the program reads"
            access = WindowUse(
                pid, None, site, "write" if writing else "read", [memory], clock, pid, "", what
            )
            access.done = clock.count + 1
            self._enter(number, access)

        whole = self.memories[pid][number] = WatchedRegion.flat(side.memory)
        self.session.memory.watch(rank, (self, "window", number), [whole], used)

    def finish(self, simulation: Simulation) -> None:
        """Report epochs that are still open."""
        errors = {id(outcome.error) for outcome in simulation.outcomes}
        failed = [finding for error, finding in self.failures if id(error) in errors]
        for finding in failed:
            self.session.report(finding)
        if self.session.clean or failed:
            for state in self.sides.values():
                self._unclosed(state)


def _side(call: MpiCall) -> WindowSide | None:
    if call.values and isinstance(call.values[0], Win):
        side: WindowSide | None = call.values[0]._impl
        return side
    return None
