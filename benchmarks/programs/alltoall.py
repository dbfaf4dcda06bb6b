"""The program c/alltoall.c in mpi4py: alltoall.py REPEATS BYTES."""

import sys

import numpy as np
from mpi4py import MPI


def main():
    """Exchange between all pairs; rank 0 prints the time of the slowest rank."""
    repeats, count = map(int, sys.argv[1:])
    comm = MPI.COMM_WORLD
    out = np.zeros((comm.Get_size(), count), np.uint8)
    received = np.zeros((comm.Get_size(), count), np.uint8)
    start = MPI.Wtime()
    for _ in range(repeats):
        comm.Alltoall(out, received)
    taken, slowest = np.array([MPI.Wtime() - start]), np.zeros(1)
    comm.Reduce(taken, slowest, op=MPI.MAX, root=0)
    if comm.Get_rank() == 0:
        print(f"simulated {slowest[0]:.9g}")


main()
