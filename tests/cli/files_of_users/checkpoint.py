"""Each rank writes its part of a checkpoint."""

import numpy
from mpi4py import MPI

comm = MPI.COMM_WORLD
part = numpy.full(1000, float(comm.rank))
file = MPI.File.Open(comm, "checkpoint.bin", MPI.MODE_CREATE | MPI.MODE_WRONLY)
file.Write_at_all(comm.rank * part.nbytes, part)
file.Close()
