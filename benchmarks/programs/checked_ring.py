"""2,000 steps of a ring of small messages, for the cost of checkers."""

import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
mine, got = np.zeros(8), np.zeros(8)
after, before = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
for _ in range(2000):
    request = comm.Irecv(got, source=before)
    comm.Send(mine, dest=after)
    request.Wait()
    mine[0] = got[0] + 1
