"""Tests of mpi-pytest, which name their number of ranks."""

from __future__ import annotations

import pytest
from mpi4py import MPI

comm = MPI.COMM_WORLD


@pytest.mark.parallel(nprocs=4)
def test_sum() -> None:
    assert comm.size == 4 and comm.allreduce(1) == 4


@pytest.mark.parallel(nprocs=4)
@pytest.mark.parametrize("root", [0, 3])
def test_bcast(root: int) -> None:
    assert comm.bcast({"root": root} if comm.rank == root else None, root) == {"root": root}


@pytest.mark.parallel(nprocs=2)
def test_for_two() -> None:
    raise AssertionError("it needs two ranks")
