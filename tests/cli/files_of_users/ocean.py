from mpi4py import MPI

comm = MPI.COMM_WORLD
part = comm.Split(MPI.COMM_WORLD.Get_attr(MPI.APPNUM))
comm.bcast("temperature" if comm.rank == 0 else None)
