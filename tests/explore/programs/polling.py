"""A rank polls for a cancellation between two steps. It looks once, and forgets the message if
that is still under way: the sender then waits for an answer that never comes."""

from mpi4py import MPI

CANCEL, ANSWER = 1, 2
comm = MPI.COMM_WORLD
if comm.rank == 0:
    comm.send("stop", dest=1, tag=CANCEL)
    assert comm.recv(source=1, tag=ANSWER) == "stopped"
elif comm.rank == 1:
    comm.recv(source=MPI.ANY_SOURCE, tag=0)
    if comm.iprobe(source=0, tag=CANCEL):
        comm.recv(source=0, tag=CANCEL)
        comm.send("stopped", dest=0, tag=ANSWER)
elif comm.rank == 2:
    comm.send("go", dest=1)
