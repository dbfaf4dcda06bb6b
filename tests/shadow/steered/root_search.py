"""Bisection for a root of a function of distributed data; one rank decides for all."""

import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
weights = np.random.default_rng(comm.rank).random(4_000)
low, high, steps = 0.0, 4.0, 0
going = True
while going:
    middle = 0.5 * (low + high)
    part = float((weights * np.exp(-weights * middle)).sum() - 0.3 * weights.size)
    value = comm.reduce(part)
    if comm.rank == 0:
        if value > 0.0:
            low = middle
        else:
            high = middle
        going = abs(value) > 1e-9 * weights.size and steps < 100
    going, low, high = comm.bcast((going, low, high) if comm.rank == 0 else None)
    steps += 1
if comm.rank == 0:
    print("steps", steps)
