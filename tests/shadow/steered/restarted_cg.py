"""Conjugate gradients with restarts where the directions lose their conjugacy."""

import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
n = 3_000
b = np.random.default_rng(comm.rank).random(n)
diagonal = 2.0 + 0.02 * np.random.default_rng(100 + comm.rank).random(n)
up, down = comm.rank - 1, comm.rank + 1


def apply(x):
    edges = np.zeros(2)
    if up >= 0:
        comm.Sendrecv(x[:1], up, 0, edges[:1], up, 0)
    if down < comm.size:
        comm.Sendrecv(x[-1:], down, 0, edges[1:], down, 0)
    y = diagonal * x
    y[1:] -= x[:-1]
    y[:-1] -= x[1:]
    y[0] -= edges[0]
    y[-1] -= edges[1]
    return y


def dot(x, y):
    total = np.zeros(1)
    comm.Allreduce(np.array([x @ y]), total)
    return total[0]


x = np.zeros(n)
r = b.copy()
p, norm = r.copy(), dot(r, r)
first, steps, restarts = norm, 0, 0
while norm > 1e-12 * first and steps < 600:
    q = apply(p)
    alpha = norm / dot(p, q)
    x += alpha * p
    old = r.copy()
    r = r - alpha * q
    new = dot(r, r)
    steps += 1
    if abs(dot(r, old)) > 0.1 * new:
        r = b - apply(x)
        p, new = r.copy(), dot(r, r)
        restarts += 1
    else:
        p = r + new / norm * p
    norm = new
if comm.rank == 0:
    print("steps", steps, "restarts", restarts)
