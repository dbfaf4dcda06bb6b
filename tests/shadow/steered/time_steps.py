"""Burgers' equation with a time step by the largest speed, until an end time."""

import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
n = 4_000
u = np.zeros(n + 2)
u[1:-1] = 1.0 + np.sin(2.0 * np.pi * (rank * n + np.arange(n)) / (n * size))
left, right = (rank - 1) % size, (rank + 1) % size
width, time, steps = 1.0 / (n * size), 0.0, 0
largest = np.zeros(1)


def advance(u, step):
    flux = 0.5 * u * u
    u[1:-1] -= step / width * (flux[1:-1] - flux[:-2])


while time < 0.02:
    comm.Sendrecv(u[-2:-1], right, 0, u[:1], left, 0)
    comm.Allreduce(np.abs(u).max(keepdims=True), largest, MPI.MAX)
    step = min(0.4 * width / largest[0], 0.02 - time)
    advance(u, step)
    time += step
    steps += 1
    if steps > 3_000:
        break
if rank == 0:
    print("steps", steps)
