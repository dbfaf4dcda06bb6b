"""Lines with the rank that prints them, and plain ones."""

from __future__ import annotations

from mpi4py import MPI
from mpi_print import builtin_print, print

comm = MPI.COMM_WORLD
for turn in range(comm.size):
    comm.Barrier()
    if turn == comm.rank:
        print("one", turn, sep=":", end=".\n")
        builtin_print("plain", comm.size)
