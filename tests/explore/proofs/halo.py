"""A ring of cells exchanges its borders; both come from any source, and the source tells the side.

The error, with the argument `order`: the borders are expected in the order of the ranks.
"""

import sys

import numpy
from mpi4py import MPI

STEPS = 2

comm = MPI.COMM_WORLD
left, right = (comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size
in_order = "order" in sys.argv
cell = float(comm.rank)
for step in range(STEPS):
    mine = numpy.array([cell])
    sends = [comm.Isend(mine, dest=peer, tag=step) for peer in (left, right)]
    borders = {}
    border = numpy.empty(1)
    for side in sorted((left, right)):
        status = MPI.Status()
        comm.Recv(border, source=MPI.ANY_SOURCE, tag=step, status=status)
        borders[side if in_order else status.source] = float(border[0])
    del status
    MPI.Request.Waitall(sends)
    cell = 3.0 * cell + 2.0 * borders[left] + borders[right]
expected = [float(rank) for rank in range(comm.size)]
for _ in range(STEPS):
    expected = [
        3.0 * one + 2.0 * expected[i - 1] + expected[(i + 1) % comm.size]
        for i, one in enumerate(expected)
    ]
assert cell == expected[comm.rank], f"{cell} instead of {expected[comm.rank]}"
