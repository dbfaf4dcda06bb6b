"""Vectors that are spread over the ranks: parts, norms, products, and back."""

from __future__ import annotations

import numpy as np
from mpi4py import MPI
from pympiutils import pympiutils as spread

comm = MPI.COMM_WORLD
for size in (24, 10):
    layout = spread.generate_mpi_layout(nglob=size, nprocs=comm.size, MPI=MPI)
    whole = np.arange(float(size)) if comm.rank == 0 else None
    part = spread.xglob2loc(whole, layout, MPI)
    print(comm.rank, layout.nloc, list(map(int, layout.displ)), part.tolist())
    parts = spread.make_mpi_info(size, MPI)
    print(comm.rank, float(spread.norm(part, parts)), float(spread.dot(part, 2 * part, parts)))
    again = spread.xloc2glob(part + comm.rank, layout, MPI)
    if comm.rank == 0:
        print("whole", again.tolist())
own = spread.make_mpi_info(comm.rank + 1, MPI, isGlobal=False)
print(comm.rank, [int(one) for one in own.layout.nlocal_sizes])
