"""Parallel tempering: each rank runs one temperature, and neighbours exchange their states."""

from __future__ import annotations

import numpy as np
from mpi4py import MPI
from PTMCMCSampler import PTMCMCSampler

DIMENSIONS, STEPS = 3, 2000


def log_likelihood(x: np.ndarray) -> float:
    return -0.5 * float(np.sum((x - 0.5) ** 2 / 0.04))


def log_prior(x: np.ndarray) -> float:
    return 0.0 if np.all(np.abs(x) < 5.0) else -np.inf


comm = MPI.COMM_WORLD
np.random.seed(11 + comm.rank)
sampler = PTMCMCSampler.PTSampler(
    DIMENSIONS, log_likelihood, log_prior, np.eye(DIMENSIONS) * 0.1, comm=comm,
    outDir="./chains", verbose=False, seed=3 + comm.rank,
)  # fmt: skip
sampler.sample(np.zeros(DIMENSIONS), STEPS, burn=500, thin=1, covUpdate=500, SCAMweight=20,
               AMweight=20, DEweight=20)  # fmt: skip
comm.Barrier()
print("ladder", comm.rank, np.round(sampler.ladder, 6), sampler.naccepted)
print("chain", comm.rank, sampler._chain[500:].mean(axis=0).round(6))
