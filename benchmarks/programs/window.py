"""The program c/window.c in mpi4py: window.py REPEATS BYTES DEPTH."""

import sys

import numpy as np
from mpi4py import MPI


def main():
    """Keep messages to the next rank in flight; rank 0 prints the time of the slowest rank."""
    repeats, count, depth = map(int, sys.argv[1:])
    comm = MPI.COMM_WORLD
    rank, size = comm.Get_rank(), comm.Get_size()
    following, before = (rank + 1) % size, (rank - 1) % size
    out = np.zeros(count, np.uint8)
    received = [np.zeros(count, np.uint8) for _ in range(depth)]
    start = MPI.Wtime()
    for _ in range(repeats):
        requests = [comm.Irecv(buffer, before, 0) for buffer in received]
        requests += [comm.Isend(out, following, 0) for _ in range(depth)]
        MPI.Request.Waitall(requests)
    taken, slowest = np.array([MPI.Wtime() - start]), np.zeros(1)
    comm.Reduce(taken, slowest, op=MPI.MAX, root=0)
    if rank == 0:
        print(f"simulated {slowest[0]:.9g}")


main()
