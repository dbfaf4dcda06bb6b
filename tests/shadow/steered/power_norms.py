"""Power iteration with norms by Allreduce, until the eigenvalue no longer changes."""

import sys

import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
n = int(sys.argv[1]) if len(sys.argv) > 1 else 800
rows = n // comm.size
rng = np.random.default_rng(7)
whole = rng.random((n, n))
matrix = (whole + whole.T)[comm.rank * rows : (comm.rank + 1) * rows].copy()
matrix[np.arange(rows), comm.rank * rows + np.arange(rows)] += 700.0 * rng.random()
x = np.ones(n) + np.arange(n) % 7
norm = np.empty(1)
old, steps = 0.0, 0
while steps < 500:
    mine = matrix @ x
    comm.Allreduce(np.array([mine @ mine]), norm)
    value = float(np.sqrt(norm[0]))
    comm.Allgather(mine / value, x)
    steps += 1
    if abs(value - old) < 1e-9 * value:
        break
    old = value
if comm.rank == 0:
    print("steps", steps)
