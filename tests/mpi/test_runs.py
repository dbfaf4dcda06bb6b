"""Runs in one process do not leak into each other."""

from __future__ import annotations

from typing import Any

import numpy as np
from simulated import simulate

from pysmpi.mpi import MPI
from pysmpi.mpi.groups import agreement


def test_tags_do_not_depend_on_the_runs_before() -> None:
    def operations(*names: str) -> dict[str, int]:
        def main(rank: Any) -> None:
            for name in names:
                comm: Any = MPI.COMM_WORLD
                getattr(comm, name)(np.zeros(1), *([np.zeros(1)] * (name == "Allreduce")))

        simulate(2, main)
        return dict(agreement._codes)

    alone = operations("Allreduce")
    assert operations("Bcast", "Allreduce") != alone
    assert operations("Allreduce") == alone
