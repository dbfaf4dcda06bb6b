"""Hello, a ring exchange, a barrier, an allreduce, and an allreduce in each of many parts."""

import sys

import numpy as np
from mpi4py import MPI


def main():
    """Check every result; rank 0 prints the simulated time of each phase."""
    comm = MPI.COMM_WORLD
    rank, size = comm.Get_rank(), comm.Get_size()
    parts = max(1, min(1000, size // 10))
    dates = [MPI.Wtime()]

    sys.stdout.write(f"hello {rank}\n")

    token, received = np.array([rank]), np.empty(1, int)
    comm.Sendrecv(token, (rank + 1) % size, 0, received, (rank - 1) % size, 0)
    assert received[0] == (rank - 1) % size
    dates.append(MPI.Wtime())

    comm.Barrier()
    dates.append(MPI.Wtime())

    total = np.empty(1, int)
    comm.Allreduce(token, total, op=MPI.SUM)
    assert total[0] == size * (size - 1) // 2
    dates.append(MPI.Wtime())

    color = rank * parts // size
    part = comm.Split(color, rank)
    dates.append(MPI.Wtime())

    part.Allreduce(token, total, op=MPI.SUM)
    first, last = -(-color * size // parts), -(-(color + 1) * size // parts) - 1
    assert total[0] == (first + last) * part.Get_size() // 2
    dates.append(MPI.Wtime())

    if rank == 0:
        names = ("ring", "barrier", "allreduce", "split", "allreduce in parts")
        for name, before, after in zip(names, dates, dates[1:]):
            print(f"{name}: {after - before:.9g} s", file=sys.stderr)


main()
