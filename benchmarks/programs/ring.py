"""The program c/ring.c in mpi4py: ring.py REPEATS BYTES."""

import sys

import numpy as np
from mpi4py import MPI


def main():
    """Exchange with both neighbours; rank 0 prints the time of the slowest rank."""
    repeats, count = map(int, sys.argv[1:])
    comm = MPI.COMM_WORLD
    rank, size = comm.Get_rank(), comm.Get_size()
    following, before = (rank + 1) % size, (rank - 1) % size
    out, received = np.zeros(count, np.uint8), np.zeros(count, np.uint8)
    start = MPI.Wtime()
    for _ in range(repeats):
        comm.Sendrecv(out, following, 0, received, before, 0)
    taken, slowest = np.array([MPI.Wtime() - start]), np.zeros(1)
    comm.Reduce(taken, slowest, op=MPI.MAX, root=0)
    if rank == 0:
        print(f"simulated {slowest[0]:.9g}")


main()
