import time

from mpi4py import MPI

for _ in range(5):
    time.sleep(1.0)
    MPI.COMM_WORLD.Barrier()
