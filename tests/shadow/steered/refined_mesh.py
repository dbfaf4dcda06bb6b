"""A moving front on a mesh that each rank refines where the solution is steep."""

import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
cells = 3_000
low, high = comm.rank / comm.size, (comm.rank + 1) / comm.size
x = np.linspace(low, high, cells)


def front(x, t):
    return np.tanh(60.0 * (x - 0.1 - 0.8 * t))


def refine(x, u):
    steep = np.flatnonzero(np.abs(np.diff(u)) > 2e-3)
    return np.sort(np.concatenate([x, 0.5 * (x[steep] + x[steep + 1])]))


def smooth(u, times):
    for _ in range(times):
        u[1:-1] += 0.1 * (u[2:] - 2.0 * u[1:-1] + u[:-2])


for turn in range(60):
    u = front(x, turn / 60)
    while len(x) < 60_000:
        finer = refine(x, u)
        if len(finer) == len(x):
            break
        x = finer
        u = front(x, turn / 60)
    smooth(u, 20)
    comm.Allgather(u[-1:].copy(), np.empty(comm.size))
    x = np.linspace(low, high, cells)
if comm.rank == 0:
    print("done")
