"""Tests of pytest-mpi, which ranks run together."""

from __future__ import annotations

import pytest
from mpi4py import MPI

comm = MPI.COMM_WORLD


@pytest.mark.mpi
def test_all_ranks_take_part() -> None:
    assert comm.allreduce(comm.rank) == comm.size * (comm.size - 1) // 2


@pytest.mark.mpi(min_size=2)
def test_neighbours() -> None:
    left = comm.sendrecv(comm.rank, (comm.rank + 1) % comm.size, source=(comm.rank - 1) % comm.size)
    assert left == (comm.rank - 1) % comm.size


@pytest.mark.mpi(min_size=100)
def test_for_many() -> None:
    raise AssertionError("there are not so many ranks")


@pytest.mark.mpi_skip
def test_alone() -> None:
    raise AssertionError("this is under MPI")


@pytest.mark.mpi
def test_files(mpi_tmpdir) -> None:
    mpi_tmpdir.join(f"{comm.rank}").write(str(comm.rank))
    comm.Barrier()
    other = (comm.rank + 1) % comm.size
    assert int(mpi_tmpdir.join(f"{other}").read()) == other
