"""Adaptive Monte Carlo integration: each rank evaluates a part of the points."""

from __future__ import annotations

import gvar
import numpy as np
import vegas
from mpi4py import MPI


@vegas.rbatchintegrand
def peak(x: np.ndarray) -> np.ndarray:
    return 1013.2118364296088 * np.exp(-100.0 * np.sum((x - 0.5) ** 2, axis=0))


gvar.ranseed(9)
integrator = vegas.Integrator([[-1, 1], [0, 1], [0, 1], [0, 1]], mpi=True)
integrator(peak, nitn=5, neval=4000)
result = integrator(peak, nitn=5, neval=4000)
print(MPI.COMM_WORLD.rank, result, result.Q, integrator.mpi)
