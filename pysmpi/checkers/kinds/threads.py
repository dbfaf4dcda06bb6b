"""Calls of threads that the thread level of a rank does not allow."""

from __future__ import annotations

from pysmpi.checkers.base import Checker
from pysmpi.checkers.describing import communicator_handle, communicator_of, place
from pysmpi.checkers.kinds.thread_memory import ThreadMemory
from pysmpi.checkers.order import group_of
from pysmpi.checkers.problems.threads import ThreadLevel
from pysmpi.checkers.registry import checker
from pysmpi.checkers.thread_clocks import ThreadClocks
from pysmpi.mpi.base.constants import (
    ANY_SOURCE,
    ANY_TAG,
    PROC_NULL,
    THREAD_FUNNELED,
    THREAD_MULTIPLE,
    THREAD_SERIALIZED,
    THREAD_SINGLE,
)
from pysmpi.mpi.base.options import ENVIRONMENT
from pysmpi.mpi.calls import CallKind, MpiCall, Procedure
from pysmpi.ranks.simulation import Simulation
from pysmpi.reports.findings import Finding

_NAMES = {
    THREAD_SINGLE: "THREAD_SINGLE",
    THREAD_FUNNELED: "THREAD_FUNNELED",
    THREAD_SERIALIZED: "THREAD_SERIALIZED",
}
_PROBES = frozenset(("Probe", "probe", "Iprobe", "iprobe"))
_RECEIVES = frozenset(
    "Recv recv Irecv irecv Mprobe mprobe Improbe improbe Sendrecv sendrecv Isendrecv "
    "Sendrecv_replace Isendrecv_replace".split()
)
_ENDS = frozenset(("Free", "free", "Set", "Delete", "Close", "Disconnect"))
_MANY = 1000  # handles before all are dropped
_INITS = frozenset(("Init", "Init_thread"))
_ANYWHERE = frozenset(("Query_thread", "Is_thread_main", "Is_initialized", "Is_finalized"))


class ThreadCall:
    """A call of a thread: its place in the order of the threads of its rank."""

    __slots__ = ("call", "event")

    def __init__(self, call: MpiCall, event: tuple[int, int]) -> None:
        self.call = call
        self.event = event


class FoundMessage:
    """A message that a probe of a thread has found, and its receive by this thread, if any."""

    __slots__ = ("probe", "received")

    def __init__(self, probe: ThreadCall) -> None:
        self.probe = probe
        self.received: ThreadCall | None = None


class ThreadChecks(Checker):
    """Compares the thread of each call with the thread level of its rank, and with other threads.

    Calls are compared with those of other threads of the rank once it has a second one.
    """

    def __init__(self) -> None:
        self.inside: dict[int, dict[int, MpiCall]] = {}  # by pid, the calls of its threads
        self.inits: dict[int, MpiCall] = {}
        self.clocks = ThreadClocks()
        # By pid and communicator, of each thread: its last collective call, its last receive, and
        # the messages that it has found, by source and tag.
        self.collective: dict[tuple[int, object], dict[int, ThreadCall]] = {}
        self.received: dict[tuple[int, object], dict[tuple[int, int, int], ThreadCall]] = {}
        self.probed: dict[tuple[int, object], dict[tuple[int, int, int], FoundMessage]] = {}
        # By pid and identity of a handle, with the handle: its last use by each thread.
        self.handles: dict[tuple[int, int], tuple[object, dict[int, ThreadCall]]] = {}
        self.last: dict[int, dict[int, ThreadCall]] = {}  # by pid, the last call of each thread
        self.calling: set[int] = set()  # pids whose calls are not all of the main thread
        self.probing: set[int] = set()  # pids that have found a message by a probe
        self.reported: set[object] = set()

    def concerns(self, event: str, procedure: Procedure) -> bool:
        """All calls but those that every thread may make; local ones use handles and memory."""
        return procedure.name not in _ANYWHERE

    def begin(self, simulation: Simulation) -> None:
        """Follow the locks of threads."""
        self.memory = self.clocks.listener = ThreadMemory(self.clocks, self.session.memory)
        self.clocks.begin()

    def close(self) -> None:
        """Follow them no more."""
        self.clocks.end()

    def call_made(self, call: MpiCall) -> None:
        """Look at the thread."""
        rank = call.rank
        if call.name in _INITS:
            self.inits[rank.pid] = call
        if call.name in _ANYWHERE:
            return
        if self.clocks.has_others(rank):
            if call.name != "Finalize":
                event = self.clocks.now(call.fiber, rank)
                self.last.setdefault(rank.pid, {})[event[0]] = ThreadCall(call, event)
            self._handles(call)
            self.memory.call_made(call)
        if call.kind is CallKind.LOCAL and call.name != "Finalize":
            return
        environment = ENVIRONMENT.peek(rank)
        if environment is None or not environment.initialized:
            return
        level = environment.thread_level
        if call.name == "Finalize":
            self._finalizes(call)
        main = call.fiber is rank.fiber
        if level == THREAD_SINGLE and main and rank.pid in self.clocks.threaded:
            self.clocks.threaded.discard(rank.pid)
            self._report(call, None, level)
        if level == THREAD_MULTIPLE:
            self._among_threads(call)
            return
        others = self.inside.setdefault(rank.pid, {})
        if level in (THREAD_SINGLE, THREAD_FUNNELED) and not main:
            self._report(call, None, level)
        elif level == THREAD_SERIALIZED and others:
            self._report(call, next(iter(others.values())), level)
        others[id(call)] = call

    def call_returned(self, call: MpiCall, result: object) -> None:
        """The thread leaves the call; a probe may have found a message."""
        others = self.inside.get(call.rank.pid)
        if others:
            others.pop(id(call), None)
        if self.clocks.has_others(call.rank) and call.name not in _ANYWHERE:
            event = self.clocks.now(call.fiber, call.rank)
            self.last.setdefault(call.rank.pid, {})[event[0]] = ThreadCall(call, event)
            self.memory.call_returned(call)
        if call.name in _PROBES and (result or call.name[0] in "Pp"):
            self.probing.add(call.rank.pid)
            key, envelope = _envelope(call)
            event = self.clocks.now(call.fiber, call.rank)
            messages = self.probed.setdefault(key, {})
            messages[event[0], *envelope] = FoundMessage(ThreadCall(call, event))

    def call_failed(self, call: MpiCall, error: BaseException) -> None:
        """The thread leaves the call."""
        self.inside.get(call.rank.pid, {}).pop(id(call), None)

    def finish(self, simulation: Simulation) -> None:
        """Report what threads do to each other's buffers."""
        for finding in self.memory.findings:
            self.session.report(finding)

    # Threads against each other.

    def _finalizes(self, call: MpiCall) -> None:
        """Finalize follows the calls of all threads, in the thread of Init."""
        rank = call.rank
        if call.fiber is not rank.fiber:
            self._late(call, self.inits.get(rank.pid), "in another thread than Init")
            return
        for last in self.last.get(rank.pid, {}).values():
            number = self.clocks.now(call.fiber, rank)[0]
            if last.event[0] != number and not self.clocks.knows(call.fiber, last.event):
                self._late(call, last.call, f"without an order after {last.call.name} of a thread")
                return

    def _late(self, call: MpiCall, other: MpiCall | None, what: str) -> None:
        self.session.report(
            Finding(
                ThreadLevel,
                f"Finalize {what}",
                [place(call), *([place(other, "in another thread")] if other is not None else [])],
                "MPI 4.1, section 11.6.2: the main thread finalizes MPI, after all threads have "
                "completed their calls",
                "join the threads, and call Finalize in the main thread",
            )
        )

    def _handles(self, call: MpiCall) -> None:
        """A thread uses handles, or ends one that others use."""
        pid = call.rank.pid
        event = self.clocks.now(call.fiber, call.rank)
        mine = ThreadCall(call, event)
        for position, value in enumerate(call.values):
            items = value if isinstance(value, list | tuple) else (value,)
            for item in items:
                handle = getattr(item, "_impl", None)
                if handle is None:
                    continue
                _, users = self.handles.setdefault((pid, id(handle)), (handle, {}))
                if position == 0 and call.name in _ENDS:
                    for other in users.values():
                        if other.event[0] != event[0]:
                            if not self.clocks.knows(call.fiber, other.event):
                                self._ends(call, other.call)
                users[event[0]] = mine
        if len(self.handles) > _MANY:
            self.handles.clear()

    def _ends(self, call: MpiCall, other: MpiCall) -> None:
        key = "handle", call.rank.pid, call.site, other.site
        if key not in self.reported:
            self.reported.add(key)
            self.session.report(
                Finding(
                    ThreadLevel,
                    f"{call.name} of a thread changes what {other.name} of another one uses, "
                    "without an order",
                    [place(call, "in a thread"), place(other, "in another thread")],
                    "MPI 4.1, section 11.6: the program sees to it that threads do not free or "
                    "change a handle that others use",
                    "join the other thread before, or hold a lock",
                )
            )

    def _among_threads(self, call: MpiCall) -> None:
        pid = call.rank.pid
        if call.fiber is not call.rank.fiber:
            self.calling.add(pid)
        elif not (pid in self.calling or pid in self.probing or pid in self.clocks.threaded):
            return  # other threads begin later, and know of this call
        group = group_of(call)
        if group is not None:
            calls = self.collective.setdefault((call.rank.pid, group.key), {})
            event = self.clocks.now(call.fiber, call.rank)
            for other in calls.values():
                if other.event[0] != event[0] and not self.clocks.knows(call.fiber, other.event):
                    self._unordered(call, other.call, group.noun or "the communicator")
            calls[event[0]] = ThreadCall(call, event)
        elif call.name in _RECEIVES and call.kind is CallKind.POINT_TO_POINT:
            self._receives(call)

    def _receives(self, call: MpiCall) -> None:
        """A thread takes a message: perhaps one that a probe of another thread has found."""
        key, envelope = _envelope(call)
        number, count = self.clocks.now(call.fiber, call.rank)
        mine = ThreadCall(call, (number, count))
        for (thread, *theirs), message in list(self.probed.get(key, {}).items()):
            if not _meet(envelope, (theirs[0], theirs[1])):
                continue
            if thread == number:
                if message.received is None:
                    message.received = mine
                    self._after_others(key, message, call)
            elif message.received is None or not self.clocks.knows(
                call.fiber, message.received.event
            ):
                self._taken(message.probe.call, call)
        self.received.setdefault(key, {})[number, *envelope] = mine

    def _after_others(self, key: tuple[int, object], message: FoundMessage, call: MpiCall) -> None:
        """Receives of other threads that the probe does not follow could take its message."""
        probe = message.probe
        for (thread, *theirs), other in self.received.get(key, {}).items():
            if thread != probe.event[0] and _meet(_envelope(probe.call)[1], (theirs[0], theirs[1])):
                if not self.clocks.knows(probe.call.fiber, other.event):
                    self._taken(probe.call, other.call)

    def _taken(self, probe: MpiCall, receive: MpiCall) -> None:
        key = "probe", probe.rank.pid, probe.site, receive.site
        if key not in self.reported:
            self.reported.add(key)
            self.session.report(
                Finding(
                    ThreadLevel,
                    f"{receive.name} of a thread can take the message that {probe.name} of another "
                    "one has found",
                    [place(receive, "in a thread"), place(probe, "in another thread")],
                    "MPI 4.1, section 3.8.2: only a matching probe lets no other thread receive "
                    "the message",
                    "use Mprobe or Improbe and receive by its Message, or hold a lock from the "
                    "probe to the receive",
                )
            )

    def _unordered(self, call: MpiCall, other: MpiCall, noun: str) -> None:
        key = "collective", call.rank.pid, frozenset((call.site, other.site))
        if key not in self.reported:
            self.reported.add(key)
            self.session.report(
                Finding(
                    ThreadLevel,
                    f"{call.name} and {other.name} of two threads on one "
                    f"{noun.removeprefix('the ')}, without an order",
                    [place(call, "in a thread"), place(other, "in another thread")],
                    "MPI 4.1, section 6.14: the threads of a process make collective calls on a "
                    "communicator one after another, in the same order in every process",
                    "give each thread a communicator of its own (Dup), or let one thread make the "
                    "calls",
                )
            )

    def _report(self, call: MpiCall, other: MpiCall | None, level: int) -> None:
        places = [place(call, "in a thread")]
        if other is not None:
            places = [place(call, "at the same time"), place(other, "in another thread")]
        init = self.inits.get(call.rank.pid)
        if init is not None:
            places.append(place(init, "sets the level"))
        name = _NAMES[level]
        self.session.report(
            Finding(
                ThreadLevel,
                f"{call.name} under {name}"
                + (
                    " in a rank with another thread"
                    if call.fiber is call.rank.fiber and other is None
                    else ""
                ),
                places,
                f"MPI 4.1, section 11.6: {name} allows "
                + (
                    "one thread at a time to call MPI"
                    if level == THREAD_SERIALIZED
                    else "calls of the main thread only"
                ),
                "ask for THREAD_MULTIPLE, or make the calls in one thread",
            )
        )


def _envelope(call: MpiCall) -> tuple[tuple[int, object], tuple[int, int]]:
    """The rank and the communicator of a call that looks for a message, its source and tag."""
    arguments = call.arguments
    communicator = communicator_of(call.rank, communicator_handle(call))
    key = call.rank.pid, None if communicator is None else communicator.p2p.number
    source, tag = arguments.get("source", ANY_SOURCE), arguments.get("tag", ANY_TAG)
    tag = arguments.get("recvtag", tag)
    return key, (
        source if isinstance(source, int) else ANY_SOURCE, tag if isinstance(tag, int) else ANY_TAG
    )  # fmt: skip


def _meet(one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Whether one message could have two sources and tags, each with wildcards."""
    sources, tags = zip(one, other, strict=True)
    if PROC_NULL in sources:
        return False
    return all(
        first == second or any_ in (first, second)
        for (first, second), any_ in ((sources, ANY_SOURCE), (tags, ANY_TAG))
    )


checker("threads", "calls of threads against the thread level of their rank, and each other")(
    ThreadChecks
)
