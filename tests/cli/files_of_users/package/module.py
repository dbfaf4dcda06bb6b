from mpi4py import MPI

print(MPI.COMM_WORLD.allreduce(1))
