"""A Monte Carlo integral, until the estimated error of all ranks is small enough."""

import sys

import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
rng = np.random.default_rng(comm.rank)
batch = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
limit = float(sys.argv[2]) if len(sys.argv) > 2 else 1.2e-4


def sample(points):
    values = np.exp(-(points**2).sum(axis=1)) * np.cos(3.0 * points[:, 0])
    return np.array([len(values), values.sum(), (values**2).sum()])


sums, total, batches = np.zeros(3), np.zeros(3), 0
while batches < 400:
    sums += sample(rng.random((batch, 4)))
    batches += 1
    comm.Allreduce(sums, total)
    count, first, second = total
    mean = first / count
    if np.sqrt(max(second / count - mean * mean, 0.0) / count) < limit:
        break
if comm.rank == 0:
    print("batches", batches)
