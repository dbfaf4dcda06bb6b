"""The time of a collective call: its `Call`, its schedule, and the execution.

A `Contribution` is one rank's share of one collective call. It holds the `Call` from which
algorithms build the rank's schedule, and the rank's data. Time and data are separate: the kernel
executes the schedule. At its end, every rank on which this one depends has entered the call, so the
part copies its data directly from the other parts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pysmpi.collectives.cache import schedule_with_ready
from pysmpi.collectives.call import Call
from pysmpi.collectives.layout import Nodes
from pysmpi.collectives.running import Lookout, Patience, find_live
from pysmpi.kernel.requests import Context, KernelRequest
from pysmpi.kernel.schedule import REDUCE, Schedule
from pysmpi.mpi.base.constants import (
    ERR_INTERN,
    ERR_PROC_FAILED,
    ERR_REVOKED,
    ERR_TRUNCATE,
    SUCCESS,
)
from pysmpi.mpi.base.exceptions import fail
from pysmpi.mpi.base.ranks import Rank, Universe
from pysmpi.mpi.base.state import StateSlot
from pysmpi.mpi.datatypes.layouts import leaves
from pysmpi.mpi.datatypes.records import Type
from pysmpi.mpi.groups.agreement import tag_of
from pysmpi.mpi.groups.between_groups import joint, schedule_between
from pysmpi.mpi.groups.communicator import CollectiveState, Communicator

_NO_LEVELS: frozenset[str] = frozenset()

CallKey = tuple[str, int, int, int, bool, bool]


class Schedules:
    """The state of a communicator for the schedules of its calls.

    `calls` has its latest calls, by their arguments and by rank, `background` the non-blocking
    forms of these, and `latest` their schedules. `levels` has the node-level communicators that
    exist since a call, by its number. `arrivals` is the shared information of algorithms that
    decide while they run.
    """

    __slots__ = ("arrivals", "background", "calls", "latest", "levels", "slots")

    def __init__(self) -> None:
        self.slots: Nodes | None = None  # the place of each rank on the machine
        self.calls: dict[CallKey, dict[int, Call]] = {}
        self.background: dict[Call, Call] = {}
        self.latest: dict[object, Schedule] = {}
        self.levels: list[tuple[int, frozenset[str]]] = []
        self.arrivals: dict[Any, Any] = {}


SCHEDULES = StateSlot(Communicator, Schedules)
PATIENCE: StateSlot[Universe, Patience] = StateSlot(Universe)

# Stands for the schedule of an algorithm that decides while it runs.
UNDECIDED = Schedule()

# Number of different calls that a communicator caches, with their schedules.
LATEST = 16
# Approximate number of cached schedules of a communicator, counting each rank.
KEPT = 1_000_000

# The message of an error, by its class.
_DETAILS = {
    ERR_TRUNCATE: "more data has come than the receive buffer has room for",
    ERR_PROC_FAILED: "a process of the communicator has failed",
    ERR_REVOKED: "the communicator was revoked during the call",
    ERR_INTERN: "the algorithm let a rank go on before the data that it needs was there",
}


class Contribution:
    """One rank's contribution to a collective call, and its results.

    `collect` fills the receive buffer after the end of the schedule. `release` saves data that
    others still have to read, because the program may then change its buffer. `values` are the
    parts of the ranks that have entered; for an intercommunicator, those of the other side.
    """

    __slots__ = ("shared", "call", "collected", "context", "communicator", "error", "label", "me",
                 "number", "other", "request", "values")  # fmt: skip

    shared: CollectiveState
    other: CollectiveState
    values: dict[int, Any]
    number: int

    def __init__(self, communicator: Communicator, me: int, call: Call) -> None:
        self.communicator = communicator
        self.me = me
        self.call = call
        # Calls of different labels never match: blocking calls match only blocking ones (MPI 4.1,
        # 6.12).
        self.label = call.op
        self.context: Context | None = None
        self.request: KernelRequest | None = None  # of a non-blocking call
        self.collected = False
        self.error: int = SUCCESS

    def begin(self, number: int) -> None:
        """Enter the call of this number."""
        self.number = number
        shared = self.shared = self.communicator.enter(number, self.label, self.me, self)
        other = self.other = shared.remote or shared
        self.values = other.values

    def finish(self) -> int:
        """The schedule has ended: copy the data, and leave. Returns the error class."""
        if not self.collected:
            self.collected = True
            self.collect()
        other = self.other
        if other.left + (other is self.shared) < self.communicator.remote.size:
            self.release()  # a rank may still have to read this rank's data
        self.communicator.exit(self.number, self.shared)
        self.forget()
        return self.error

    def forget(self) -> None:
        """Release the shared state, which refers to the part: both are freed at once."""
        del self.shared, self.other, self.values

    def interrupted(self, rank: Rank) -> int:
        """The schedule has ended as it should, or because of a revocation or a failure."""
        if rank.pid in self.communicator.revoked:
            return ERR_REVOKED
        lost = self.communicator.p2p.lost or self.communicator.remote.p2p.lost
        return self.finish() if lost is None else ERR_PROC_FAILED

    def deliver(self) -> None:
        """Take the data before the own schedule has ended, because its source is leaving."""
        if not self.collected:
            self.collected = True
            self.collect()

    def collect(self) -> None:
        """Copy the data of this rank from the others."""

    def release(self) -> None:
        """Save data that others still have to read."""

    def complete(self) -> bool:
        """Whether all ranks have entered."""
        communicator = self.communicator
        return (
            len(self.values) == communicator.remote.size
            and len(self.shared.values) == communicator.size
        )

    def source(self, rank: int) -> Any:
        """The part of a sending rank; None, and an error, if it has not entered."""
        found = self.values.get(rank)
        if found is None:
            self.error = ERR_INTERN
        return found


class WithoutData(Contribution):
    """A collective call without data, such as a barrier."""

    __slots__ = ()

    def begin(self, number: int) -> None:
        """No contribution."""
        self.number = number

    def finish(self) -> int:
        """No result."""
        return SUCCESS


def units(record: Type) -> tuple[int, int]:
    """(units in an element, bytes of a unit) of a datatype, for algorithms.

    Ranks may describe the same data by different datatypes, but must cut it into the same pieces: a
    derived datatype therefore counts as its basic parts.
    """
    if record.unit:
        return 1, record.unit
    layout = record.layout
    if layout.size == 0:
        return 0, 1
    basic = list(leaves(layout.signature))
    if len(basic) == 1:
        size = basic[0].layout.size
        return layout.size // size, size
    return layout.size, 1


def call_of(
    communicator: Communicator,
    me: int,
    op: str,
    count: int = 0,
    type_size: int = 1,
    root: int = 0,
    commutative: bool = True,
    in_place: bool = False,
    send_counts: tuple[int, ...] | None = None,
    recv_counts: tuple[int, ...] | None = None,
    sources: tuple[int, ...] = (),
    destinations: tuple[int, ...] = (),
) -> Call:
    """The call of rank `me` on a communicator, which caches its latest calls of equal blocks."""
    universe = communicator.universe
    if send_counts is not None or recv_counts is not None or sources or destinations:
        nodes, slots = _places(communicator)
        return Call(
            op, me, communicator.size, root, count, type_size, send_counts, recv_counts,
            commutative, in_place, False, nodes, slots, universe.selection,
            sources=sources, destinations=destinations,
        )  # fmt: skip
    kept = SCHEDULES.of(communicator)
    key = (op, count, type_size, root, commutative, in_place)
    same = kept.calls.get(key)
    if same is None:
        if len(kept.calls) >= min(LATEST, 1 + KEPT // communicator.size):
            kept.calls.clear()
            kept.background.clear()
            kept.latest.clear()
        same = kept.calls[key] = {}
    call = same.get(me)
    if call is None:
        nodes, slots = _places(communicator)
        call = same[me] = Call(
            op, me, communicator.size, root, count, type_size, None, None, commutative, in_place,
            False, nodes, slots, universe.selection,
        )  # fmt: skip
    return call


def in_background(communicator: Communicator, call: Call) -> Call:
    """The non-blocking form of a call."""
    kept = SCHEDULES.of(communicator)
    found = kept.background.get(call)
    if found is None:
        found = call._replace(nonblocking=True)
        if call.send_counts is None and call.recv_counts is None and not call.destinations:
            kept.background[call] = found
    return found


def _places(communicator: Communicator) -> tuple[Nodes | None, Nodes | None]:
    """The nodes of the ranks, and their slots if the selection needs them."""
    if communicator.remote is not communicator:
        return None, None
    selection = communicator.universe.selection
    tries = selection is not None and selection.tuner is not None
    return nodes_of(communicator), slots_of(communicator) if tries else None


def count_of(record: Type, count: int) -> tuple[int, int]:
    """(number of units, bytes of a unit) of `count` elements of a datatype."""
    unit = record.unit
    if unit:
        return count, unit
    per, unit = units(record)
    return count * per, unit


def counts_of(record: Type, counts: Any) -> tuple[int, ...]:
    """Counts of elements as counts of units."""
    per, _ = units(record)
    return tuple(counts) if per == 1 else tuple(n * per for n in counts)


def nodes_of(communicator: Communicator) -> Nodes | None:
    """The node of each rank; None where every rank has one for itself."""
    known = communicator.nodes
    if known is None:
        ranks = communicator.universe.ranks
        hosts = [ranks[pid].host for pid in communicator.group]
        nodes = None
        if None not in hosts:
            numbers = [host.index for host in hosts]
            if len(set(numbers)) < len(numbers):
                nodes = Nodes(numbers)
        known = communicator.nodes = (nodes,)
    found: Nodes | None = known[0]
    return found


def slots_of(communicator: Communicator) -> Nodes:
    """The place of each rank on the machine."""
    kept = SCHEDULES.of(communicator)
    if kept.slots is None:
        processes = communicator.universe.processes
        kept.slots = Nodes(processes[pid].slot for pid in communicator.group)
    return kept.slots


def schedule_of(part: Contribution) -> tuple[Schedule, Context, int]:
    """The schedule of a rank, its context, and its rank in the context.

    The communicator caches the schedules of its latest calls: all its ranks will need them.
    """
    communicator, call = part.communicator, part.call
    if communicator.remote is not communicator:
        context, first, _ = joint(communicator)
        schedule = schedule_between(communicator, call)
        return schedule, part.context or context, first + call.rank
    schedules = SCHEDULES.of(communicator)
    # A persistent call counts at its creation.
    order = part.number if part.number >= 0 else -part.number >> 32
    before = ready_before(communicator, order) if schedules.levels else _NO_LEVELS
    key: object = (call, before) if before else call
    known = schedules.latest.get(key)
    if known is None:
        if before:
            call = call._replace(ready=before)
        if find_live(call) is not None:
            known, after = UNDECIDED, before
        else:
            known, after = schedule_with_ready(call)
        if after != before:
            history = schedules.levels
            if not history or history[-1][0] < order:
                history.append((order, after))
        elif call.send_counts is None and call.recv_counts is None and not call.destinations:
            schedules.latest[key] = known
    return known, part.context or communicator.coll, call.rank


def reduced(part: Contribution) -> list[float]:
    """The sizes (bytes) that the calling rank combines in a call, by its algorithm."""
    schedule, _, _ = schedule_of(part)
    return [
        schedule.amounts[where]
        for code, where in zip(schedule.codes, schedule.peers)
        if code == REDUCE
    ]


def decided(part: Contribution, context: Context, me: int, tag: int) -> Iterator[Schedule]:
    """The schedules of an algorithm that decides while it runs, one after another."""
    communicator, call = part.communicator, part.call
    live = find_live(call)
    assert live is not None
    universe = communicator.universe
    patience = PATIENCE.peek(universe)
    if patience is None:
        settings = universe.settings
        patience = Patience(settings.iprobe, settings.grow_injected_times)
        PATIENCE.put(universe, patience)
    look = Lookout(context, me, tag, SCHEDULES.of(communicator).arrivals, patience)
    yield from live(call, look)
    look.leave()


def ready_before(communicator: Communicator, order: int) -> frozenset[str]:
    """The node-level communicators that calls before this one have created.

    Those of a later call of a faster rank do not count.
    """
    ready: frozenset[str] = _NO_LEVELS
    for number, levels in SCHEDULES.of(communicator).levels:
        if number < order:
            ready = levels
    return ready


def alone(part: Contribution) -> bool:
    """Whether the call takes no messages because its rank is the only one."""
    communicator = part.communicator
    return (
        communicator.size == 1
        and communicator.remote is communicator
        and not part.call.op.startswith("neighbor")
    )


def run(rank: Rank, subject: object, part: Contribution) -> None:
    """Do a blocking call."""
    process = rank.process
    communicator = part.communicator
    number = communicator.next_call(part.me)
    part.begin(number)
    listeners = rank.engine.listeners
    if listeners.collective_entered is not None:
        listeners.notify("collective_entered", part, rank)
    if communicator.size != 1 or not alone(part):
        schedule, context, me = schedule_of(part)
        tag = tag_of(number, part.label)
        if schedule is not UNDECIDED:
            process.execute(schedule, context, me, tag)
        else:
            for piece in decided(part, context, me, tag):
                process.execute(piece, context, me, tag)
    error = part.finish() if not communicator.revoked else part.interrupted(rank)
    if listeners.collective_left is not None:
        listeners.notify("collective_left", part, rank)
    if error:
        fail(error, _DETAILS.get(error, ""), subject)
