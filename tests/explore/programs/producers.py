"""A consumer reads from several producers until one of them says that it has ended, and forgets
that others may have more."""

import sys

from mpi4py import MPI

DATA, END = 1, 2
comm = MPI.COMM_WORLD
items = int(sys.argv[1]) if len(sys.argv) > 1 else 2
if comm.rank:
    for item in range(items):
        comm.send(item, dest=0, tag=DATA)
    comm.Barrier()
    comm.send(None, dest=0, tag=END)
else:
    count = 0
    for _ in range(items * (comm.size - 1) - 1):
        comm.recv(source=MPI.ANY_SOURCE, tag=DATA)
        count += 1
    comm.Barrier()
    ended = 0
    while ended == 0 or count < items * (comm.size - 1) and ended < comm.size - 1:
        status = MPI.Status()
        comm.recv(source=MPI.ANY_SOURCE, status=status)
        if status.tag == END:
            ended += 1
            if ended == 1 and count < items * (comm.size - 1):
                raise RuntimeError("the first end came before the last item")
        else:
            count += 1
    for _ in range(ended, comm.size - 1):
        comm.recv(source=MPI.ANY_SOURCE, tag=END)
