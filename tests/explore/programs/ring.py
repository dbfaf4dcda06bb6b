"""All ranks send to the right before they receive from the left: this relies on buffers."""

from mpi4py import MPI

comm = MPI.COMM_WORLD
value = comm.rank
for _ in range(comm.size):
    comm.send(value, dest=(comm.rank + 1) % comm.size)
    value = comm.recv(source=(comm.rank - 1) % comm.size)
assert value == comm.rank
