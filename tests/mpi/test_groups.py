"""Groups as programs use them."""

from __future__ import annotations

import pickle

import pytest

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
from pysmpi.mpi.base.exceptions import Exception as MPIException
from pysmpi.mpi.groups.groups import GROUP_EMPTY, GROUP_NULL, Group, GroupImpl, Members


def group(*pids: int) -> Group:
    return Group._of(GroupImpl(Members.of(pids)))


def pids(of: Group) -> list[int]:
    return list(of._impl.members)


def test_size_and_rank() -> None:
    assert group(3, 0, 5).Get_size() == 3
    assert group(3, 0, 5).Get_rank() == 1  # outside a simulation the process id is 0
    assert group(3, 5).rank == UNDEFINED
    assert GROUP_EMPTY.size == 0 and GROUP_EMPTY.rank == UNDEFINED


def test_compare() -> None:
    one = group(1, 2, 3)
    assert one.Compare(one.Dup()) == IDENT
    assert one.Compare(group(3, 2, 1)) == SIMILAR
    assert one.Compare(group(1, 2)) == UNEQUAL
    assert one.Compare(group(1, 2, 4)) == UNEQUAL


def test_a_duplicate_is_another_group() -> None:
    one = group(1, 2, 3)
    assert one.Dup() != one
    assert Group(one) == one
    assert GROUP_EMPTY.Dup() == GROUP_EMPTY


def test_set_operations() -> None:
    one, other = group(1, 2, 3), group(5, 3, 1)
    assert pids(Group.Union(one, other)) == [1, 2, 3, 5]
    assert pids(Group.Intersection(one, other)) == pids(Group.Intersect(one, other)) == [1, 3]
    assert pids(Group.Difference(one, other)) == [2]
    assert Group.Difference(one, one) == GROUP_EMPTY


def test_inclusion_and_exclusion() -> None:
    one = group(10, 11, 12, 13, 14)
    assert pids(one.Incl([4, 0])) == [14, 10]
    assert pids(one.Excl([4, 0])) == [11, 12, 13]
    assert pids(one.Range_incl([(0, 3, 2), (4, 4, 1)])) == [10, 12, 14]
    assert pids(one.Range_incl([(4, 0, -2)])) == [14, 12, 10]
    assert pids(one.Range_excl([(0, 3, 2)])) == [11, 13, 14]
    assert one.Incl([]) == one.Range_incl([]) == GROUP_EMPTY
    assert pids(one.Excl([])) == pids(one.Range_excl([])) == pids(one)


def test_translate_ranks() -> None:
    one, other = group(4, 5, 6), group(6, 4)
    assert one.Translate_ranks(group=other) == [1, UNDEFINED, 0]
    assert one.Translate_ranks([PROC_NULL, 2, 2], other) == [PROC_NULL, 0, 0]
    assert group(0).Translate_ranks() == [0]


def test_subclasses_survive() -> None:
    class Mine(Group):
        pass

    mine = Mine(group(0, 1, 2))
    for made in (
        mine.Dup(),
        mine.Incl([0]),
        mine.Excl([0]),
        mine.Range_incl([(0, 1, 1)]),
        Mine.Union(mine, mine),
        Mine.Difference(mine, GROUP_EMPTY),
    ):
        assert type(made) is Mine


def test_freeing() -> None:
    one = group(1)
    one.Free()
    assert one == GROUP_NULL
    GROUP_EMPTY.Free()
    assert GROUP_EMPTY
    copy = Group(GROUP_EMPTY)
    copy.Free()
    assert copy == GROUP_NULL


@pytest.mark.parametrize(
    ("code", "call"),
    [
        (ERR_GROUP, lambda: GROUP_NULL.Get_size()),
        (ERR_GROUP, lambda: GROUP_NULL.Free()),
        (ERR_GROUP, lambda: GROUP_NULL.Compare(GROUP_EMPTY)),
        (ERR_GROUP, lambda: GROUP_EMPTY.Compare(GROUP_NULL)),
        (ERR_GROUP, lambda: Group.Union(GROUP_NULL, GROUP_EMPTY)),
        (ERR_GROUP, lambda: group(1).Translate_ranks([0], GROUP_NULL)),
        (ERR_RANK, lambda: group(1).Incl([1])),
        (ERR_RANK, lambda: group(1).Incl([-1])),
        (ERR_RANK, lambda: group(1, 2).Incl([0, 0])),
        (ERR_RANK, lambda: group(1).Excl([7])),
        (ERR_RANK, lambda: group(1).Translate_ranks([1])),
        (ERR_ARG, lambda: group(1).Range_incl([(0, 0, 0)])),
        (ERR_ARG, lambda: group(1).Range_incl([(1, 0, 1)])),
        (ERR_ARG, lambda: group(1).Range_incl([(0, 3, 1)])),
        (ERR_ARG, lambda: group(1).Range_excl([(0, 0, 1), (0, 0, 1)])),
    ],
)
def test_errors(code, call) -> None:
    with pytest.raises(MPIException) as caught:
        call()
    assert caught.value.Get_error_class() == code
    assert caught.value.detail


@pytest.mark.parametrize(
    ("kind", "call"),
    [
        (TypeError, lambda: group(1).Incl(0)),
        (TypeError, lambda: group(1).Incl(None)),
        (TypeError, lambda: group(1).Incl([0.0])),
        (TypeError, lambda: group(1).Compare(None)),
        (TypeError, lambda: Group.Union(None, GROUP_EMPTY)),
        (TypeError, lambda: group(1).Range_incl([0])),
        (ValueError, lambda: group(1).Range_incl([(0, 0)])),
        (TypeError, lambda: Group(1)),
        (TypeError, lambda: hash(group(1))),
        (TypeError, lambda: group(1) < group(1)),
        (ValueError, lambda: pickle.dumps(group(1))),
    ],
)
def test_wrong_arguments(kind, call) -> None:
    with pytest.raises(kind):
        call()
