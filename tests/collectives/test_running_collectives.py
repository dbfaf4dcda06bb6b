"""Algorithms that decide while they run serve a late rank late."""

from __future__ import annotations

import time

import numpy as np
import pytest

import pysmpi

AWARE = ["arrival_pattern_aware", "arrival_pattern_aware_wait", "arrival_scatter"]


def broadcast(late: int, count: int, root: int, nonblocking: bool) -> tuple[float, bool]:
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    data = np.arange(count) if comm.rank == root else np.zeros(count, int)
    if comm.rank == late:
        time.sleep(1.0)
    start = MPI.Wtime()
    for _ in range(2):
        if nonblocking:
            comm.Ibcast(data, root).Wait()
        else:
            comm.Bcast(data, root)
    return MPI.Wtime() - start, bool((data == np.arange(count)).all())


@pytest.mark.parametrize("name", AWARE)
@pytest.mark.parametrize("nonblocking", [False, True])
@pytest.mark.parametrize("count", [1, 100, 3000])
def test_early_ranks_do_not_wait_for_late_ones(name: str, nonblocking: bool, count: int) -> None:
    result = pysmpi.run(
        broadcast, 6, args=(4, count, 0, nonblocking), coll={"bcast": name}, compute="none"
    )
    for rank, (seconds, right) in enumerate(result.returns):
        assert right
        if count > 6 and rank not in (0, 4) and name != "arrival_pattern_aware":
            # The second broadcast serves the late rank last.
            assert seconds < 1.5


def first_broadcast(late: int) -> float:
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    if comm.rank == late:
        time.sleep(1.0)
    comm.Bcast(np.zeros(4096))
    return MPI.Wtime()


@pytest.mark.parametrize("name", AWARE)
def test_who_is_late_delays_only_itself(name: str) -> None:
    result = pysmpi.run(first_broadcast, 6, args=(4,), coll={"bcast": name}, compute="none")
    dates = result.returns
    assert all(date < 0.5 for rank, date in enumerate(dates) if rank not in (0, 4))
    assert dates[4] > 0.99


def total(root: int, count: int) -> bool:
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    time.sleep(0.01 * (comm.rank * 7 % 5))
    result = np.zeros(count, int)
    for _ in range(3):
        comm.Reduce(np.arange(count) + comm.rank, result, root=root)
    want = np.arange(count) * comm.size + comm.size * (comm.size - 1) // 2
    return comm.rank != root or bool((result == want).all())


@pytest.mark.parametrize("count", [0, 1, 1500, 5000])
@pytest.mark.parametrize("root", [0, 3])
def test_reduction_along_the_arrived(root: int, count: int) -> None:
    coll = {"reduce": "arrival_pattern_aware"}
    assert all(pysmpi.run(total, 7, args=(root, count), coll=coll, compute="none").returns)
