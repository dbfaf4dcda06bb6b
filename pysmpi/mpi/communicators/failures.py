"""Processes that fail while others go on, and agreements among those that live.

A failure is known to all at once. Waits that only the failed process could end are over then, and
report ERR_PROC_FAILED, as do collective operations of its communicators.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pysmpi.kernel.matching import ANY, Mailbox, mailbox_at, mailboxes_of
from pysmpi.kernel.requests import Context, KernelRequest, Losses
from pysmpi.mpi.base.ranks import Rank, Universe
from pysmpi.mpi.base.state import StateSlot
from pysmpi.mpi.groups.between_groups import joint
from pysmpi.mpi.groups.communicator import PERSISTENT, Communicator
from pysmpi.mpi.point_to_point.partitioned import STARTED

NOTICE_BYTES = 8  # of a message of an agreement


class LostMembers:
    """The pids of the processes that failed, in this order, and the numbers that each rank has
    acknowledged on each communicator."""

    def __init__(self) -> None:
        self.pids: list[int] = []
        self.acknowledged: dict[tuple[int, int], int] = {}


FAILED: StateSlot[Universe, LostMembers] = StateSlot(Universe, LostMembers)


class Aware(set[int]):
    """The pids of members that know of a revocation; calls look at it even if there are none."""

    def __bool__(self) -> bool:
        return True


class Agreement:
    """One call in which all living members of a communicator take part."""

    def __init__(self, members: Sequence[int], make: Callable[[dict[int, object]], object]) -> None:
        self.members = members
        self.make = make
        self.values: dict[int, object] = {}  # by pid
        self.requests: list[KernelRequest] = []
        self.result: Any = None
        self.over = False


class Agreements:
    """The agreements of a communicator: those that are not over, and the calls of each pid."""

    def __init__(self) -> None:
        self.open: dict[tuple[int, str], Agreement] = {}
        self.calls: dict[int, int] = {}


AGREEMENTS: StateSlot[Communicator, Agreements] = StateSlot(Communicator, Agreements)


def owner(communicator: Communicator) -> Communicator:
    """The side of an intercommunicator that keeps the common state."""
    return min(communicator, communicator.remote, key=lambda side: side.p2p.number)


def members(communicator: Communicator) -> list[int]:
    """The pids of a communicator, of both groups of an intercommunicator."""
    if not communicator.inter:
        return list(communicator.group)
    return [*communicator.group, *communicator.remote.group]


def failed(communicator: Communicator) -> list[int]:
    """The pids of the members that have failed, in the order of their failures."""
    among = set(members(communicator))
    return [pid for pid in FAILED.of(communicator.universe).pids if pid in among]


def meet(
    rank: Rank,
    communicator: Communicator,
    operation: str,
    value: object,
    make: Callable[[dict[int, object]], object],
) -> tuple[Agreement, KernelRequest]:
    """Take part in the next agreement: its request completes when all living members do.

    `make` gets their values by pid, and makes the result of all.
    """
    state = AGREEMENTS.of(owner(communicator))
    number = state.calls.get(rank.pid, 0)
    state.calls[rank.pid] = number + 1
    key = number, operation
    agreement = state.open.get(key)
    if agreement is None:
        agreement = state.open[key] = Agreement(members(communicator), make)
    agreement.values[rank.pid] = value
    request = KernelRequest()
    agreement.requests.append(request)
    _conclude(communicator.universe, state, key)
    return agreement, request


def _conclude(universe: Universe, state: Agreements, key: tuple[int, str]) -> None:
    """End an agreement if no member is missing."""
    agreement = state.open[key]
    dead = set(FAILED.of(universe).pids)
    living = [pid for pid in agreement.members if pid not in dead]
    if any(pid not in agreement.values for pid in living):
        return
    del state.open[key]
    agreement.result = agreement.make({pid: agreement.values[pid] for pid in living})
    agreement.over = True
    engine = universe.engine
    processes = universe.processes
    # To the root of a tree and back, for the slowest pair that the first member belongs to.
    book, first = engine.book, processes[living[0]].slot
    slots = {processes[pid].slot for pid in living}
    latency = max(book.plan(first, slot, NOTICE_BYTES).latency for slot in slots)
    time = engine.now + 2 * (len(living) - 1).bit_length() * latency
    for request in agreement.requests:
        engine.complete_at(time, request)


def spread(universe: Universe, pids: Sequence[int]) -> None:
    """Processes have failed: end the waits for them."""
    known = FAILED.of(universe).pids
    new = [pid for pid in pids if pid not in known]
    known += new
    now = universe.engine.now
    cores: dict[Communicator, None] = dict.fromkeys(universe.communicators.values())
    for communicator in sorted(cores, key=lambda one: one.p2p.number):
        lost = [pid for pid in new if pid in communicator.group]
        if lost:
            _break(communicator, lost, now)
    for communicator in sorted(cores, key=lambda one: one.p2p.number):
        state = AGREEMENTS.of(communicator)
        for key in list(state.open):
            _conclude(universe, state, key)


def _break(communicator: Communicator, pids: list[int], now: float) -> None:
    """Members of one side of a communicator have failed."""
    ranks = {communicator.group.rank_of(pid) for pid in pids}
    for side in dict.fromkeys((communicator, communicator.remote)):
        if not side.revoked:
            side.revoked = Aware(side.revoked)
        # Calls no longer use the short path to their rank, which checks nothing.
        side.first = side.p2p.first = -1
        for context in (side.p2p, side.remote.p2p):
            if context.lost is None:
                context.lost = Losses()
            if context.closed is None:
                context.closed = set()
    # The messages of the other side arrive at the members of this one, and the reverse.
    there, back = communicator.p2p, communicator.remote.p2p
    assert there.lost is not None and back.lost is not None
    there.lost.destinations |= ranks
    back.lost.sources |= ranks
    back.lost.wary = set(range(len(back.members)))
    for place in ranks:
        box: Any = mailbox_at(there, place)
        for send in [] if box is None else box.waiting():
            if not send.flowing:
                _withdraw_send(box, send, now)
    for side in dict.fromkeys((communicator, communicator.remote)):
        for operation in list(STARTED.of(side)):
            operation.interrupt()
        for me in range(side.size):
            for context, place in collective_contexts(side, me):
                if context.closed is None:
                    context.closed = set()
                context.closed.add(place)
                withdraw(context, place, place, now)
    for place in range(len(back.members)):
        box = mailbox_at(back, place)
        if box is not None:
            _end_receives(box, ranks, now)


def _withdraw_send(box: Mailbox, send: Any, now: float) -> None:
    box.cancel(send)
    send.detached = False
    if not send.done:
        send.complete(now)
    if send.arrival is not None:
        send.arrival.complete(now)


def _end_receives(box: Mailbox, ranks: set[int], now: float) -> None:
    """End receives and probes that failed ranks could have answered."""
    for receive in box.posted():
        if receive.source in ranks or receive.source == ANY:
            box.cancel(receive)
            receive.truncated = True
            receive.complete(now)
    for probe in list(box.index.probes):
        if probe.source in ranks or probe.source == ANY:
            box.unwatch(probe)
            probe.truncated = True
            probe.complete(now)


def acknowledge(rank: Rank, communicator: Communicator, number: int | None) -> int:
    """Acknowledge the first failures, or all; return the number of acknowledged ones."""
    found = failed(communicator)
    state = FAILED.of(communicator.universe)
    key = communicator.p2p.number, rank.pid
    before = state.acknowledged.get(key, 0)
    wanted = len(found) if number is None else min(max(number, 0), len(found))
    count = state.acknowledged[key] = max(before, wanted)
    lost = communicator.p2p.lost
    if lost is not None and count == len(found):
        lost.wary.discard(communicator.group.rank_of(rank.pid))
    return count


def acknowledged(communicator: Communicator, pid: int) -> int:
    """The number of failures of a communicator that a rank has acknowledged."""
    return FAILED.of(communicator.universe).acknowledged.get((communicator.p2p.number, pid), 0)


def collective_contexts(side: Communicator, me: int) -> Iterable[tuple[Context, int]]:
    """The contexts in which schedules send, and the rank of a member in each."""
    yield side.coll, me
    place = me
    owner = side
    if side.inter:
        context, first, owner = joint(side)
        place = first + me
        yield context, place
    elif side.leaders is not None:
        yield side.leaders, me
    for private in PERSISTENT.of(owner).values():
        yield private.context, place


def withdraw(context: Context, receiver: int | None, sender: int | None, now: float) -> None:
    """End the receives of one rank in a context, and its unmatched sends.

    Waiting calls find that they have no message, or that the message has not arrived.
    """
    box = None if receiver is None else mailbox_at(context, receiver)
    if box is not None:
        for receive in box.posted():
            box.cancel(receive)
            receive.truncated = True
            receive.complete(now)
        for probe in list(box.index.probes):
            box.unwatch(probe)
            probe.complete(now)
    if sender is not None:
        for box in mailboxes_of(context).values():
            _withdraw_sends(box, sender, now)


def _withdraw_sends(box: Mailbox, sender: int, now: float) -> None:
    for request in box.waiting():
        if request.source != sender or request.flowing:
            continue
        box.cancel(request)
        if not request.done:
            request.complete(now)
        if request.arrival is not None:
            request.arrival.complete(now)
