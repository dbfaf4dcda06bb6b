import numpy
from mpi4py import MPI

rank = MPI.COMM_WORLD.rank
if rank == 0:
    numpy.save("table.npy", numpy.arange(1000.0))
MPI.COMM_WORLD.Barrier()
table = numpy.load("table.npy")
assert table.sum() == 499_500.0
MPI.COMM_WORLD.Barrier()
