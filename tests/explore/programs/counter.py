"""Two ranks increase a counter in a window. The first tells the second to go on as soon as it has
read the counter, and not after it has written it; shared locks do not exclude each other."""

import time

import numpy
from mpi4py import MPI

comm = MPI.COMM_WORLD
memory = numpy.zeros(1, "i")
win = MPI.Win.Create(memory, 4, comm=comm)
value = numpy.zeros(1, "i")
if comm.rank in (1, 2):
    if comm.rank == 2:
        comm.recv(source=1)
        time.sleep(1e-3)  # "long enough"
    win.Lock(0, MPI.LOCK_SHARED)
    win.Get(value, 0)
    win.Flush(0)
    if comm.rank == 1:
        comm.isend(None, dest=2).wait()
    value += 1
    win.Put(value, 0)
    win.Unlock(0)
comm.Barrier()
assert comm.rank or memory[0] == 2, memory
win.Free()
