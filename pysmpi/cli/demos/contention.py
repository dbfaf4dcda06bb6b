"""More and more pairs of ranks exchange messages. All messages cross the same cable."""

import numpy
from mpi4py import MPI

comm = MPI.COMM_WORLD
rounds, size = 20, 1 << 20
half = comm.size // 2
partner = (comm.rank + half) % comm.size

mine, theirs = numpy.zeros(size, "b"), numpy.empty(size, "b")
pairs = 1
while pairs <= half:
    comm.Barrier()
    start = MPI.Wtime()
    if comm.rank % half < pairs:
        for _ in range(rounds):
            comm.Sendrecv(mine, partner, recvbuf=theirs, source=partner)
    seconds = comm.allreduce(MPI.Wtime() - start, MPI.MAX)
    if comm.rank == 0:
        print(f"{pairs} pairs at once: {rounds * size / seconds / 1e6:6.0f} MB/s a pair")
    pairs *= 2
