"""The cache of schedules: one is built once for a rank, an algorithm, sizes and a root.

It serves all communicators, replays and runs; `forget` clears it between runs.
"""

from __future__ import annotations

from collections import OrderedDict

from pysmpi.collectives.building import build
from pysmpi.collectives.call import Call
from pysmpi.collectives.running import find_live
from pysmpi.kernel import numbers
from pysmpi.kernel.schedule import Schedule

SHORT = 32  # steps of a schedule with columns that other ranks are likely to have
SCHEDULE = 16  # steps that take as much memory as a schedule without any


class ScheduleCache:
    """Caches the most recently used schedules, up to a number of steps.

    One entry is for all ranks that make the same call. Equal parts of the schedules of consecutive
    ranks, usually all but the peers, are stored once.
    """

    def __init__(self, max_steps: int = 16_000_000) -> None:
        """Keep at most about `max_steps` steps."""
        self.max_steps: int = max_steps
        self.steps: int = 0
        self._entries: OrderedDict[object, CachedCall] = OrderedDict()
        # The latest entry, and the call that asked for it: the next rank mostly makes the same.
        self._latest: tuple[tuple[object, ...], CachedCall] | None = None

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, call: Call, algorithm: str | None = None) -> Schedule:
        """The schedule of one rank, built if need be."""
        return self.with_ready(call, algorithm)[0]

    def with_ready(
        self, call: Call, algorithm: str | None = None
    ) -> tuple[Schedule, frozenset[str]]:
        """The schedule of one rank, and the node-level communicators that exist after it.

        If the call made the ranks find the two-level structure of the communicator, pass these to
        the next call as `ready`, so that it happens only once.
        """
        entry = self._entry(call, algorithm)
        if call.rank not in entry.schedules:
            self._add(entry, call, algorithm)
        return entry.schedules[call.rank], entry.ready.get(call.rank, call.ready)

    def cached(self, call: Call) -> CachedCall:
        """The schedules of a call, with that of its rank, built if need be.

        If the algorithm decides while it runs, there are none, and `live` is set.
        """
        entry = self._entry(call, None)
        if entry.live is None:
            entry.live = find_live(call) is not None
        if not entry.live and call.rank not in entry.schedules:
            self._add(entry, call, None)
        return entry

    def _entry(self, call: Call, algorithm: str | None) -> CachedCall:
        latest = self._latest
        asked = (call.op, algorithm, *call[2:])  # all but the rank
        if latest is not None and latest[0] == asked:
            return latest[1]
        key = (algorithm, call.key())
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = CachedCall()
        else:
            self._entries.move_to_end(key)
        self._latest = asked, entry
        return entry

    def _add(self, entry: CachedCall, call: Call, algorithm: str | None) -> None:
        schedule = Schedule()
        ready = build(schedule, call, algorithm)
        entry.share(schedule)
        entry.schedules[call.rank] = schedule
        # The schedule itself takes as much memory as some steps.
        entry.steps += len(schedule) + SCHEDULE
        self.steps += len(schedule) + SCHEDULE
        if ready != call.ready:
            entry.ready[call.rank] = ready
        while self.steps > self.max_steps and len(self._entries) > 1:
            _, dropped = self._entries.popitem(last=False)
            self.steps -= dropped.steps

    def clear(self) -> None:
        """Forget everything."""
        self._entries.clear()
        self._latest = None
        self.steps = 0


class Columns:
    """The short columns of the schedules of one call, which ranks with the same place in a tree
    have in common.
    """

    __slots__ = ("amounts", "columns", "last")

    def __init__(self) -> None:
        """Begin without columns."""
        self.columns: dict[tuple[int, ...], list[int]] = {}
        self.amounts: dict[tuple[float, ...], list[float]] = {}
        self.last: Schedule | None = None

    def share(self, schedule: Schedule) -> None:
        """Let equal columns of the schedules be the same lists.

        Long ones are only compared with those of the previous rank.
        """
        last = self.last
        self.last = schedule
        if last is None:
            schedule.compact_peers()
            return
        short = len(schedule) <= SHORT
        columns = self.columns
        if schedule.codes == last.codes:
            schedule.codes = last.codes
        elif short:
            schedule.codes = columns.setdefault(tuple(schedule.codes), schedule.codes)
        if schedule.peers == last.peers:
            schedule.peers = last.peers
        else:
            schedule.compact_peers()
        if schedule.sizes == last.sizes:
            schedule.sizes = last.sizes
        elif short:
            schedule.sizes = columns.setdefault(tuple(schedule.sizes), schedule.sizes)
        if schedule.tags == last.tags:
            schedule.tags = last.tags
        elif short:
            schedule.tags = columns.setdefault(tuple(schedule.tags), schedule.tags)
        if schedule.amounts == last.amounts:
            schedule.amounts = last.amounts
        elif short:
            amounts = schedule.amounts
            schedule.amounts = self.amounts.setdefault(tuple(amounts), amounts)


class CachedCall(Columns):
    """The schedules of one call, by rank.

    `ready` has the node-level communicators that exist after the call, of ranks for which the call
    creates some. `live`: whether its algorithm decides while it runs; None before this is known.
    """

    __slots__ = ("live", "ready", "schedules", "steps")

    def __init__(self) -> None:
        """Begin without schedules."""
        super().__init__()
        self.schedules: dict[int, Schedule] = {}
        self.ready: dict[int, frozenset[str]] = {}
        self.steps: int = 0
        self.live: bool | None = None


_cache = ScheduleCache()


def schedule_for(call: Call, algorithm: str | None = None) -> Schedule:
    """The schedule of `call.rank`: do not change it, it is shared.

    `algorithm` names an algorithm or a selector and overrides `call.selection`.
    """
    return _cache.get(call, algorithm)


# Methods of the cache of all runs: the frame of a function would be one more in each rank.
schedule_with_ready = _cache.with_ready
cached_call = _cache.cached


def ready_from_creation(call: Call) -> frozenset[str]:
    """The node-level communicators that a created communicator has, by any call on it.

    As in SMPI, its creation includes a broadcast by the selected algorithm. If this one uses nodes,
    the ranks find them then, and not at their first collective call.
    """
    broadcast = Call(
        "bcast", 0, call.size, count=1, type_size=4, nodes=call.nodes, slots=call.slots,
        selection=call.selection,
    )  # fmt: skip
    return schedule_with_ready(broadcast)[1] & _WHOLE


_WHOLE = frozenset({""})  # the level of the communicator itself


def forget() -> None:
    """Clear the cache, and the numbers in it: schedules refer to the machine of their run."""
    _cache.clear()
    numbers.forget()
