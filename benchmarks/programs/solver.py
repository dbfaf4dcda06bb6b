"""Halo exchanges and a sum, as an iterative solver does them: solver.py ITERATIONS BYTES."""

import sys

import numpy as np
from mpi4py import MPI


def main():
    """Exchange with four neighbours on a torus, and sum a number over all ranks."""
    iterations, count = map(int, sys.argv[1:])
    shape = MPI.Compute_dims(MPI.COMM_WORLD.Get_size(), 2)
    grid = MPI.COMM_WORLD.Create_cart(shape, periods=(True, True), reorder=False)
    peers = [*grid.Shift(0, 1), *grid.Shift(1, 1)]
    out = [np.zeros(count, np.uint8) for _ in peers]
    received = [np.zeros(count, np.uint8) for _ in peers]
    norm, total = np.ones(1), np.zeros(1)
    for _ in range(iterations):
        requests = [grid.Irecv(buffer, peer, 0) for buffer, peer in zip(received, peers)]
        requests += [grid.Isend(buffer, peer, 0) for buffer, peer in zip(out, peers)]
        MPI.Request.Waitall(requests)
        grid.Allreduce(norm, total)


main()
