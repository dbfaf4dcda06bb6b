"""Chains whose model the ranks evaluate together."""

from __future__ import annotations

import numpy as np
from mpi4py import MPI
from scipy.stats import uniform
from smcpy import ParallelVectorMCMC

comm = MPI.COMM_WORLD
times = np.linspace(0.0, 1.0, 12)


def model(inputs: np.ndarray) -> np.ndarray:
    return inputs[:, :1] * times + inputs[:, 1:2]


data = 2.0 * times + 0.5
chains = ParallelVectorMCMC(model, data, [uniform(0, 6), uniform(0, 6)], comm, 0.3)
np.random.seed(7)
for _ in range(3):
    inputs = comm.bcast(np.random.uniform(0.0, 3.0, (10, 2)))
    outputs = chains.evaluate_model(inputs)
    print(comm.rank, outputs.shape, float(outputs.sum()))
    likelihoods = chains.evaluate_log_likelihood(inputs)
    if comm.rank == 0:
        print("likelihoods", likelihoods.ravel().round(9).tolist())
