"""A queue in a window: one rank puts rows, the others take them until it is empty."""

from __future__ import annotations

import numpy as np
from mpi4py import MPI
from mpi_channels import RemoteChannel

comm = MPI.COMM_WORLD
rows = 30
channel = RemoteChannel(16, 3)
channel.claim(rows)
comm.Barrier()
total, count = np.zeros(3), 0
if comm.rank == 0:
    for k in range(rows):
        channel.put((float(k), float(k * k), 1.0))
else:
    while (row := channel.take()) is not None:
        total += row
        count += 1
comm.Barrier()
whole = comm.reduce(total)
taken = comm.reduce(count)
if comm.rank == 0:
    print("sum", whole, "rows", taken)
