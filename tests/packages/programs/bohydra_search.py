"""Bayesian optimization: a coordinator proposes points, the other ranks evaluate them."""

from __future__ import annotations

import numpy as np
from bohydra import bo_coordinator, bo_worker
from mpi4py import MPI

comm = MPI.COMM_WORLD


def target(x: np.ndarray) -> float:
    return -float((x[0] - 0.3) ** 2 + (x[1] + 0.2) ** 2)


np.random.seed(3)
if comm.rank == 0:
    bo_coordinator(12, 6, 2, [(-1.0, 1.0), (-1.0, 1.0)])
else:
    bo_worker(target)
print("rank", comm.rank, "ends")
