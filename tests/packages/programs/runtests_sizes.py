"""Tests for communicators of several sizes, with runtests' decorator and fixture."""

from __future__ import annotations

from typing import Any

import numpy as np
from mpi4py import MPI
from numpy.testing import assert_array_equal
from runtests.mpi import MPITest


@MPITest(commsize=[1, 2, 4])
def test_sum(comm: Any) -> None:
    assert comm.allreduce(comm.rank) == comm.size * (comm.size - 1) // 2


@MPITest(commsize=[2, 3])
def test_shift(comm: Any) -> None:
    mine, other = np.full(5, comm.rank), np.zeros(5, int)
    comm.Sendrecv(mine, (comm.rank + 1) % comm.size, 0, other, (comm.rank - 1) % comm.size, 0)
    assert_array_equal(other, (comm.rank - 1) % comm.size)


@MPITest(commsize=[4])
def test_split(comm: Any) -> None:
    half = comm.Split(comm.rank % 2, comm.rank)
    assert half.size == 2 and half.allgather(comm.rank) == [comm.rank % 2, comm.rank % 2 + 2]
    assert MPI.Comm.Compare(half, comm) == MPI.UNEQUAL
    half.Free()
