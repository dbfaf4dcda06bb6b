"""Relaxes a field that is spread over the ranks; takes any arguments."""

import numpy
from mpi4py import MPI
from solver.grid import Grid

comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size


def new_field(count):
    return numpy.full(count, 1.0 + rank)


field, grid = new_field(20_000), Grid.allocate(20_000)
halo = numpy.empty(1)
for _ in range(4):
    grid[:] = 0.5 * (field + numpy.roll(field, 1))
    comm.Sendrecv(grid[-1:], dest=(rank + 1) % size, recvbuf=halo, source=(rank - 1) % size)
    grid[0] = halo[0]
    field, grid = grid, field
    comm.allreduce(float(numpy.sum(field)), op=MPI.MAX)
    comm.Bcast(halo)
everyone = numpy.empty(size)
comm.Alltoall(numpy.ones(size), everyone)
