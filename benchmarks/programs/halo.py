"""The program c/halo.c in mpi4py: halo.py REPEATS BYTES."""

import sys

import numpy as np
from mpi4py import MPI


def main():
    """Exchange with four neighbours on a torus; rank 0 prints the time of the slowest rank."""
    repeats, count = map(int, sys.argv[1:])
    shape = MPI.Compute_dims(MPI.COMM_WORLD.Get_size(), 2)
    grid = MPI.COMM_WORLD.Create_cart(shape, periods=(True, True), reorder=False)
    peers = [*grid.Shift(0, 1), *grid.Shift(1, 1)]
    out = [np.zeros(count, np.uint8) for _ in peers]
    received = [np.zeros(count, np.uint8) for _ in peers]
    start = MPI.Wtime()
    for _ in range(repeats):
        requests = [grid.Irecv(buffer, peer, 0) for buffer, peer in zip(received, peers)]
        requests += [grid.Isend(buffer, peer, 0) for buffer, peer in zip(out, peers)]
        MPI.Request.Waitall(requests)
    taken, slowest = np.array([MPI.Wtime() - start]), np.zeros(1)
    grid.Reduce(taken, slowest, op=MPI.MAX, root=0)
    if grid.Get_rank() == 0:
        print(f"simulated {slowest[0]:.9g}")


main()
