"""Each rank sends what it selects; receivers ask for the size with Probe."""

import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
values = np.random.default_rng(rank).random(20_000)
status = MPI.Status()
for step in range(30):
    chosen = values[values > 0.5 + 0.4 * np.sin(step + rank)]
    request = comm.Isend(chosen, (rank + 1) % size, step)
    comm.Probe(MPI.ANY_SOURCE, step, status)
    came = np.empty(status.Get_count(MPI.DOUBLE))
    comm.Recv(came, status.Get_source(), step)
    request.Wait()
    values = np.sort(np.concatenate([values[:10_000], came]))[:20_000]
if rank == 0:
    print("values", len(values))
