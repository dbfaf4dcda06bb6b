"""Groups: ordered sets of processes (MPI 4.1, section 7.3).

The members of a group are process ids, stored as `Members`: a few ranges if possible. The group of
a world of a million ranks, of its even ranks, or of all but three of them, is therefore as small as
a group of four. All set operations work on ranges; their cost is proportional to the smaller
group's number of members, or to the number of ranges.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Self

from pysmpi.mpi.base.constants import (
    ERR_ARG,
    ERR_GROUP,
    ERR_RANK,
    IDENT,
    PROC_NULL,
    SIMILAR,
    UNDEFINED,
    UNEQUAL,
)
from pysmpi.mpi.base.exceptions import cint, fail, integer, sequence
from pysmpi.mpi.base.handles import Handle, wrong_type
from pysmpi.mpi.base.ranks import current
from pysmpi.mpi.calls import mpi

__all__ = ["Group", "GROUP_NULL", "GROUP_EMPTY"]

# A list of members that cannot be stored as this number of ranges stays a list.
MAX_RANGES = 16


class Members(Sequence[int]):
    """An immutable sequence of different process ids.

    `parts` are ranges, or one tuple if the ids have no pattern.
    """

    __slots__ = ("parts", "accessed", "_starts", "_size", "_ranks", "__weakref__")

    def __init__(self, parts: Iterable[Sequence[int]] = ()) -> None:
        self.parts: tuple[Sequence[int], ...] = tuple(part for part in parts if len(part))
        self.accessed: GroupImpl | None = None  # the group of the communicators of these members
        self._starts = []
        size = 0
        for part in self.parts:
            self._starts.append(size)
            size += len(part)
        self._size = size
        self._ranks: dict[int, int] | None = None

    @classmethod
    def of(cls, pids: Sequence[int]) -> Members:
        """The members that are listed, folded into ranges if possible."""
        if isinstance(pids, range):
            return cls((pids,))
        parts = fold(pids)
        return cls((tuple(pids),) if parts is None else parts)

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, rank):  # type: ignore[no-untyped-def]
        if isinstance(rank, slice):
            return self.take(range(*rank.indices(self._size)))
        parts = self.parts
        if len(parts) == 1:
            return parts[0][rank]
        if rank < 0:
            rank += self._size
        if not 0 <= rank < self._size:
            raise IndexError(rank)
        part = bisect_right(self._starts, rank) - 1
        return parts[part][rank - self._starts[part]]

    def __iter__(self) -> Iterator[int]:
        for part in self.parts:
            yield from part

    def __contains__(self, pid: object) -> bool:
        return self.rank_of(pid) >= 0  # type: ignore[arg-type]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Members):
            return NotImplemented
        if self is other or self.parts == other.parts:
            return True
        if self._size != other._size:
            return False
        return all(mine == others for mine, others in zip(self, other))

    def __hash__(self) -> int:
        return hash((self._size, self[0], self[-1])) if self._size else 0

    def __repr__(self) -> str:
        return f"Members({', '.join(map(repr, self.parts))})"

    def plain(self) -> Sequence[int]:
        """The same as a range, or as a tuple."""
        return self.parts[0] if len(self.parts) == 1 else tuple(self)

    def rank_of(self, pid: int) -> int:
        """The rank of a process, -1 if it is no member."""
        parts = self.parts
        if len(parts) == 1 and isinstance(parts[0], tuple):
            ranks = self._ranks
            if ranks is None:
                ranks = self._ranks = {member: rank for rank, member in enumerate(parts[0])}
            return ranks.get(pid, -1)
        for part, start in zip(parts, self._starts):
            if pid in part:
                return start + part.index(pid)
        return -1

    def take(self, ranks: Sequence[int]) -> Members:
        """The members that have these ranks, in their order."""
        if isinstance(ranks, range) and len(self.parts) == 1 and len(ranks):
            part = self.parts[0]
            stop = ranks.stop if ranks.stop >= 0 else None
            return Members.of(part[ranks.start : stop : ranks.step])
        folded = fold(ranks)
        if folded is not None and all(len(run) > 1 for run in folded):
            cuts: list[Sequence[int]] = []
            for run in folded:
                cuts += self._cut(run)
            if len(cuts) <= MAX_RANGES:
                return Members(join(cuts))
        return Members.of([self[rank] for rank in ranks])

    def _cut(self, ranks: range) -> list[Sequence[int]]:
        """The members of an arithmetic sequence of ranks, as a range of each part."""
        if ranks.step < 0:
            return [part[::-1] for part in reversed(self._cut(ranks[::-1]))]
        cuts = []
        for part, start in zip(self.parts, self._starts):
            # The first of `ranks` in this part.
            first = ranks.start
            if first < start:
                first += -((first - start) // ranks.step) * ranks.step
            cuts.append(part[first - start : max(ranks.stop - start, 0) : ranks.step])
        return [cut for cut in cuts if len(cut)]

    def without(self, ranks: Iterable[int]) -> Members:
        """The members that do not have these ranks."""
        kept: list[Sequence[int]] = []
        begin = 0
        for rank in sorted(ranks):
            if rank > begin:
                kept += self._cut(range(begin, rank))
            begin = rank + 1
        kept += self._cut(range(begin, self._size))
        if len(kept) > MAX_RANGES:
            return Members.of([pid for part in kept for pid in part])
        return Members(kept)

    def union(self, other: Members) -> Members:
        """These members, then those of `other` that are not among them."""
        extra = other.difference(self)
        parts = join([*self.parts, *extra.parts])
        if len(parts) > MAX_RANGES or any(isinstance(part, tuple) for part in parts):
            return Members.of([*self, *extra])
        return Members(parts)

    def difference(self, other: Members) -> Members:
        """Those of these members that are not in `other`, in their order."""
        return self.without(self.common(other))

    def intersection(self, other: Members) -> Members:
        """Those of these members that are also in `other`, in their order."""
        return self.take(self.common(other))

    def common(self, other: Members) -> Sequence[int]:
        """The ranks here, in order, of the members that `other` shares."""
        if self is other or self.parts == other.parts:
            return range(self._size)
        if self._size <= len(other):
            return [rank for rank, pid in enumerate(self) if other.rank_of(pid) >= 0]
        return sorted(rank for rank in map(self.rank_of, other) if rank >= 0)


def fold(values: Sequence[int]) -> list[range] | None:
    """The arithmetic sequences that make up a list; None if there are more than MAX_RANGES."""
    if isinstance(values, range):
        return [values] if len(values) else []
    parts: list[range] = []
    position, size = 0, len(values)
    while position < size:
        if len(parts) == MAX_RANGES:
            return None
        first = values[position]
        step = values[position + 1] - first if position + 1 < size else 1
        if step == 0:
            return None
        end = position + 1
        while end < size and values[end] - values[end - 1] == step:
            end += 1
        # Two neighbours at any distance are a sequence: leave the second for the next one.
        if end - position == 2 and abs(step) != 1:
            end, step = position + 1, 1
        parts.append(range(first, first + (end - position) * step, step))
        position = end
    return parts


def join(parts: Sequence[Sequence[int]]) -> list[Sequence[int]]:
    """The same parts, with ranges joined that continue each other."""
    joined: list[Sequence[int]] = []
    for part in parts:
        if joined:
            last = joined[-1]
            if isinstance(last, range) and isinstance(part, range):
                step = part[0] - last[-1]
                if step and (len(last) == 1 or last.step == step):
                    if len(part) == 1 or part.step == step:
                        joined[-1] = range(last[0], part[-1] + step, step)
                        continue
        joined.append(part)
    return joined


EMPTY = Members()


class GroupImpl:
    """The object of a group handle: two groups with the same members are different."""

    __slots__ = ("members",)

    def __init__(self, members: Members) -> None:
        self.members = members


# The class of sessions: its chapter, which is above this one, adds it.
session_classes: list[type[Handle]] = []


class Group(Handle, kind=2, null=0x08000000, error=ERR_GROUP):
    """Group of processes."""

    __slots__ = ()

    _impl: GroupImpl | None

    def __new__(cls, group: Group | None = None) -> Self:
        self = object.__new__(cls)
        Handle._copy(self, group, "group")
        return self

    @classmethod
    def _with(cls, members: Members) -> Self:
        """A new group; all groups without members are GROUP_EMPTY."""
        return cls._of(GroupImpl(members) if len(members) else GROUP_EMPTY._impl)

    @classmethod
    def _accessed(cls, members: Members) -> Self:
        """The group of a communicator: handles from two accesses are equal, as in MPICH."""
        if members.accessed is None:
            members.accessed = GroupImpl(members)
        return cls._of(members.accessed)

    @mpi.local("7.3.1")
    def Get_size(self) -> int:
        """Return the number of processes in a group."""
        return len(self._live().members)

    @property
    def size(self) -> int:
        """Number of processes."""
        return self.Get_size()

    @mpi.local("7.3.1")
    def Get_rank(self) -> int:
        """Return the rank of this process in a group."""
        rank = self._live().members.rank_of(current().pid)
        return rank if rank >= 0 else UNDEFINED

    @property
    def rank(self) -> int:
        """Rank of this process."""
        return self.Get_rank()

    @mpi.local("7.3.1")
    def Translate_ranks(
        self,
        ranks: Sequence[int] | None = None,
        group: Group | None = None,
    ) -> list[int]:
        """Translate ranks in a group to those in another group."""
        here = self._live().members
        if group is None:
            there = world()
        else:
            there = _members(group, "group")
        size = len(here)
        numbers: Sequence[int] = range(size) if ranks is None else _integers(ranks)
        translated = []
        for number in numbers:
            if number == PROC_NULL:
                translated.append(PROC_NULL)
                continue
            if not 0 <= number < size:
                fail(ERR_RANK, f"rank {number} in ranks, the group has {size} members")
            rank = there.rank_of(here[number])
            translated.append(rank if rank >= 0 else UNDEFINED)
        return translated

    @mpi.local("7.3.1")
    def Compare(self, group: Group) -> int:
        """Compare two groups."""
        other = _members(group, "group")
        mine = self._live().members
        if mine == other:
            return IDENT
        if len(mine) == len(other) and all(other.rank_of(pid) >= 0 for pid in mine):
            return SIMILAR
        return UNEQUAL

    @mpi.local("7.3.2")
    def Dup(self) -> Self:
        """Duplicate a group."""
        return type(self)._with(self._live().members)

    @classmethod
    @mpi.local("7.3.2")
    def Union(cls, group1: Group, group2: Group) -> Self:
        """Create a new group from the union of two existing groups."""
        first, second = _members(group1, "group1"), _members(group2, "group2")
        return cls._with(first.union(second))

    @classmethod
    @mpi.local("7.3.2")
    def Intersection(cls, group1: Group, group2: Group) -> Self:
        """Create a new group from the intersection of two existing groups."""
        first, second = _members(group1, "group1"), _members(group2, "group2")
        return cls._with(first.intersection(second))

    Intersect = Intersection

    @classmethod
    @mpi.local("7.3.2")
    def Difference(cls, group1: Group, group2: Group) -> Self:
        """Create a new group from the difference of two existing groups."""
        first, second = _members(group1, "group1"), _members(group2, "group2")
        return cls._with(first.difference(second))

    @mpi.local("7.3.2")
    def Incl(self, ranks: Sequence[int]) -> Self:
        """Create a new group by including listed members."""
        numbers = _integers(ranks)
        members = self._live().members
        _check(numbers, len(members))
        return type(self)._with(members.take(numbers))

    @mpi.local("7.3.2")
    def Excl(self, ranks: Sequence[int]) -> Self:
        """Create a new group by excluding listed members."""
        numbers = _integers(ranks)
        members = self._live().members
        _check(numbers, len(members))
        return type(self)._with(members.without(numbers))

    @mpi.local("7.3.2")
    def Range_incl(self, ranks: Sequence[tuple[int, int, int]]) -> Self:
        """Create a new group by including ranges of members."""
        members = self._live().members
        spans = _ranges(ranks, len(members))
        if len(spans) == 1:
            return type(self)._with(members.take(spans[0]))
        numbers = [rank for span in spans for rank in span]
        _check(numbers, len(members), ERR_ARG)
        return type(self)._with(members.take(numbers))

    @mpi.local("7.3.2")
    def Range_excl(self, ranks: Sequence[tuple[int, int, int]]) -> Self:
        """Create a new group by excluding ranges of members."""
        members = self._live().members
        numbers = [rank for span in _ranges(ranks, len(members)) for rank in span]
        _check(numbers, len(members), ERR_ARG)
        return type(self)._with(members.without(numbers))

    @classmethod
    @mpi.local("7.3.2")
    def Create_from_session_pset(cls, session: Handle, pset_name: str) -> Self:
        """Create a new group from session and process set."""
        if not isinstance(session, tuple(session_classes)):
            raise wrong_type("session", session_classes[0], session)
        source: Any = session
        return cls._of(source.Create_group(pset_name)._impl)

    @mpi.local("7.3.3")
    def Free(self) -> None:
        """Free a group."""
        impl = self._live()
        if impl is GROUP_EMPTY._impl:
            self._drop()
        else:
            self._retire()


GROUP_NULL = Group._define("GROUP_NULL", None, 0x08000000)
GROUP_EMPTY = Group._define("GROUP_EMPTY", GroupImpl(EMPTY), 0x48000000)


def world() -> Members:
    """The members of the calling rank's COMM_WORLD."""
    world = current().world
    return Members((range(world.first, world.first + world.size),))


def _members(group: Group, argument: str) -> Members:
    if not isinstance(group, Group):
        raise wrong_type(argument, Group, group)
    impl: GroupImpl = group._live()
    return impl.members


def _integers(ranks: Sequence[int]) -> Sequence[int]:
    """An argument that is a list of ranks."""
    if isinstance(ranks, range):
        return ranks
    return [cint(integer(rank)) for rank in sequence(ranks)]


def _check(numbers: Sequence[int], size: int, code: int = ERR_RANK) -> None:
    """Refuse ranks outside the group and repeated ranks."""
    if not len(numbers):
        return
    low, high = min(numbers), max(numbers)
    if low < 0 or high >= size:
        wrong = low if low < 0 else high
        fail(code, f"rank {wrong} in ranks, the group has {size} members")
    if not isinstance(numbers, range) and len(frozenset(numbers)) < len(numbers):
        fail(code, "a rank comes twice in ranks")


def _ranges(ranks: Sequence[tuple[int, int, int]], size: int) -> list[range]:
    """An argument of triplets (first, last, stride), the last included."""
    spans = []
    for triplet in sequence(ranks):
        numbers = sequence(triplet)
        if len(numbers) != 3:
            raise ValueError(f"ranks: expecting (first, last, stride), got {len(numbers)} items")
        first, last, stride = map(cint, numbers)
        if stride == 0:
            fail(ERR_ARG, f"range ({first}, {last}, {stride}) has stride zero")
        span = range(first, last + (1 if stride > 0 else -1), stride)
        if not len(span):
            fail(ERR_ARG, f"range ({first}, {last}, {stride}) is empty")
        if not (0 <= first < size and 0 <= span[-1] < size):
            fail(ERR_ARG, f"range ({first}, {last}, {stride}) leaves a group of {size} members")
        spans.append(span)
    return spans
