"""Each rank keeps a block in a file of its own and reads it again."""

import numpy
from mpi4py import MPI

rank = MPI.COMM_WORLD.rank
block, again = numpy.full(1000, float(rank)), numpy.empty(1000)
file = MPI.File.Open(MPI.COMM_SELF, f"block-{rank}", MPI.MODE_CREATE | MPI.MODE_RDWR)
file.Write_at(0, block)
file.Read_at(0, again)
file.Close()
assert (again == block).all()
