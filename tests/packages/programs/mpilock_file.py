"""Ranks that read and write a file under a lock that lives in a window."""

from __future__ import annotations

import pathlib

from mpi4py import MPI
from mpilock import sync

comm = MPI.COMM_WORLD
control = sync()
file = pathlib.Path("shared.txt")
with control.single_write() as fence:
    fence.guard()
    file.write_text("0\n")
comm.Barrier()
for _ in range(3):
    with control.write():
        values = [int(line) for line in file.read_text().split()]
        file.write_text("\n".join(str(one) for one in [*values, values[-1] + 1]))
comm.Barrier()
with control.read():
    print("rank", comm.rank, file.read_text().split())
with control.single_write() as fence:
    fence.guard()
    fence.share({"rows": len(file.read_text().split())})
print("rank", comm.rank, fence.collect())
control.close()
