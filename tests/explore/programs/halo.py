"""A ring of cells exchanges borders with both neighbours. Both messages have one tag, and the
receives take them from any source, in the order left, right."""

import numpy
from mpi4py import MPI

comm = MPI.COMM_WORLD
left, right = (comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size
field = numpy.full(4, float(comm.rank))

borders = numpy.empty(2)
requests = [comm.Isend(field[-1:], dest=right, tag=1), comm.Isend(field[:1], dest=left, tag=1)]
for i in range(2):
    comm.Recv(borders[i : i + 1], source=MPI.ANY_SOURCE, tag=1)
MPI.Request.Waitall(requests)
expected = {float(left), float(right)}
assert set(borders.tolist()) == expected
if comm.rank == comm.size - 1:
    assert list(borders) == [float(left), float(right)], borders
