"""The time of a collective call: its `Call`, its schedule, and the execution.

This module is compiled: every collective call passes through it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from pysmpi.collectives.cache import ready_from_creation, schedule_with_ready
from pysmpi.collectives.call import Call
from pysmpi.collectives.layout import Nodes
from pysmpi.collectives.running import Lookout, Patience, find_live
from pysmpi.kernel.process import Process
from pysmpi.kernel.requests import Context
from pysmpi.kernel.schedule import REDUCE, Schedule
from pysmpi.mpi.base.constants import (
    ERR_INTERN,
    ERR_PROC_FAILED,
    ERR_REVOKED,
    ERR_TRUNCATE,
)
from pysmpi.mpi.base.exceptions import fail
from pysmpi.mpi.base.ranks import Rank, Universe
from pysmpi.mpi.base.running import calling_rank
from pysmpi.mpi.base.state import StateSlot
from pysmpi.mpi.collective.contribution import Contribution
from pysmpi.mpi.collective.in_place import misplaced
from pysmpi.mpi.datatypes.layouts import leaves
from pysmpi.mpi.datatypes.records import Type
from pysmpi.mpi.groups.agreement import tag_of
from pysmpi.mpi.groups.between_groups import joint, schedule_between
from pysmpi.mpi.groups.communicator import Communicator

_NO_LEVELS: frozenset[str] = frozenset()

CallKey = tuple[str, int, int, int, bool, bool, tuple[int, ...] | None]

# In the place of the rank in a call of all ranks with the same arguments, and of the count if it
# is the one of `recv_counts` that belongs to the rank.
OWN: Final = -1

# Operations whose counts are the same on every rank. The count of a rank follows from them, but for
# an intercommunicator, whose counts are those of the other group.
ALIKE: Final = frozenset({"allgatherv", "reduce_scatter"})


class SameCalls:
    """The calls of all ranks with the same arguments (`key`): one for all, and a schedule for each.

    `call` is of no rank, see `of_rank`. `background` is the non-blocking form. A list of all ranks
    takes less memory than a dictionary of most of them.
    """

    __slots__ = ("background", "call", "key", "schedules")

    def __init__(self, call: Call, key: CallKey) -> None:
        self.key = key
        self.call = call
        self.schedules: list[Schedule | None] = [None] * call.size
        self.background: SameCalls | None = None


class Schedules:
    """The state of a communicator for the schedules of its calls.

    `calls` has its latest calls by their arguments, `latest` is one of them; `after_levels` has the
    schedules of a call and a rank after which node-level communicators exist. `levels` has the
    node-level communicators that exist since a call, by its number. `arrivals` is the shared
    information of algorithms that decide while they run.
    """

    __slots__ = ("after_levels", "arrivals", "calls", "latest", "levels", "slots")

    def __init__(self) -> None:
        self.slots: Nodes | None = None  # the place of each rank on the machine
        self.calls: dict[CallKey, SameCalls] = {}
        self.latest: SameCalls | None = None
        self.after_levels: dict[tuple[Call, int, frozenset[str]], Schedule] = {}
        self.levels: list[tuple[int, frozenset[str]]] = []
        self.arrivals: dict[Any, Any] = {}


SCHEDULES: Final[StateSlot[Communicator, Schedules]] = StateSlot(Communicator, Schedules)
PATIENCE: Final[StateSlot[Universe, Patience]] = StateSlot(Universe)

# Stands for the schedule of an algorithm that decides while it runs.
UNDECIDED: Final = Schedule()

# The number, among the calls of a communicator, of its creation.
BEFORE_CALLS: Final = -1

# Number of different calls that a communicator caches, with their schedules.
LATEST: Final = 16
# Approximate number of cached schedules of a communicator, counting each rank.
KEPT: Final = 1_000_000

# The message of an error, by its class.
_DETAILS = {
    ERR_TRUNCATE: "more data has arrived than the receive buffer can hold",
    ERR_PROC_FAILED: "a process of the communicator has failed",
    ERR_REVOKED: "the communicator was revoked during the call",
    ERR_INTERN: "the algorithm let a rank go on before its data had arrived",
}


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
    """The call of rank `me` on a communicator.

    It caches its latest calls that many ranks make with the same arguments; these are of no rank.
    """
    alike = recv_counts is None or op in ALIKE
    if send_counts is not None or not alike or sources or destinations:
        nodes, slots = _places(communicator)
        return Call(
            op, me, communicator.size, root, count, type_size, send_counts, recv_counts,
            commutative, in_place, False, nodes, slots, communicator.universe.selection,
            sources=sources, destinations=destinations,
        )  # fmt: skip
    kept = SCHEDULES.of(communicator)
    same = kept.latest
    counted = recv_counts is not None and communicator.remote is communicator
    equal = 0 if counted else count
    if same is None or not _is_of(
        same.key, op, equal, type_size, root, commutative, in_place, recv_counts
    ):
        key = (op, equal, type_size, root, commutative, in_place, recv_counts)
        same = kept.calls.get(key)
        if same is None:
            if len(kept.calls) >= max(1, min(LATEST, KEPT // communicator.size)):
                kept.calls.clear()
                kept.after_levels.clear()
            nodes, slots = _places(communicator)
            common = OWN if counted and op == "allgatherv" else count
            call = Call(
                op, OWN, communicator.size, root, common, type_size, None, recv_counts,
                commutative, in_place, False, nodes, slots, communicator.universe.selection,
            )  # fmt: skip
            same = kept.calls[key] = SameCalls(call, key)
        kept.latest = same
    return same.call


def of_rank(call: Call, me: int) -> Call:
    """The call of rank `me`, by the call of all ranks; or its own, as it is."""
    if call.rank != OWN:
        return call
    own = Call._make((call.op, me, *call[2:]))
    counts = call.recv_counts
    return own if call.count != OWN or counts is None else own._replace(count=counts[me])


def _is_of(
    key: CallKey,
    op: str,
    count: int,
    type_size: int,
    root: int,
    commutative: bool,
    in_place: bool,
    recv_counts: tuple[int, ...] | None,
) -> bool:
    """Whether a call has these arguments; a comparison takes less time than a search."""
    return (
        key[0] == op and key[1] == count and key[2] == type_size and key[3] == root
        and key[4] == commutative and key[5] == in_place and key[6] == recv_counts
    )  # fmt: skip


def in_background(communicator: Communicator, call: Call) -> Call:
    """The non-blocking form of a call."""
    same = _find(SCHEDULES.of(communicator), call)
    if same is None:
        return call._replace(nonblocking=True)
    if same.background is None:
        same.background = SameCalls(call._replace(nonblocking=True), same.key)
    return same.background.call


def _find(kept: Schedules, call: Call) -> SameCalls | None:
    """The calls among which a communicator has cached one; None if it has not."""
    latest = kept.latest
    if latest is not None and latest.call is call:
        return latest
    for same in kept.calls.values():
        if same.call is call:
            return same
        background = same.background
        if background is not None and background.call is call:
            return background
    return None


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


def counts_of(record: Type, counts: Sequence[int]) -> tuple[int, ...]:
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


def schedule_of(contribution: Contribution) -> tuple[Schedule, Context, int]:
    """The schedule of a rank, its context, and its rank in the context.

    The communicator caches the schedules of its latest calls: all its ranks will need them.
    """
    communicator, call, me = contribution.communicator, contribution.call, contribution.me
    if communicator.remote is not communicator:
        context, first, _ = joint(communicator)
        schedule = schedule_between(communicator, of_rank(call, me))
        return schedule, contribution.context or context, first + me
    schedules = SCHEDULES.of(communicator)
    if len(schedules.levels) > 0:
        schedule = _schedule_on_levels(contribution, schedules)
        return schedule, contribution.context or communicator.coll, me
    same = _find(schedules, call)
    if same is not None:
        latest = same.schedules[me]
        if latest is not None:
            return latest, contribution.context or communicator.coll, me
    known, ready = _built(of_rank(call, me), _NO_LEVELS)
    if ready != _NO_LEVELS:
        created = _ready_from_creation(communicator, call)
        if created:
            schedules.levels.append((BEFORE_CALLS, created))
            schedule = _schedule_on_levels(contribution, schedules)
            return schedule, contribution.context or communicator.coll, me
        schedules.levels.append((_order(contribution), ready))
    elif same is not None:
        same.schedules[me] = known
    return known, contribution.context or communicator.coll, me


def _ready_from_creation(communicator: Communicator, call: Call) -> frozenset[str]:
    """The node-level communicators that exist before the first call."""
    world = communicator.universe.ranks[communicator.group[0]].world
    if world.communicator is communicator or communicator.kind == "window":
        return _NO_LEVELS
    return ready_from_creation(call)


def inherit_levels(communicator: Communicator, parent: Communicator) -> None:
    """Let the communicator of a window have the node-level communicators of its parent."""
    known = SCHEDULES.of(parent).levels
    if len(known) > 0:
        ready = known[-1][1]
    else:
        ready = _ready_from_creation(parent, call_of(parent, 0, "barrier"))
    if ready:
        SCHEDULES.of(communicator).levels.append((BEFORE_CALLS, ready))


def _schedule_on_levels(contribution: Contribution, schedules: Schedules) -> Schedule:
    """The schedule of a rank on a communicator with node-level communicators."""
    call, me = contribution.call, contribution.me
    order = _order(contribution)
    before = ready_before(contribution.communicator, order)
    known = schedules.after_levels.get((call, me, before))
    if known is None:
        own = of_rank(call, me)
        known, ready = _built(own._replace(ready=before) if before else own, before)
        if ready != before:
            if schedules.levels[-1][0] < order:
                schedules.levels.append((order, ready))
        elif _recurs(call):
            schedules.after_levels[call, me, before] = known
    return known


def _order(contribution: Contribution) -> int:
    """The number of a call among those of its communicator: its creation, if it is persistent."""
    return contribution.number if contribution.number >= 0 else -contribution.number >> 32


def _built(call: Call, ready: frozenset[str]) -> tuple[Schedule, frozenset[str]]:
    """A schedule, and the node-level communicators that exist after it; `ready` exist before."""
    if find_live(call) is not None:
        return UNDECIDED, ready
    return schedule_with_ready(call)


def _recurs(call: Call) -> bool:
    """Whether the communicator has the same object for the next equal call."""
    alike: bool = call.recv_counts is None or call.op in ALIKE
    return alike and call.send_counts is None and not call.destinations


def reduced(contribution: Contribution) -> list[float]:
    """The sizes (bytes) that the calling rank combines in a call, by its algorithm."""
    schedule, _, _ = schedule_of(contribution)
    return [
        schedule.amounts[where]
        for code, where in zip(schedule.codes, schedule.peers)
        if code == REDUCE
    ]


def decided(contribution: Contribution, context: Context, me: int, tag: int) -> Iterator[Schedule]:
    """The schedules of an algorithm that decides while it runs, one after another."""
    communicator, call = contribution.communicator, of_rank(contribution.call, me)
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


def alone(contribution: Contribution) -> bool:
    """Whether the call takes no messages because its rank is the only one."""
    communicator = contribution.communicator
    return (
        communicator.size == 1
        and communicator.remote is communicator
        and not contribution.call.op.startswith("neighbor")
    )


def run(subject: object, contribution: Contribution) -> None:
    """Do a blocking call; `subject` is the handle for errors."""
    rank = calling_rank()
    if _prepared(rank, contribution):
        process: Process = rank.process
        process.perform()
    _leave(rank, subject, contribution)


def _prepared(rank: Rank, contribution: Contribution) -> bool:
    """Enter a call; whether its messages are still to be performed by the process."""
    process: Process = rank.process
    communicator = contribution.communicator
    number = communicator.next_call(contribution.me)
    contribution.begin(number)
    listeners = rank.engine.listeners
    if listeners.collective_entered is not None:
        listeners.notify("collective_entered", contribution, rank)
    else:
        contribution.settle()
    if communicator.size == 1 and alone(contribution):
        return False
    schedule, context, me = schedule_of(contribution)
    tag = tag_of(number, contribution.label)
    if schedule is not UNDECIDED:
        process.prepare(schedule, context, me, tag)
        return True
    for piece in decided(contribution, context, me, tag):
        process.execute(piece, context, me, tag)
    return False


def _leave(rank: Rank, subject: object, contribution: Contribution) -> None:
    """Take the data of a call and leave it."""
    communicator = contribution.communicator
    listeners = rank.engine.listeners
    error = contribution.finish() if not communicator.revoked else contribution.interrupted(rank)
    if listeners.collective_left is not None:
        listeners.notify("collective_left", contribution, rank)
    if error:
        fail(error, detail_of(contribution, error), subject)


def detail_of(contribution: Contribution, error: int) -> str:
    """The message of an error that has ended a call."""
    said = _DETAILS.get(error, "")
    given = misplaced(contribution.communicator, contribution.number)
    return f"{said}; {given}" if given else said
