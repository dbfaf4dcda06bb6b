"""PageRank of a random graph, until the ranks change little."""

import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
pages, degree = 4_000, 8
own = pages // comm.size
links = np.random.default_rng(comm.rank).zipf(1.6, (own, degree)) % pages
rank = np.full(pages, 1.0 / pages)


def spread(values):
    new = np.zeros(pages)
    shares = np.repeat(values / degree, degree)
    np.add.at(new, links.ravel(), shares)
    return new


iterations, change = 0, 1.0
while change > 1e-8 and iterations < 400:
    part = spread(rank[comm.rank * own : (comm.rank + 1) * own])
    new = np.empty(pages)
    comm.Allreduce(part, new)
    new = 0.15 / pages + 0.85 * new
    change = np.abs(new - rank).sum()
    rank = new
    iterations += 1
if comm.rank == 0:
    print("iterations", iterations)
