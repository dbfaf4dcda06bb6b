"""The calls of a communicator, and the schedules of its ranks.

Ranks that make a call with the same arguments share one `ScheduledCall`, which the communicator
caches. Its schedules are those of `pysmpi.collectives.cache`, so they are stored once for all
communicators.

This module is compiled: every collective call passes through it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from pysmpi.collectives.cache import CachedCall, cached_call, ready_from_creation
from pysmpi.collectives.call import Call
from pysmpi.collectives.layout import Nodes
from pysmpi.collectives.running import Lookout, Patience, find_live
from pysmpi.kernel.requests import Context
from pysmpi.kernel.schedule import Schedule
from pysmpi.mpi.base.ranks import Universe
from pysmpi.mpi.base.state import StateSlot
from pysmpi.mpi.groups.between_groups import joint, schedule_between
from pysmpi.mpi.groups.communicator import Communicator

_NO_LEVELS: Final[frozenset[str]] = frozenset()

# In place of the rank in a call of all ranks with the same arguments, and in place of the count if
# each rank has its own of `recv_counts`.
OWN: Final = -1

# Operations whose counts are the same on every rank. The count of a rank follows from them, but for
# an intercommunicator, whose counts are those of the other group.
ALIKE: Final = frozenset({"allgatherv", "reduce_scatter"})


# Stands for the schedule of an algorithm that decides while it runs.
UNDECIDED: Final = Schedule()

# The number, among the calls of a communicator, of its creation.
BEFORE_CALLS: Final = -1

# Number of different calls that a communicator caches, with their schedules.
LATEST: Final = 16
# Approximate number of cached schedules of a communicator, counting each rank.
MOST_SCHEDULES: Final = 1_000_000

PATIENCE: Final[StateSlot[Universe, Patience]] = StateSlot(Universe)

# Operation, count, bytes of an element, root, whether the operator commutes, whether in place, and
# the counts of all ranks.
CallKey = tuple[str, int, int, int, bool, bool, tuple[int, ...] | None]


class ScheduledCall:
    """A call on a communicator, and the schedules of its ranks.

    `key` has its arguments if all ranks make it with the same: then `call` is of no rank.
    `schedules`, by rank, are those of the latest time, when the node-level communicators `ready`
    existed; `creators` are the ranks whose schedules create such communicators. `live`: there are
    none, because the algorithm decides while it runs.
    """

    __slots__ = ("background", "call", "creators", "key", "live", "ready", "schedules")

    def __init__(self, call: Call, key: CallKey | None) -> None:
        self.call = call
        self.key = key
        self.schedules: dict[int, Schedule] | None = None
        self.creators: dict[int, frozenset[str]] | None = None
        self.live = False
        self.ready: frozenset[str] = call.ready
        self.background: ScheduledCall | None = None

    def nonblocking(self) -> ScheduledCall:
        """The non-blocking form of the call."""
        background = self.background
        if background is None:
            background = ScheduledCall(self.call._replace(nonblocking=True), self.key)
            if self.key is not None:
                self.background = background
        return background


class CallCache:
    """The cached calls of a communicator.

    `calls` has its latest calls by their arguments, `latest` is one of them. `levels` has the
    node-level communicators that exist since a call, by its number. `arrivals` is the shared
    information of algorithms that decide while they run.
    """

    __slots__ = ("arrivals", "calls", "latest", "levels", "slots")

    def __init__(self) -> None:
        self.slots: Nodes | None = None  # the slot of each rank on the machine
        self.calls: dict[CallKey, ScheduledCall] = {}
        self.latest: ScheduledCall | None = None
        self.levels: list[tuple[int, frozenset[str]]] = []
        self.arrivals: dict[Any, Any] = {}


def _cache_of(communicator: Communicator) -> CallCache:
    """The cached calls of a communicator."""
    cache: CallCache | None = communicator.call_cache
    if cache is None:
        cache = communicator.call_cache = CallCache()
    return cache


def scheduled_call(
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
) -> ScheduledCall:
    """The call of rank `me` on a communicator, which caches calls that do not depend on the rank.

    See `Call` for the arguments.
    """
    alike = recv_counts is None or op in ALIKE
    if send_counts is not None or not alike or sources or destinations:
        nodes, slots = _hosts(communicator)
        call = Call(
            op, me, communicator.size, root, count, type_size, send_counts, recv_counts,
            commutative, in_place, False, nodes, slots, communicator.universe.selection,
            sources=sources, destinations=destinations,
        )  # fmt: skip
        return ScheduledCall(call, None)
    cache = _cache_of(communicator)
    scheduled = cache.latest
    counted = recv_counts is not None and communicator.remote is communicator
    equal = 0 if counted else count
    if scheduled is None or not _is_of(
        scheduled.key, op, equal, type_size, root, commutative, in_place, recv_counts
    ):
        key = (op, equal, type_size, root, commutative, in_place, recv_counts)
        scheduled = cache.calls.get(key)
        if scheduled is None:
            if len(cache.calls) >= max(1, min(LATEST, MOST_SCHEDULES // communicator.size)):
                cache.calls.clear()
            nodes, slots = _hosts(communicator)
            common = OWN if counted and op == "allgatherv" else count
            call = Call(
                op, OWN, communicator.size, root, common, type_size, None, recv_counts,
                commutative, in_place, False, nodes, slots, communicator.universe.selection,
            )  # fmt: skip
            scheduled = cache.calls[key] = ScheduledCall(call, key)
        cache.latest = scheduled
    return scheduled


def of_rank(call: Call, me: int) -> Call:
    """The call of rank `me`, by the call of all ranks; or its own, as it is."""
    if call.rank != OWN:
        return call
    own = Call._make((call.op, me, *call[2:]))
    counts = call.recv_counts
    return own if call.count != OWN or counts is None else own._replace(count=counts[me])


def _is_of(
    key: CallKey | None,
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
        key is not None and key[0] == op and key[1] == count and key[2] == type_size
        and key[3] == root and key[4] == commutative and key[5] == in_place
        and key[6] == recv_counts
    )  # fmt: skip


def _hosts(communicator: Communicator) -> tuple[Nodes | None, Nodes | None]:
    """The nodes of the ranks, and their slots if the selection needs them."""
    if communicator.remote is not communicator:
        return None, None
    selection = communicator.universe.selection
    tries = selection is not None and selection.tuner is not None
    return nodes_of(communicator), slots_of(communicator) if tries else None


def nodes_of(communicator: Communicator) -> Nodes | None:
    """The node of each rank; None where every rank has one for itself."""
    if communicator.nodes is None:
        ranks = communicator.universe.ranks
        hosts = [ranks[pid].host for pid in communicator.group]
        nodes = None
        if None not in hosts:
            numbers = [host.index for host in hosts]
            if len(set(numbers)) < len(numbers):
                nodes = Nodes(numbers)
        communicator.nodes = (nodes,)
    result: Nodes | None = communicator.nodes[0]
    return result


def slots_of(communicator: Communicator) -> Nodes:
    """The slot of each rank on the machine."""
    cache = _cache_of(communicator)
    if cache.slots is None:
        processes = communicator.universe.processes
        cache.slots = Nodes(processes[pid].slot for pid in communicator.group)
    return cache.slots


def schedule_of(
    communicator: Communicator, me: int, scheduled: ScheduledCall, number: int
) -> tuple[Schedule, Context, int]:
    """The schedule of rank `me` in the call of this number, its context, and its rank in that.

    `UNDECIDED` if the algorithm decides while it runs.
    """
    if communicator.remote is not communicator:
        context, first, _ = joint(communicator)
        return schedule_between(communicator, of_rank(scheduled.call, me)), context, first + me
    ready = _NO_LEVELS
    if len(_cache_of(communicator).levels) > 0:
        ready = ready_before(communicator, _order(number))
    schedules = scheduled.schedules
    latest: Schedule | None = None
    if schedules is not None and (scheduled.ready is ready or scheduled.ready == ready):
        creators = scheduled.creators
        if scheduled.live:
            latest = UNDECIDED
        elif not creators or me not in creators:
            latest = schedules.get(me)
    if latest is None:
        latest = _build(communicator, me, scheduled, number, ready)
    return latest, communicator.coll, me


def _build(
    communicator: Communicator,
    me: int,
    scheduled: ScheduledCall,
    number: int,
    ready: frozenset[str],
) -> Schedule:
    """The schedule of a rank that is not cached yet; the node-level communicators `ready` exist."""
    call = of_rank(scheduled.call, me)
    if ready:
        call = call._replace(ready=ready)
    cached: CachedCall = cached_call(call)
    schedule: Schedule = UNDECIDED if cached.live else cached.schedules[me]
    after: frozenset[str] = cached.ready.get(me, ready)
    if after == ready:
        if scheduled.key is not None:
            scheduled.schedules = cached.schedules
            scheduled.creators = cached.ready
            scheduled.live = cached.live is True
            scheduled.ready = ready
        return schedule
    # The call creates node-level communicators, once.
    order = _order(number)
    levels = _cache_of(communicator).levels
    if len(levels) == 0:
        created = _ready_from_creation(communicator, scheduled.call)
        if created:
            levels.append((BEFORE_CALLS, created))
            return _build(communicator, me, scheduled, number, created)
    if len(levels) == 0 or levels[-1][0] < order:
        levels.append((order, after))
    return schedule


def decided(
    communicator: Communicator, call: Call, context: Context, me: int, tag: int
) -> Iterator[Schedule]:
    """The schedules of an algorithm that decides while it runs, one after another."""
    call = of_rank(call, me)
    live = find_live(call)
    assert live is not None
    universe = communicator.universe
    patience = PATIENCE.peek(universe)
    if patience is None:
        settings = universe.settings
        patience = Patience(settings.iprobe, settings.grow_injected_times)
        PATIENCE.put(universe, patience)
    look = Lookout(context, me, tag, _cache_of(communicator).arrivals, patience)
    yield from live(call, look)
    look.leave()


def _ready_from_creation(communicator: Communicator, call: Call) -> frozenset[str]:
    """The node-level communicators that exist before the first call."""
    world = communicator.universe.ranks[communicator.group[0]].world
    if world.communicator is communicator or communicator.kind == "window":
        return _NO_LEVELS
    return ready_from_creation(call)


def inherit_levels(communicator: Communicator, parent: Communicator) -> None:
    """Let the communicator of a window have the node-level communicators of its parent."""
    levels = _cache_of(parent).levels
    if len(levels) > 0:
        ready = levels[-1][1]
    else:
        ready = _ready_from_creation(parent, scheduled_call(parent, 0, "barrier").call)
    if ready:
        _cache_of(communicator).levels.append((BEFORE_CALLS, ready))


def ready_before(communicator: Communicator, order: int) -> frozenset[str]:
    """The node-level communicators that calls before this one have created.

    Those of a later call of a faster rank do not count.
    """
    ready: frozenset[str] = _NO_LEVELS
    for number, levels in _cache_of(communicator).levels:
        if number < order:
            ready = levels
    return ready


def _order(number: int) -> int:
    """The number of a call among those of its communicator: its creation, if it is persistent."""
    return number if number >= 0 else -number >> 32
