"""The order of the events of a run: vector clocks of the ranks.

A rank's clock counts its calls. It learns the clocks of others from the messages that it receives,
from synchronous sends, from collective calls (a barrier from all, a broadcast from its root, ...)
and from locks and groups of one-sided synchronization. Two events that neither happened before the
other may happen in any order in another run.
"""

from __future__ import annotations

from typing import Any

from pysmpi.checkers.awaited import AwaitedOperations, Operation
from pysmpi.checkers.order import CallGroup, group_of, may_meet
from pysmpi.kernel.requests import (
    SYNCHRONOUS,
    AbstractProcess,
    KernelRequest,
    Receive,
    Send,
    Transfer,
)
from pysmpi.mpi.base.constants import LOCK_EXCLUSIVE
from pysmpi.mpi.calls import CallKind, MpiCall, Procedure, Role
from pysmpi.mpi.rma.windows import Win

_FROM_ROOT = frozenset(("Bcast", "bcast", "Scatter", "Scatterv", "scatter"))
_TO_ROOT = frozenset(("Reduce", "reduce", "Gather", "Gatherv", "gather"))
_PREFIX = frozenset(("Scan", "scan", "Exscan", "exscan"))
_MEETS, _AWAITS, _OF_WINDOW = 1, 2, 4  # what calls of a procedure may do to clocks


class Stamp:
    """The clock of a rank at one moment: its own count, and the counts of others that it knows."""

    __slots__ = ("pid", "count", "others")

    def __init__(self, pid: int, count: int, others: dict[int, int]) -> None:
        self.pid = pid
        self.count = count
        self.others = others

    def get(self, pid: int) -> int:
        """The last count of a rank that happened before."""
        return self.count if pid == self.pid else self.others.get(pid, 0)


class Clock:
    """The clock of a rank, or of a lock (`pid` is -1 and `count` 0).

    Stamps share the counts of others with the clock, which copies them before it next changes them.
    A stamp is therefore cheap, however many ranks there are. A rank learns when a call returns and
    shows its clock when one begins, so a rank that knows a count has all the knowledge which the
    other rank had then.
    """

    __slots__ = ("pid", "count", "others", "shared")

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.count = 0
        self.others: dict[int, int] = {}
        self.shared = False

    def get(self, pid: int) -> int:
        """The last count of a rank that happened before now."""
        return self.count if pid == self.pid else self.others.get(pid, 0)

    def stamp(self) -> Stamp:
        """The clock at this moment."""
        self.shared = True
        return Stamp(self.pid, self.count, self.others)

    def learn(self, stamp: Stamp) -> None:
        """Learn the counts that another rank knew at a moment."""
        pid = stamp.pid
        if pid == self.pid or 0 < stamp.count <= self.others.get(pid, 0):
            return
        if stamp.others is not self.others:
            self.learn_all(stamp.others)
        if stamp.count:
            self._own()[pid] = stamp.count

    def learn_all(self, others: dict[int, int]) -> None:
        """Learn the counts of several ranks."""
        mine = self.others
        news = [item for item in others.items() if mine.get(item[0], 0) < item[1]]
        if news:
            if (
                len(news) == len(others)
                and len(others) >= len(mine)
                and mine.keys() <= others.keys()
            ):
                self.others, self.shared = dict(others), False
            else:
                self._own().update(news)

    def _own(self) -> dict[int, int]:
        if self.shared:
            self.others = dict(self.others)
            self.shared = False
        return self.others


class ClockMeeting:
    """The clocks of the ranks that have entered one collective call."""

    __slots__ = ("clocks", "left", "joint")

    def __init__(self) -> None:
        self.clocks: dict[int, Stamp] = {}
        self.left = 0
        self.joint: Stamp | None = None

    def together(self, size: int) -> list[Stamp]:
        """The joint clock of the ranks that have entered; shared once all `size` ranks have."""
        if len(self.clocks) < size:
            return list(self.clocks.values())
        if self.joint is None:
            joint = Clock(-1)
            for stamp in self.clocks.values():
                joint.learn(stamp)
            self.joint = joint.stamp()
        return [self.joint]


class Clocks:
    """The clock of each rank; hears of each event before the checkers that ask."""

    def __init__(
        self, calls: dict[AbstractProcess, MpiCall], operations: AwaitedOperations
    ) -> None:
        self.operations = operations
        self.calls = calls  # those in which processes are
        self._kinds: dict[Procedure, int] = {}
        self.of: dict[int, Clock] = {}
        self.sent: dict[KernelRequest, Stamp] = {}
        self.posted: dict[KernelRequest, Stamp] = {}  # of receives
        self.completed: dict[KernelRequest, Stamp] = {}  # of complete requests, for their ranks
        self.starts: dict[int, list[KernelRequest]] = {}  # by id of the call
        self.awaited: dict[int, list[tuple[Operation, list[KernelRequest]]]] = {}
        self.inside: dict[int, tuple[CallGroup, int]] = {}
        self.counts: dict[tuple[object, int], int] = {}
        self.meetings: dict[tuple[object, int], ClockMeeting] = {}
        self.nonblocking: dict[int, tuple[CallGroup, int, MpiCall]] = {}  # by id of an operation
        self.locks: dict[tuple[object, int], tuple[Clock, Clock]] = {}  # exclusive, any
        self.held: dict[tuple[object, int, int], bool] = {}
        self.signals: dict[tuple[object, str, int, int], list[Stamp]] = {}

    def now(self, pid: int) -> Clock:
        """The clock of a rank."""
        clock = self.of.get(pid)
        if clock is None:
            clock = self.of[pid] = Clock(pid)
        return clock

    def stamp(self, pid: int) -> Stamp:
        """The clock of a rank at this moment."""
        return self.now(pid).stamp()

    # Calls.

    def call_made(self, call: MpiCall) -> None:
        """Count the call."""
        pid = call.rank.pid
        clock = self.now(pid)
        clock.count += 1
        kinds = self._kinds_of(call.procedure)
        if not kinds:
            return
        group = group_of(call) if kinds & _MEETS else None
        if group is not None:
            number = self.counts.get((group.key, pid), 0)
            self.counts[group.key, pid] = number + 1
            meeting = self.meetings.setdefault((group.key, number), ClockMeeting())
            meeting.clocks[pid] = clock.stamp()
            self.inside[id(call)] = group, number
        if kinds & _AWAITS:
            awaited = self.operations.messages(call)
            if awaited:
                self.awaited[id(call)] = awaited
        if kinds & _OF_WINDOW and call.values and isinstance(call.values[0], Win):
            self._synchronize(call)

    def call_returned(self, call: MpiCall, result: object) -> None:
        """Learn from the requests that are complete."""
        pid = call.rank.pid
        clock = self.now(pid)
        started = self.starts.pop(id(call), None)
        if started is not None:
            for request in started:
                self._learn(clock, request)
        if not self._kinds_of(call.procedure):
            return
        for operation, messages in self.awaited.pop(id(call), ()):
            for request in messages:
                self._learn(clock, request)
            entered = self.nonblocking.get(id(operation))
            if entered is not None and operation.request is not None and operation.request.done:
                del self.nonblocking[id(operation)]
                self._leave(pid, *entered)
        inside = self.inside.pop(id(call), None)
        if inside is not None:
            group, number = inside
            operation = getattr(result, "_impl", None)
            if call.name[0] == "I" and operation is not None:
                self.nonblocking[id(operation)] = group, number, call
            elif not call.name.endswith("_init"):
                self._leave(pid, group, number, call)
        if isinstance(call.values[0] if call.values else None, Win):
            self._synchronized(call)

    def _kinds_of(self, procedure: Procedure) -> int:
        kinds = self._kinds.get(procedure)
        if kinds is None:
            roles = procedure.roles.values()
            kinds = self._kinds[procedure] = (
                (_MEETS if may_meet(procedure) else 0)
                | (_AWAITS if Role.REQUEST in roles else 0)
                | (_OF_WINDOW if Role.WINDOW in roles else 0)
            )
        return kinds

    def call_failed(self, call: MpiCall, error: BaseException) -> None:
        """Forget the call."""
        tables: tuple[dict[int, Any], ...] = self.starts, self.awaited, self.inside
        for table in tables:
            table.pop(id(call), None)

    def _learn(self, clock: Clock, request: KernelRequest) -> None:
        if request.done:
            learnt = self.completed.pop(request, None)
            if learnt is not None:
                clock.learn(learnt)

    def _leave(self, pid: int, group: CallGroup, number: int, call: MpiCall) -> None:
        meeting = self.meetings.get((group.key, number))
        if meeting is None:
            return
        clock = self.now(pid)
        name = call.name
        if name[0] == "I" and len(name) > 1:
            name = name[1:].capitalize()
        root = call.arguments.get("root")
        communicator = group.communicator
        rooted = isinstance(root, int) and 0 <= root < communicator.size and not communicator.inter
        if name in _FROM_ROOT and rooted:
            source = meeting.clocks.get(communicator.group[root])
            if source is not None:
                clock.learn(source)
        elif name in _TO_ROOT and rooted:
            if communicator.group[root] == pid:
                for other in meeting.together(len(group.pids)):
                    clock.learn(other)
        elif name in _PREFIX:
            for other_pid in communicator.group[: communicator.rank_of(pid)]:
                if other_pid in meeting.clocks:
                    clock.learn(meeting.clocks[other_pid])
        else:
            for other in meeting.together(len(group.pids)):
                clock.learn(other)
        meeting.left += 1
        if meeting.left == len(group.pids):
            del self.meetings[group.key, number]

    # Messages.

    def request_started(self, request: KernelRequest, process: AbstractProcess, now: float) -> None:
        """A message or a receive begins."""
        call = self.calls.get(process)
        if call is None or isinstance(request, Transfer):
            return
        if call.kind is not CallKind.POINT_TO_POINT:
            return
        if isinstance(request, Send):
            self.sent[request] = self.stamp(call.rank.pid)
        elif isinstance(request, Receive):
            self.posted[request] = self.stamp(call.rank.pid)
        else:
            return
        self.starts.setdefault(id(call), []).append(request)

    def message_matched(self, send: Send, receive: Receive, now: float) -> None:
        """The receiver will learn the clock of the sender."""
        clock = self.sent.pop(send, None)
        if clock is None:
            return
        self.completed[receive] = clock
        posted = self.posted.pop(receive, None)
        if posted is None:  # a message that Mprobe has found
            call = self.calls.get(receive.context.members[receive.destination])
            if call is not None:
                self.starts.setdefault(id(call), []).append(receive)
        if send.mode == SYNCHRONOUS and posted is not None:
            self.completed[send] = posted

    # One-sided synchronization.

    def _synchronize(self, call: MpiCall) -> None:
        """Add the clock of a call to those that others learn from."""
        side = call.values[0]._impl
        if side is None:
            return
        pid, key = call.rank.pid, side.window.communicator.p2p.number
        name = call.name
        if name in ("Post", "Complete"):
            group = side.started if name == "Complete" else None
            if name == "Post":
                members = getattr(getattr(call.values[1], "_impl", None), "members", ())
                pids = list(members)
            else:
                pids = [side.window.communicator.group[rank] for rank in group or ()]
            for other in pids:
                self.signals.setdefault((key, name, pid, other), []).append(self.stamp(pid))
        elif name in ("Unlock", "Unlock_all"):
            # Before the call returns, another rank may already have the lock.
            communicator, clock = side.window.communicator, self.now(pid)
            targets = range(communicator.size) if name == "Unlock_all" else [call.arguments["rank"]]
            for target in targets:
                exclusive = self.held.pop((key, pid, target), False)
                lock = self.locks.get((key, target))
                if lock is None:
                    lock = self.locks[key, target] = Clock(-1), Clock(-1)
                stamp = clock.stamp()
                lock[1].learn(stamp)
                if exclusive:
                    lock[0].learn(stamp)

    def _synchronized(self, call: MpiCall) -> None:
        """Let a rank learn from the clocks that its call has met."""
        side = call.values[0]._impl
        if side is None:
            return
        communicator = side.window.communicator
        pid, key, name = call.rank.pid, communicator.p2p.number, call.name
        clock = self.now(pid)
        if name == "Start":
            for rank in side.started or ():
                self._take((key, "Post", communicator.group[rank], pid), clock)
        elif name in ("Wait", "Test") and side.exposure is None:
            for other in communicator.group:
                self._take((key, "Complete", other, pid), clock)
        elif name in ("Lock", "Lock_all"):
            exclusive = name == "Lock" and call.arguments["lock_type"] == LOCK_EXCLUSIVE
            targets = range(communicator.size) if name == "Lock_all" else [call.arguments["rank"]]
            for target in targets:
                if isinstance(target, int):
                    self.held[key, pid, target] = exclusive
                    lock = self.locks.get((key, target))
                    if lock is not None:
                        clock.learn((lock[1] if exclusive else lock[0]).stamp())

    def _take(self, key: tuple[object, str, int, int], clock: Clock) -> None:
        waiting = self.signals.get(key)
        if waiting:
            clock.learn(waiting.pop(0))
