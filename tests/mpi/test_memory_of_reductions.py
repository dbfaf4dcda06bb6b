"""The objects that a reduction keeps until all ranks have left it."""

from __future__ import annotations

import gc
import time
from array import array

import numpy as np
import pytest

import pysmpi
from pysmpi.mpi.buffers.contiguous import MessageRegion
from pysmpi.mpi.collective import reductions
from pysmpi.mpi.collective.reductions import Reduction

RANKS = 8


@pytest.fixture(autouse=True)
def without_garbage_of_other_tests():
    """Let the counts of objects be those of one test, and quick."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


def alive(kind):
    """The number of objects of a class."""
    return sum(type(found) is kind for found in gc.get_objects())


@pytest.mark.parametrize(("count", "regions"), [(1, 1), (16, 1), (17, 2)])
def test_few_bytes_are_copied(count, regions):
    before = alive(MessageRegion)

    def program():
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        value, total = np.full(count, comm.rank), np.empty(count, int)
        if comm.rank == 0:
            time.sleep(1)  # the others wait in the reduction
        waiting = alive(MessageRegion) - before
        comm.Allreduce(value, total)
        return int(total[-1]), waiting

    results = pysmpi.run(program, RANKS, compute="none").returns
    assert {total for total, _ in results} == {sum(range(RANKS))}
    assert results[0][1] == regions * (RANKS - 1)


def test_the_buffer_may_change_between_starts():
    def program():
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        value, total = np.zeros(1, int), np.empty(1, int)
        request = comm.Allreduce_init(value, total)
        found = []
        for turn in range(3):
            value[0] = turn * comm.rank
            request.Start()
            request.Wait()
            found.append(int(total[0]))
        value[0] = 7
        comm.Allreduce(MPI.IN_PLACE, value)
        return [*found, int(value[0])]

    for found in pysmpi.run(program, RANKS, compute="none").returns:
        assert found == [0, sum(range(RANKS)), 2 * sum(range(RANKS)), 7 * RANKS]


def test_a_contribution_is_freed_when_its_rank_has_left():
    def program():
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        total = np.empty(1, int)
        comm.Allreduce(np.array([comm.rank]), total)
        left = alive(Reduction)
        return int(total[0]), left

    results = pysmpi.run(program, RANKS, compute="none").returns
    assert {total for total, _ in results} == {sum(range(RANKS))}
    # They leave one after another; the state of the call is freed with the last one.
    assert sorted(left for _, left in results) == list(range(RANKS))


@pytest.mark.parametrize(
    "place",
    [
        "np.empty(2, int)",
        "np.empty((2, 1), int, order='F')",
        "np.empty(8, int)[2:4]",
        "np.empty((2, 4), int)[1, :2]",
        "[np.empty(2, int), MPI.LONG]",
        "[np.empty(5, int), 2, MPI.LONG]",
        "[bytearray(16), MPI.LONG]",
        "array('l', [0, 0])",
        "memoryview(bytearray(24))[8:].cast('l')",
    ],
)
def test_many_ranks_wait_without_views_of_their_targets(place, monkeypatch):
    monkeypatch.setattr(reductions, "MANY", 1)

    def program():
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        target = eval(place, {"np": np, "MPI": MPI, "array": array})
        comm.Allreduce(np.array([comm.rank, 1]), target)
        buffer = target[0] if isinstance(target, list) else target
        return np.frombuffer(memoryview(buffer).tobytes(), int)[:2].tolist()

    for found in pysmpi.run(program, RANKS, compute="none").returns:
        assert found == [sum(range(RANKS)), RANKS]


def test_views_of_targets_are_not_kept(monkeypatch):
    monkeypatch.setattr(reductions, "MANY", RANKS)
    before = alive(MessageRegion)

    def program():
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        value, total = np.full(1, comm.rank), np.empty(1, int)
        if comm.rank == 0:
            time.sleep(1)  # the others wait in the reduction
        waiting = alive(MessageRegion) - before
        comm.Allreduce(value, total)
        return int(total[0]), waiting

    results = pysmpi.run(program, RANKS, compute="none").returns
    assert {total for total, _ in results} == {sum(range(RANKS))}
    assert results[0][1] == 0
