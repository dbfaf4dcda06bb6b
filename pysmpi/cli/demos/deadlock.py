"""Each rank sends before it receives. Small messages pass, large ones wait for ever."""

import sys

import numpy
from mpi4py import MPI

comm = MPI.COMM_WORLD
count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size

mine, theirs = numpy.full(count, comm.rank), numpy.empty(count, int)
comm.Send(mine, dest=right)
comm.Recv(theirs, source=left)
print(f"rank {comm.rank} has the numbers of rank {theirs[0]}")
