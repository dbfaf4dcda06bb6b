"""The program c/allreduce.c in mpi4py: allreduce.py REPEATS BYTES."""

import sys

import numpy as np
from mpi4py import MPI


def main():
    """Sum vectors over all ranks; rank 0 prints the time of the slowest rank."""
    repeats, count = map(int, sys.argv[1:])
    comm = MPI.COMM_WORLD
    mine, total = np.zeros(count // 8), np.zeros(count // 8)
    start = MPI.Wtime()
    for _ in range(repeats):
        comm.Allreduce(mine, total, op=MPI.SUM)
    taken, slowest = np.array([MPI.Wtime() - start]), np.zeros(1)
    comm.Reduce(taken, slowest, op=MPI.MAX, root=0)
    if comm.Get_rank() == 0:
        print(f"simulated {slowest[0]:.9g}")


main()
