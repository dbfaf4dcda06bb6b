"""A pool that goes on without the ranks that leave it: gather, broadcast, sums, barriers."""

from __future__ import annotations

import sys

from lossy_mpi.pool import Pool
from lossy_mpi.util import reduce_sum, zero_constructor
from mpi4py import MPI

comm = MPI.COMM_WORLD
# The time limit is far longer than any message takes.
pool = Pool(comm, root=0, timeout=2, n_tries=400)
pool.ready()
pool.sync_mask()
if pool.is_root:
    print("all", [one.name for one in pool.mask], pool.done)
print(comm.rank, "root says", pool.bcast({"steps": 3} if pool.is_root else None))
gathered = pool.gather(comm.rank**2, failover=-1)
if pool.is_root:
    print("squares", gathered)
print(comm.rank, "sum", pool.allreduce([comm.rank, 1], zero_constructor, reduce_sum))
pool.Barrier()
if comm.rank == comm.size - 1:
    pool.drop()
pool.sync_mask()
if pool.status.name == "DONE":
    print(comm.rank, "leaves")
    sys.exit(0)
left = pool.gather(comm.rank + 10, failover=None)
if pool.is_root:
    print("left", [one.name for one in pool.mask], left)
