"""The calls of a communicator, and the schedules of its ranks.

Ranks that make a call with the same arguments share one `ScheduledCall`, which the communicator
caches. Its schedules are those of `pysmpi.collectives.cache`, so they are stored once for all
communicators.

This module is compiled: every collective call passes through it.
"""

from __future__ import annotations

from typing import Final

from pysmpi.collectives.cache import CachedCall, cached_call, ready_from_creation
from pysmpi.collectives.call import Call
from pysmpi.collectives.layout import Nodes
from pysmpi.collectives.scheduled import CallCache, CallKey, ScheduledCall
from pysmpi.kernel.requests import Context
from pysmpi.kernel.schedule import REDUCE, Schedule
from pysmpi.mpi.collective.contribution import Contribution
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
    cache = communicator.call_cache
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
    cache = communicator.call_cache
    if cache.slots is None:
        processes = communicator.universe.processes
        cache.slots = Nodes(processes[pid].slot for pid in communicator.group)
    return cache.slots


def schedule_of(contribution: Contribution) -> tuple[Schedule, Context, int]:
    """The schedule of a rank, its context, and its rank in the context."""
    communicator, me = contribution.communicator, contribution.me
    scheduled = contribution.scheduled
    if communicator.remote is not communicator:
        context, first, _ = joint(communicator)
        schedule = schedule_between(communicator, of_rank(scheduled.call, me))
        return schedule, contribution.context or context, first + me
    cache = communicator.call_cache
    ready = _NO_LEVELS
    if len(cache.levels) > 0:
        ready = ready_before(communicator, _order(contribution))
    schedules = scheduled.schedules
    latest: Schedule | None = None
    if schedules is not None and (scheduled.ready is ready or scheduled.ready == ready):
        creators = scheduled.creators
        if scheduled.live:
            latest = UNDECIDED
        elif not creators or me not in creators:
            latest = schedules.get(me)
    if latest is None:
        latest = _build(contribution, cache, ready)
    return latest, contribution.context or communicator.coll, me


def _build(contribution: Contribution, cache: CallCache, ready: frozenset[str]) -> Schedule:
    """The schedule of a rank that is not cached yet; the node-level communicators `ready` exist."""
    scheduled, me = contribution.scheduled, contribution.me
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
    order = _order(contribution)
    if len(cache.levels) == 0:
        created = _ready_from_creation(contribution.communicator, scheduled.call)
        if created:
            cache.levels.append((BEFORE_CALLS, created))
            return _build(contribution, cache, created)
    if len(cache.levels) == 0 or cache.levels[-1][0] < order:
        cache.levels.append((order, after))
    return schedule


def _ready_from_creation(communicator: Communicator, call: Call) -> frozenset[str]:
    """The node-level communicators that exist before the first call."""
    world = communicator.universe.ranks[communicator.group[0]].world
    if world.communicator is communicator or communicator.kind == "window":
        return _NO_LEVELS
    return ready_from_creation(call)


def inherit_levels(communicator: Communicator, parent: Communicator) -> None:
    """Let the communicator of a window have the node-level communicators of its parent."""
    levels = parent.call_cache.levels
    if len(levels) > 0:
        ready = levels[-1][1]
    else:
        ready = _ready_from_creation(parent, scheduled_call(parent, 0, "barrier").call)
    if ready:
        communicator.call_cache.levels.append((BEFORE_CALLS, ready))


def ready_before(communicator: Communicator, order: int) -> frozenset[str]:
    """The node-level communicators that calls before this one have created.

    Those of a later call of a faster rank do not count.
    """
    ready: frozenset[str] = _NO_LEVELS
    for number, levels in communicator.call_cache.levels:
        if number < order:
            ready = levels
    return ready


def _order(contribution: Contribution) -> int:
    """The number of a call among those of its communicator: its creation, if it is persistent."""
    return contribution.number if contribution.number >= 0 else -contribution.number >> 32


def reduced(contribution: Contribution) -> list[float]:
    """The sizes (bytes) that the calling rank combines in a call, by its algorithm."""
    schedule, _, _ = schedule_of(contribution)
    return [
        schedule.amounts[index]
        for code, index in zip(schedule.codes, schedule.peers)
        if code == REDUCE
    ]
