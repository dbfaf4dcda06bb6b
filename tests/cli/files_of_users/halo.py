from mpi4py import MPI

comm = MPI.COMM_WORLD
comm.sendrecv(comm.rank, dest=1 - comm.rank, source=1 - comm.rank)
