"""The time of an Allreduce of 8 B to 1 MiB. The library chooses an algorithm for each size."""

import numpy
from mpi4py import MPI

comm = MPI.COMM_WORLD
rounds = 5
for size in (8, 1 << 10, 1 << 15, 1 << 20):
    mine = numpy.ones(size // 8)
    total = numpy.empty_like(mine)
    comm.Barrier()
    start = MPI.Wtime()
    for _ in range(rounds):
        comm.Allreduce(mine, total)
    seconds = (MPI.Wtime() - start) / rounds
    if comm.rank == 0:
        print(f"Allreduce of {size:9,} B on {comm.size} ranks: {seconds * 1e6:8.1f} us")
