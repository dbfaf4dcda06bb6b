"""A program that uses MPI only if a launcher has started it."""

from __future__ import annotations

import maybempi
import numpy as np

MPI = maybempi.get_mpi()
comm = MPI.COMM_WORLD
print(comm.rank, "of", comm.size, maybempi.is_serial(MPI), maybempi.launched_under_mpi())
print(comm.rank, "local", maybempi.local_rank())
total = np.zeros(3)
comm.Allreduce(np.arange(3.0) * (comm.rank + 1), total, op=MPI.SUM)
print(comm.rank, total.tolist(), comm.allreduce(comm.rank, op=MPI.MAX))
half = comm.Split(comm.rank % 2, -comm.rank)
print(comm.rank, half.rank, half.allgather(comm.rank))
half.Free()
