"""One-sided communication: its epochs, and accesses that conflict."""

from __future__ import annotations

from typing import Any, ClassVar

from pysmpi import text
from pysmpi.checkers.base import Checker
from pysmpi.checkers.describing import place, places
from pysmpi.checkers.memory import Touch, WatchedRegion, overlap, regions_of
from pysmpi.checkers.memory_of_calls import (
    may_use_memory,
    memory_of_arguments,
    memory_of_contribution,
    receives,
    uses_memory,
)
from pysmpi.checkers.pending import PendingMemory
from pysmpi.checkers.problems.onesided import AccessesConflict, EpochError
from pysmpi.checkers.registry import checker
from pysmpi.checkers.window_uses import (
    COMMUNICATE,
    FETCHES,
    LocalBuffers,
    SideState,
    WindowUse,
    access_messages,
    accumulated,
    basic_types,
    conflict,
)
from pysmpi.mpi.base.constants import (
    ERR_RMA_SYNC,
    MODE_NOPRECEDE,
    MODE_NOSUCCEED,
    PROC_NULL,
)
from pysmpi.mpi.base.exceptions import Exception as MPIException
from pysmpi.mpi.base.ranks import Rank
from pysmpi.mpi.calls import CallKind, MpiCall, Procedure, Role
from pysmpi.mpi.collective.contribution import Contribution
from pysmpi.mpi.point_to_point.requests import Request
from pysmpi.mpi.rma.window import WindowSide
from pysmpi.mpi.rma.windows import Win
from pysmpi.python.frames import CallSite
from pysmpi.ranks.simulation import Simulation
from pysmpi.reports.findings import Finding, Place

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


class OneSidedChecks(Checker):
    """Follows the epochs of every process at every window, and compares its accesses."""

    needs_clocks: ClassVar[bool] = True
    needs_pending: ClassVar[bool] = True

    def __init__(self) -> None:
        self.sides: dict[tuple[int, int], SideState] = {}  # by window, pid
        self.accesses: dict[int, list[WindowUse]] = {}  # by pid of the memory
        self.limits: dict[int, int] = {}  # of their numbers, after which those that are over go
        self.reachable: dict[int, set[int]] = {}  # the pids that reach the memory of a pid
        self.failures: list[tuple[BaseException, Finding]] = []
        self.reported: set[object] = set()
        self.conflicts: dict[frozenset[CallSite | None], Finding] = {}  # by their two lines
        # Memory of windows by the pid that uses it directly, and a key of the window; with the pid
        # whose memory it is.
        self.memories: dict[int, dict[tuple[int, ...], tuple[WatchedRegion, int]]] = {}
        self.uses: dict[PendingMemory, list[WindowUse]] = {}
        self.written: dict[int, list[WatchedRegion]] = {}  # at the end of a call, by its id

    def _state(self, side: WindowSide) -> SideState:
        key = side.window.communicator.p2p.number, side.rank.pid
        state = self.sides.get(key)
        if state is None:
            state = self.sides[key] = SideState()
        return state

    # Calls.

    def concerns(self, event: str, procedure: Procedure) -> bool:
        """Calls of windows, those that use memory, and results of all."""
        return event == "call_returned" or (
            Role.WINDOW in procedure.places
            or (event == "call_made" and may_use_memory(procedure))
            or event == "call_failed"
        )

    def call_made(self, call: MpiCall) -> None:
        """Compare an access with the others; follow the epochs."""
        side = _side(call)
        if side is None:
            if call.rank.pid in self.memories and uses_memory(call):
                self._arguments(call)
            return
        name = call.name
        if name == "Free":
            self._forget(call.rank, side.window.communicator.p2p.number)
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
            call.rank.pid not in self.memories
            and Role.WINDOW not in call.procedure.places
            and not isinstance(result, Win)
        ):
            return
        if isinstance(result, Win) and result._impl is not None and call.kind is not CallKind.LOCAL:
            self._begin_window(call, result._impl)
            return
        side = _side(call)
        name = call.name
        written = self.written.pop(id(call), None)
        if written is not None:
            for used in self._in_windows(call, "write", written):
                used.done = used.clock.count + 1
                self._enter(used)
        if call.rank.pid in self.memories:
            self._end_requests(call)
        if side is None:
            return
        state = self._state(side)
        match name:
            case "Fence" | "Unlock_all" | "Flush_all" | "Complete" | "Flush_local_all":
                self._release_buffers(call.rank, state, None)
            case "Unlock" | "Flush" | "Flush_local":
                self._release_buffers(call.rank, state, call.arguments["rank"])
            case "Attach" | "Detach":
                self._attached(call, side)
            case "Shared_query":
                self._shared(call, side)
        if isinstance(result, Request):  # of Rput and its like
            for owned in state.buffers[-1:]:
                if owned.call is call:
                    owned.handle = result
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
        # Also a process without accesses was in an epoch, which others could reach.
        state.fenced_before = state.used is not None or state.fence is not None
        state.fence = None if modes & MODE_NOSUCCEED else call
        state.used = state.inner = None

    def _inside_fence(self, state: SideState, call: MpiCall) -> None:
        fence = state.fence
        if fence is None or ("fence", call.rank.pid, fence.site, call.site) in self.reported:
            return
        self.reported.add(("fence", call.rank.pid, fence.site, call.site))
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
        messages = access_messages(call)
        if messages is None:
            return
        state = self._state(side)
        target = int(call.arguments["target_rank"])
        if not side.passive(target) and side.started is None and side.fenced:
            state.used = state.used or call
        pid = call.rank.pid
        toward = side.window.sides[target].rank.pid
        reads = [piece for one in messages.reads for piece in regions_of(one)]
        writes = [piece for one in messages.writes for piece in regions_of(one)]
        kind, op = accumulated(call)
        stamp = self.session.clocks.stamp(pid)
        access = WindowUse(
            pid, call, call.site, kind, regions_of(messages.target), stamp, toward, op
        )
        if kind == "update":
            access.types = basic_types(messages.target)
        # The local buffers may lie in a window that others reach.
        uses = [access, *self._in_windows(call, "read", reads)]
        for used in [*uses, *self._in_windows(call, "write", writes)]:
            used.toward = toward
            self._enter(used)
            state.pending.append(used)
        self._meet(call, reads, writes)
        for pending in self.session.pending.all_of(pid):
            if pending.meets(reads, writes):
                self._buffer_reused(call, pending.call, pending.prepared)
                break
        owned = LocalBuffers(call, target, access, reads, writes)
        state.buffers.append(owned)

        def touched(rank: Rank, touch: Touch) -> None:
            if touch.writes or overlap([touch.memory], writes):
                self._touched(call, touch)

        self.session.memory.watch(call.rank, (self, id(owned)), [*reads, *writes], touched)

    def _buffer_reused(self, call: MpiCall, owner: MpiCall, prepared: MpiCall) -> None:
        key = ("reused", call.rank.pid, owner.site, call.site)
        if key in self.reported:
            return
        self.reported.add(key)
        one_sided = owner.kind is CallKind.ONE_SIDED
        self.session.report(
            Finding(
                AccessesConflict,
                f"{call.name} uses the {'local ' * one_sided}buffer of {prepared.name}, which is "
                "not complete",
                [place(call, "uses the buffer"), *places(owner, prepared, "owns the buffer")],
                f"MPI 4.1, section {'12.3' if one_sided else '3.7.2'}: the buffers of an operation "
                "belong to MPI until it is complete",
                "use another buffer, or complete the "
                + ("access before (Flush, Unlock, Fence)" if one_sided else "operation before"),
            )
        )

    # Other calls.

    def _arguments(self, call: MpiCall) -> None:
        """The buffers of a call that is complete when it returns."""
        name = call.name
        if name.endswith(("_init", "_begin", "_end")) or (name[0] == "I" and name[1:2].islower()):
            return
        if call.kind is CallKind.COLLECTIVE and name[0].isupper():
            return  # it enters with all its parts
        reads: list[WatchedRegion] = []
        writes: list[WatchedRegion] = []
        for argument, memory in memory_of_arguments(call).items():
            (writes if receives(call, argument) else reads).extend(memory)
        self._use(call, reads, writes)

    def collective_entered(self, contribution: Contribution, rank: Rank) -> None:
        """The buffers of a collective call that is complete when it returns."""
        call = self.session.call_on(rank.process)
        if call is None or rank.pid not in self.memories or call.kind is not CallKind.COLLECTIVE:
            return
        if not call.name[0].islower() and call.name[0] != "I" and "tart" not in call.name:
            self._use(call, *memory_of_contribution(contribution))

    def _use(self, call: MpiCall, reads: list[WatchedRegion], writes: list[WatchedRegion]) -> None:
        """A call reads its memory from now on, and has written to it when it returns."""
        self._meet(call, reads, writes)
        for used in self._in_windows(call, "read", reads):
            used.done = used.clock.count + 1
            self._enter(used)
        if writes:
            self.written[id(call)] = writes

    def _meet(self, call: MpiCall, reads: list[WatchedRegion], writes: list[WatchedRegion]) -> None:
        """Compare memory with the buffers of one-sided calls of the same rank."""
        pid = call.rank.pid
        for (_, member), state in self.sides.items():
            for owned in state.buffers if member == pid else ():
                if owned.meets(reads, writes):
                    self._buffer_reused(call, owned.call, owned.call)
                    return

    def _in_windows(self, call: MpiCall, kind: str, memory: list[WatchedRegion]) -> list[WindowUse]:
        """The uses of memory of windows by some memory of a call; one for each owner."""
        if not memory:
            return []
        pid = call.rank.pid
        owners = {
            owner
            for whole, owner in self.memories.get(pid, {}).values()
            if overlap(memory, [whole])
        }
        stamp = self.session.clocks.stamp(pid)
        return [WindowUse(pid, call, call.site, kind, memory, stamp, one) for one in owners]

    def operation_begun(self, rank: Rank, pending: PendingMemory) -> None:
        """A non-blocking operation has begun."""
        if rank.pid not in self.memories:
            return
        call = pending.call
        self._meet(call, pending.reads, pending.writes)
        uses = self._in_windows(call, "read", pending.reads)
        uses += self._in_windows(call, "write", pending.writes)
        for used in uses:
            used.prepared = pending.prepared
            self._enter(used)
        if uses:
            self.uses.setdefault(pending, []).extend(uses)

    def operation_ended(self, rank: Rank, pending: PendingMemory, call: MpiCall) -> None:
        """A non-blocking operation is complete."""
        for used in self.uses.pop(pending, ()):
            used.done = self.session.clocks.now(rank.pid).count

    def _touched(self, call: MpiCall, touch: Touch) -> None:
        key = ("buffer", call.rank.pid, call.site, touch.site)
        if key in self.reported:
            return
        self.reported.add(key)
        pid = call.rank.pid
        verb = "writes" if touch.writes else "reads"
        self.session.report(
            Finding(
                AccessesConflict,
                f"the local buffer of {call.name} is {'written' if touch.writes else 'read'} "
                "before the access is complete",
                [
                    Place([pid], f"the program {verb}", touch.site, "touches the buffer"),
                    place(call, "owns the buffer"),
                ],
                "MPI 4.1, section 12.3: the buffers of an access belong to MPI until the epoch "
                "ends, or a Flush",
                "move the use behind the call that closes the epoch",
            )
        )

    def _enter(self, access: WindowUse) -> None:
        """Compare an access with the others to the same memory, and remember it."""
        accesses = self.accesses.setdefault(access.target, [])
        for other in accesses:
            if other.before(access.clock) or not conflict(other, access):
                continue
            if other.toward < 0 and access.toward < 0 and other.pid == access.pid:
                continue  # both are of one process: other checkers compare them
            if other.call is access.call and other.call is not None:
                continue
            if overlap(other.pieces, access.pieces):
                self._report(other, access)
        if len(accesses) > self.limits.get(access.target, _MANY):
            clocks = self.session.clocks
            alive = [clocks.now(pid) for pid in self.reachable.get(access.target, ())]
            accesses[:] = [one for one in accesses if not all(one.before(clock) for clock in alive)]
            self.limits[access.target] = max(_MANY, 2 * len(accesses))
        accesses.append(access)

    def _learn(self, pid: int, target: int, memory: list[WatchedRegion]) -> None:
        """A rank has seen values that others have written, and what they did before."""
        clock = self.session.clocks.now(pid)
        for other in self.accesses.get(target, ()):
            if other.pid == pid or other.reads:
                continue
            if overlap(other.pieces, memory):
                clock.learn(other.clock)

    def _report(self, first: WindowUse, second: WindowUse) -> None:
        sites = frozenset((first.site, second.site))
        for used in (first, second):
            if used.call is not None:
                self.session.explained.add(used.call)
        earlier = self.conflicts.get(sites)
        if earlier is not None:  # of these lines, in other ranks
            for used in (first, second):
                rows = [row for row in earlier.places if row.site == used.site]
                if rows and all(used.pid not in row.ranks for row in rows):
                    rows[0].ranks = sorted([*rows[0].ranks, used.pid])
            return
        low = max(one.pieces[0].low for one in (first, second))
        high = min(one.pieces[0].high for one in (first, second))
        names = [
            one.prepared.name if one.prepared is not None else one.what for one in (second, first)
        ]
        self.conflicts[sites] = finding = Finding(
            AccessesConflict,
            f"{names[0]} and {names[1]} reach the same "
            f"{text.count(max(1, high - low), 'byte')} at rank {second.target} in any order",
            [*second.places(), *first.places()],
            "MPI 4.1, section 12.7: the result of concurrent accesses to one place is "
            "undefined if one of them writes, except for accumulate operations with one "
            "operator",
            "synchronize between the two, use different places, or Accumulate",
            more=["no synchronization orders the two: neither happens before the other"],
        )
        self.session.report(finding)

    def _complete(self, call: MpiCall, side: WindowSide, state: SideState, target: Any) -> None:
        pid = call.rank.pid
        count = self.session.clocks.now(pid).count
        group = side.window.communicator.group
        incomplete = []
        for access in state.pending:
            if access.done is not None:
                continue  # its origin already knows its end
            if target is None or access.toward == group[int(target)]:
                access.done = count
            else:
                incomplete.append(access)
        state.pending = incomplete

    def _release_buffers(self, rank: Rank, state: SideState, target: object) -> None:
        for owned in list(state.buffers):
            if target is None or owned.target == target:
                self._release(rank, state, owned)

    def _release(self, rank: Rank, state: SideState, owned: LocalBuffers) -> None:
        """An access is complete at its origin: its buffers are free, and what it reads is read."""
        state.buffers.remove(owned)
        self.session.memory.forget(rank, (self, id(owned)))
        used = owned.use
        if used.kind == "read" and used.done is None:
            used.done = self.session.clocks.now(rank.pid).count
        if owned.call.name in FETCHES:
            self._learn(rank.pid, used.target, used.pieces)

    def _end_requests(self, call: MpiCall) -> None:
        """The request-based accesses that a call has completed."""
        pid = call.rank.pid
        for (_, member), state in self.sides.items():
            if member == pid:
                for owned in list(state.buffers):
                    if owned.handle is not None and owned.handle._impl is None:
                        self._release(call.rank, state, owned)

    # The memory of windows.

    def _begin_window(self, call: MpiCall, side: WindowSide) -> None:
        self._state(side)
        communicator = side.window.communicator
        self._watch(call.rank, (communicator.p2p.number,), side.memory, side)

    def _attached(self, call: MpiCall, side: WindowSide) -> None:
        """Memory of a dynamic window has been attached or detached."""
        number = side.window.communicator.p2p.number
        mine = self.memories[call.rank.pid]
        watched = {key[1] for key in mine if key[0] == number and len(key) > 1}
        for address in watched - side.regions.keys():
            self._forget(call.rank, number, address)
        for address in side.regions.keys() - watched:
            self._watch(call.rank, (number, address), side.regions[address].memory, side)

    def _shared(self, call: MpiCall, side: WindowSide) -> None:
        """A rank has asked for the memory of another, and can now use it directly."""
        wanted = int(call.arguments["rank"])
        sides = side.window.sides
        for other in sides if wanted == PROC_NULL else sides[wanted : wanted + 1]:
            if other is not side:
                key = side.window.communicator.p2p.number, -1 - other.me
                if key not in self.memories[call.rank.pid]:
                    self._watch(call.rank, key, other.memory, other)

    def _watch(self, rank: Rank, key: tuple[int, ...], memory: memoryview, of: WindowSide) -> None:
        """Follow the direct uses of memory of a window by a rank."""
        mine = self.memories.setdefault(rank.pid, {})
        target = of.rank.pid
        self.reachable.setdefault(target, set()).update(of.window.communicator.group)
        if memory.nbytes == 0:
            return
        pid = rank.pid

        def used(rank: Rank, touch: Touch) -> None:
            if touch.polls:
                self._learn(pid, target, [touch.memory])
                return
            clock = self.session.clocks.stamp(pid)
            what = "the program writes" if touch.writes else "the program reads"
            kind = "write" if touch.writes else "read"
            access = WindowUse(pid, None, touch.site, kind, [touch.memory], clock, target, "", what)
            access.done = clock.count + 1
            self._enter(access)

        mine[key] = whole, _ = WatchedRegion.flat(memory), target
        self.session.memory.watch(rank, (self, *key), [whole], used)
        for pending in self.session.pending.all_of(pid):
            if pending not in self.uses:
                self.operation_begun(rank, pending)

    def _forget(self, rank: Rank, number: int, address: int | None = None) -> None:
        """The memory of a window is no longer used through it."""
        mine = self.memories.get(rank.pid, {})
        for key in list(mine):
            if key[0] == number and (address is None or key[1:] == (address,)):
                del mine[key]
                self.session.memory.forget(rank, (self, *key))

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


checker("onesided", "epochs of windows, and conflicting accesses to their memory")(OneSidedChecks)
