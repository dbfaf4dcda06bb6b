"""Lloyd's k-means, until no point changes its cluster."""

import sys

import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
rng = np.random.default_rng(comm.rank)
count = int(sys.argv[1]) if len(sys.argv) > 1 else 4_000
points = rng.random((count, 8))
k = int(sys.argv[2]) if len(sys.argv) > 2 else 12
centres = np.random.default_rng(99).random((k, 8))
labels = np.full(len(points), -1)


def nearest(points, centres):
    return ((points[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2).argmin(axis=1)


steps = 0
while steps < 300:
    new = nearest(points, centres)
    moved = int((new != labels).sum())
    labels = new
    sums = np.zeros((k, 9))
    for cluster in range(k):
        mine = points[labels == cluster]
        sums[cluster, :8], sums[cluster, 8] = mine.sum(axis=0), len(mine)
    total = np.zeros_like(sums)
    comm.Allreduce(sums, total)
    centres = total[:, :8] / np.maximum(total[:, 8:], 1.0)
    steps += 1
    if comm.allreduce(moved) == 0:
        break
if comm.rank == 0:
    print("steps", steps)
