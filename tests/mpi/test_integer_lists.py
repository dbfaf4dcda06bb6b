"""Counts of all ranks: lists and tuples of plain integers, and everything else."""

from __future__ import annotations

import numpy as np
import pytest

import pysmpi
from pysmpi.mpi.base.integers import plain_integers


class Odd(list):
    def __getitem__(self, place):
        return 7


@pytest.mark.parametrize("values", [[], [1, 2, -3], (0, (1 << 61) - 1), [1 - (1 << 61)]])
def test_plain_integers_are_taken_as_they_are(values):
    found = plain_integers(values)
    assert found == list(values)
    assert found is not values


@pytest.mark.parametrize(
    "values",
    [[1, True], [1, 2.0], [np.int64(1)], np.array([1]), Odd([1]), [1 << 61], [-(1 << 61)], None,
     "12", range(2), {1: 2}],
)  # fmt: skip
def test_others_go_the_general_way(values):
    assert plain_integers(values) is None


def test_counts_that_change_from_call_to_call():
    """Calls with equal totals and other counts are different calls."""

    def main():
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        found = []
        for counts in ([1, 2, 3], [3, 2, 1], (1, 2, 3), np.array([2, 2, 2])):
            into = np.zeros(counts[comm.rank])
            comm.Reduce_scatter(np.arange(6.0), into, counts)
            mine = np.full(counts[comm.rank], comm.rank)
            all = np.zeros(6, int)
            comm.Allgatherv(mine, [all, list(counts)])
            found.append((into.tolist(), all.tolist()))
        return found

    run = pysmpi.run(main, nprocs=3)
    for rank, found in enumerate(run.returns):
        for counts, (into, all) in zip([[1, 2, 3], [3, 2, 1], [1, 2, 3], [2, 2, 2]], found):
            first = sum(counts[:rank])
            assert into == [3.0 * i for i in range(first, first + counts[rank])]
            assert all == [i for i in range(3) for _ in range(counts[i])]


def test_times_follow_the_counts():
    """The cached schedule of a call has the sizes of its own counts."""

    def main():
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        times = []
        for counts in ([50_000, 10, 10], [10, 10, 50_000]) * 2:
            into = np.zeros(sum(counts), np.int8)
            mine = np.zeros(counts[comm.rank], np.int8)
            comm.Barrier()
            start = MPI.Wtime()
            comm.Allgatherv(mine, [into, counts])
            comm.Barrier()
            times.append(MPI.Wtime() - start)
        return times

    options = {"compute": "none", "cfg": {"smpi/allgatherv": "ring"}}
    both = pysmpi.run(main, nprocs=3, **options).returns[0]
    assert both[:2] == pytest.approx(both[2:], rel=1e-9)


def test_times_between_two_groups_follow_what_is_sent():
    """The counts of an intercommunicator are those of the other group, not of what a rank sends."""

    def times_of(*sent):
        def main():
            from mpi4py import MPI

            world = MPI.COMM_WORLD
            group = world.rank // 2
            local = world.Split(group, world.rank)
            both = local.Create_intercomm(0, world, 2 - 2 * group)
            times = []
            for count in sent:
                counts = [10, 10] if group == 0 else [count, count]
                mine = np.zeros(count if group == 0 else 10, np.int8)
                into = np.zeros(sum(counts), np.int8)
                world.Barrier()
                start = MPI.Wtime()
                both.Allgatherv(mine, [into, counts])
                world.Barrier()
                times.append(MPI.Wtime() - start)
            return times[-1]

        return pysmpi.run(main, nprocs=4, compute="none").returns[0]

    assert times_of(10, 50_000) == pytest.approx(times_of(50_000), rel=1e-9)
