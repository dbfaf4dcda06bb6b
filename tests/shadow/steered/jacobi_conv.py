"""Jacobi steps on a diagonally dominant system, until the residual is small."""

import sys

import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
n = int(sys.argv[1]) if len(sys.argv) > 1 else 1200
rows = n // comm.size


def make(rank):
    rng = np.random.default_rng(rank)
    a = rng.random((rows, n))
    a[np.arange(rows), rank * rows + np.arange(rows)] += n * 0.7
    return a, rng.random(rows)


def sweep(a, b, diag, x, mine):
    r = b - a @ x
    return mine + r / diag, float(r @ r)


a, b = make(comm.rank)
diag = a[np.arange(rows), comm.rank * rows + np.arange(rows)].copy()
x = np.zeros(n)
mine = np.zeros(rows)
steps = 0
t = MPI.Wtime()
while True:
    mine, rr = sweep(a, b, diag, x, mine)
    comm.Allgather(mine, x)
    total = comm.allreduce(rr)
    steps += 1
    if total < 1e-16 * n or steps >= 500:
        break
t = MPI.Wtime() - t
if comm.rank == 0:
    print(f"steps {steps} residual {total:.3e} sum {x.sum():.12f} time {t:.6f}")
