import os
import sys

from mpi4py import MPI

assert os.environ["LEVELS"] == "40" and sys.argv[1:] == ["--fast"]
comm = MPI.COMM_WORLD
part = comm.Split(MPI.COMM_WORLD.Get_attr(MPI.APPNUM))
assert comm.bcast(None) == "temperature" and part.size == 6
