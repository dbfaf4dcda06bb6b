"""Tests of pytest-isolate-mpi, run by all ranks of one job."""

from __future__ import annotations

import pytest
from mpi4py import MPI


@pytest.mark.mpi(ranks=4)
def test_sum(mpi_ranks: int, comm: MPI.Comm) -> None:
    assert comm.size == mpi_ranks == 4
    assert comm.allreduce(comm.rank) == 6


@pytest.mark.mpi(ranks=4)
def test_ring(comm: MPI.Comm) -> None:
    left = (comm.rank - 1) % comm.size
    assert comm.sendrecv(comm.rank, (comm.rank + 1) % comm.size, source=left) == left
