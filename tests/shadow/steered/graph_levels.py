"""Breadth-first search on a random graph; the vertices of a level go to their owners."""

import sys

import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
local = int(sys.argv[1]) if len(sys.argv) > 1 else 40_000
total = local * comm.size
rng = np.random.default_rng(comm.rank)
edges = rng.integers(0, total, (local, 3))
edges[:, 0] = (np.arange(local) + comm.rank * local + 1) % total
far = rng.random(local) < 0.9
edges[far, 1:] = edges[far, :1]
seen = np.zeros(local, bool)


def expand(front):
    return np.unique(edges[front].ravel())


front = np.array([0]) if comm.rank == 0 else np.empty(0, int)
seen[front] = True
levels = 0
while comm.allreduce(len(front)) > 0 and levels < 400:
    found = expand(front)
    pieces = [found[found // local == rank] - rank * local for rank in range(comm.size)]
    arrived = np.concatenate(comm.alltoall(pieces))
    arrived = np.unique(arrived)
    front = arrived[~seen[arrived]]
    seen[front] = True
    levels += 1
if comm.rank == 0:
    print("levels", levels)
