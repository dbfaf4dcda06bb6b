"""mpiprof's communicator: counts calls, and the times of messages."""

from __future__ import annotations

import json
import pathlib

from mpi4py import MPI
from mpiprof import MPIProfiler

comm = MPIProfiler(MPI.COMM_WORLD)
rank, size = comm.Get_rank(), comm.Get_size()
total = comm.allreduce(rank, op=MPI.SUM)
for step in range(3):
    comm.send({"step": step, "from": rank}, dest=(rank + 1) % size, tag=step)
    print(rank, comm.recv(source=(rank - 1) % size, tag=step))
comm.barrier()
print(rank, total, comm.bcast("word" if rank == 0 else None, root=0))
comm.write_statistics(f"statistics.{rank}.json")
file = pathlib.Path(f"statistics.{rank}.json")
print(rank, file.exists() and sorted(json.loads(file.read_text()))[:5])
