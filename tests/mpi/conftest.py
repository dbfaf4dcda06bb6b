"""Fixtures for tests of MPI outside a simulation."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from pysmpi.mpi.base import ranks
from pysmpi.mpi.processes import inactive


@pytest.fixture
def own_rank(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let a test change per-rank state without later tests seeing it."""
    monkeypatch.setattr(ranks.outside, "state", [])
    yield
    inactive.end()  # a test may have left MPI uninitialized


@pytest.fixture(scope="module")
def as_mpi4py() -> Iterator[None]:
    """Let pickle find the predefined handles under the name of the module that programs import."""
    import mpi4py

    from pysmpi.mpi import MPI

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "mpi4py.MPI", MPI)
        patch.setattr(mpi4py, "MPI", MPI, raising=False)
        yield
