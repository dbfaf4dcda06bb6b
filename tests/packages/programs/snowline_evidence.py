"""Importance sampling of an evidence: every rank draws and evaluates a part."""

from __future__ import annotations

import numpy as np
import snowline
from mpi4py import MPI

rank = MPI.COMM_WORLD.rank


def likelihood(x: np.ndarray) -> float:
    return -0.5 * float((((x - 0.5) / 0.1) ** 2).sum())


np.random.seed(3 + rank)
sampler = snowline.ReactiveImportanceSampler(["a", "b"], likelihood, transform=lambda u: u)
result = sampler.run(num_global_samples=200, max_ncalls=3000, verbose=False)
print(rank, sampler.mpi_size, abs(result["logz"] - np.log(2 * np.pi * 0.01)) < 0.2)
