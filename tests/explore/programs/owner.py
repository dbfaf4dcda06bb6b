"""A buffer of a pending receive is written if rank 2 was first."""

import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
if comm.rank == 0:
    first = comm.recv(source=MPI.ANY_SOURCE, tag=1)
    comm.recv(source=MPI.ANY_SOURCE, tag=1)
    values = np.zeros(3)
    request = comm.Irecv(values, source=1, tag=5)
    if first == 2:
        values[0] = 1.0
    request.Wait()
else:
    comm.send(comm.rank, 0, tag=1)
    if comm.rank == 1:
        comm.Send(np.ones(3), 0, tag=5)
