"""The compact sequences of process ids behind groups and communicators, against plain lists."""

from __future__ import annotations

import sys

from hypothesis import given
from hypothesis import strategies as st

from pysmpi.mpi.groups.groups import MAX_RANGES, Members, fold, join

ANY_ORDER = st.lists(st.integers(0, 60), unique=True, max_size=40)
RANGES = st.builds(
    lambda start, size, step: list(range(start, start + size * step, step)),
    st.integers(40, 60),
    st.integers(0, 12),
    st.sampled_from([1, 2, 3, -1, -2]),
)
WORLD_WITH_HOLES = st.builds(
    lambda size, holes: [pid for pid in range(size) if pid not in holes],
    st.integers(0, 60),
    st.sets(st.integers(0, 60), max_size=5),
)
PIDS = ANY_ORDER | RANGES | WORLD_WITH_HOLES


@given(PIDS)
def test_as_a_sequence(pids: list[int]) -> None:
    members = Members.of(pids)
    assert list(members) == pids
    assert len(members) == len(pids)
    assert [members[rank] for rank in range(len(pids))] == pids
    assert [members[rank - len(pids)] for rank in range(len(pids))] == pids
    assert list(members.plain()) == pids


@given(PIDS, st.integers(-3, 70))
def test_rank_of(pids: list[int], pid: int) -> None:
    expected = pids.index(pid) if pid in pids else -1
    assert Members.of(pids).rank_of(pid) == expected
    assert (pid in Members.of(pids)) == (pid in pids)


@given(PIDS, st.integers(0, 60))
def test_parts_may_be_cut_anywhere(pids: list[int], cut: int) -> None:
    pieces = Members([*Members.of(pids[:cut]).parts, *Members.of(pids[cut:]).parts])
    if all(isinstance(part, range) for part in pieces.parts):
        assert pieces == Members.of(pids)
        assert hash(pieces) == hash(Members.of(pids))
        assert [pieces.rank_of(pid) for pid in pids] == list(range(len(pids)))


@given(PIDS, PIDS)
def test_set_operations(one: list[int], other: list[int]) -> None:
    a, b = Members.of(one), Members.of(other)
    assert list(a.union(b)) == one + [pid for pid in other if pid not in one]
    assert list(a.intersection(b)) == [pid for pid in one if pid in other]
    assert list(a.difference(b)) == [pid for pid in one if pid not in other]
    assert (a == b) == (one == other)


@given(PIDS, st.data())
def test_take_and_without(pids: list[int], data: st.DataObject) -> None:
    ranks = data.draw(st.lists(st.integers(0, max(0, len(pids) - 1)), unique=True)) if pids else []
    members = Members.of(pids)
    assert list(members.take(ranks)) == [pids[rank] for rank in ranks]
    assert list(members.without(ranks)) == [
        pid for rank, pid in enumerate(pids) if rank not in ranks
    ]


@given(PIDS, st.slices(60))
def test_slices(pids: list[int], part: slice) -> None:
    assert list(Members.of(pids)[part]) == pids[part]


@given(ANY_ORDER)
def test_fold_loses_nothing(values: list[int]) -> None:
    parts = fold(values)
    if parts is None:
        assert len(values) > MAX_RANGES
    else:
        assert [value for part in parts for value in part] == values
        assert [value for part in join(parts) for value in part] == values


def test_a_million_members_are_as_small_as_four() -> None:
    world = Members((range(1_000_000),))
    groups = [
        world,
        world[::2],
        world[::-1],
        world.without([5, 17, 999_999]),
        world.difference(Members.of([3, 1, 4])),
        world[:10].union(world[500_000:]),
        world.take(range(999_999, -1, -3)),
    ]
    for group in groups:
        assert len(group.parts) <= 4
        assert sum(map(sys.getsizeof, group.parts)) < 300
        assert group.rank_of(group[len(group) - 1]) == len(group) - 1
