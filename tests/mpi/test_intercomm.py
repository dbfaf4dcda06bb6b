"""Intercommunicators: making them, and making others from them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simulated import simulate

from pysmpi.mpi import MPI


def halves(low: int) -> Any:
    """The group of a rank, and an intercommunicator of the first `low` ranks and the others."""
    world = MPI.COMM_WORLD
    side = int(world.rank >= low)
    group = world.Split(side)
    return group, group.Create_intercomm(0, world, 0 if side else low, tag=3)


@settings(max_examples=20, deadline=None)
@given(st.integers(2, 6), st.data())
def test_both_groups_see_each_other(size: int, data: Any) -> None:
    low = data.draw(st.integers(1, size - 1))

    def main(rank: Any) -> None:
        world = MPI.COMM_WORLD
        group, inter = halves(low)
        assert type(inter) is MPI.Intercomm and inter.is_inter
        assert (inter.rank, inter.size) == (group.rank, group.size)
        assert inter.remote_size == world.size - group.size
        assert not set(inter.group.Translate_ranks()) & set(inter.remote_group.Translate_ranks())
        everybody = inter.allgather(world.rank) + group.allgather(world.rank)
        assert sorted(everybody) == list(range(size))
        dup = inter.Dup()
        assert MPI.Comm.Compare(inter, dup) == MPI.CONGRUENT
        later, request = inter.Idup()
        request.Wait()
        assert MPI.Comm.Compare(inter, later) == MPI.CONGRUENT
        assert sorted(later.allgather(world.rank)) == sorted(inter.allgather(world.rank))
        for comm in (dup, later, inter, group):
            comm.Free()

    simulate(size, main)


@settings(max_examples=20, deadline=None)
@given(st.integers(2, 6), st.data())
def test_merged_ranks_are_those_of_the_low_group_then_the_others(size: int, data: Any) -> None:
    low = data.draw(st.integers(1, size - 1))
    high = data.draw(st.booleans())
    other_high = data.draw(st.booleans())

    def main(rank: Any) -> list[int]:
        world = MPI.COMM_WORLD
        _, inter = halves(low)
        merged = inter.Merge(high if world.rank < low else other_high)
        assert type(merged) is MPI.Intracomm
        return merged.allgather(world.rank)

    natural, swapped = list(range(size)), [*range(low, size), *range(low)]
    expected = swapped if high and not other_high else natural
    assert simulate(size, main) == [expected] * size


@settings(max_examples=20, deadline=None)
@given(st.integers(2, 6), st.data())
def test_split_pairs_what_has_the_same_color(size: int, data: Any) -> None:
    low = data.draw(st.integers(1, size - 1))
    color_of_rank = st.sampled_from([0, 1, 2, MPI.UNDEFINED])
    colors = data.draw(st.lists(color_of_rank, min_size=size, max_size=size))
    keys = data.draw(st.lists(st.integers(-2, 2), min_size=size, max_size=size))

    def main(rank: Any) -> Any:
        me = MPI.COMM_WORLD.rank
        _, inter = halves(low)
        part = inter.Split(colors[me], keys[me])
        assert type(part) is MPI.Intercomm
        if not part:
            return None
        return part.allgather(me)

    def members(color: int, ranks: range) -> list[int]:
        return sorted((r for r in ranks if colors[r] == color), key=lambda r: (keys[r], r))

    for me, found in enumerate(simulate(size, main)):
        sides = [range(low), range(low, size)]
        mine, theirs = sides if me < low else sides[::-1]
        expected = members(colors[me], theirs) if colors[me] != MPI.UNDEFINED else []
        assert found == (expected or None)


def test_create_takes_part_of_each_group() -> None:
    def main(rank: Any) -> Any:
        _, inter = halves(3)
        group = inter.Get_group().Incl([0, 1])
        new = inter.Create(group)
        inside = inter.rank < 2
        assert bool(new) == inside and type(new) is MPI.Intercomm
        empty = inter.Create(group if rank.pid < 3 else MPI.GROUP_EMPTY)
        assert not empty
        return new.allgather(rank.pid) if inside else None

    assert simulate(5, main) == [[3, 4], [3, 4], None, [0, 1], [0, 1]]


def test_leaders_that_are_no_ranks_zero_talk_over_any_communicator() -> None:
    """The peer communicator has its own numbers, and users' messages stay apart."""

    def main(rank: Any) -> Any:
        world = MPI.COMM_WORLD
        backwards = world.Split(0, -world.rank)
        group = world.Split(world.rank % 2)
        request = None
        if world.rank == 0:
            request = backwards.irecv(source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG)
        last = group.size - 1
        leaders = [4, 3]  # in the world: the last even and the last odd rank of five
        remote = world.size - 1 - leaders[1 - world.rank % 2]
        inter = group.Create_intercomm(last, backwards, remote, tag=5)
        if world.rank == 3:
            backwards.send("mine", world.size - 1, tag=5)
        got = request.wait() if request else None
        return inter.remote_size, got

    assert simulate(5, main) == [(2, "mine"), (3, None), (2, None), (3, None), (2, None)]


def test_create_from_groups_needs_no_communicator() -> None:
    def main(rank: Any) -> Any:
        world = MPI.COMM_WORLD.Get_group()
        sides = [world.Incl([3, 1]), world.Incl([0, 2])]
        mine = rank.pid % 2 == 0
        inter = MPI.Intercomm.Create_from_groups(sides[mine], 0, sides[not mine], 1)
        return inter.rank, inter.allgather(rank.pid)

    assert simulate(4, main) == [(0, [3, 1]), (1, [0, 2]), (1, [3, 1]), (0, [0, 2])]


def test_groups_must_be_disjoint() -> None:
    def main(rank: Any) -> int:
        world = MPI.COMM_WORLD
        with pytest.raises(MPI.Exception) as caught:
            world.Dup().Create_intercomm(0, world, 0)
        return int(caught.value.Get_error_class())

    assert simulate(2, main) == [MPI.ERR_COMM] * 2


def test_making_one_takes_simulated_time() -> None:
    def main(rank: Any) -> None:
        begun = MPI.Wtime()
        halves(2)
        assert MPI.Wtime() - begun > 2e-6

    simulate(4, main)
