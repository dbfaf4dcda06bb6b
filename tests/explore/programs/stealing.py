"""An idle rank asks a victim for work. If both ask each other at once, each waits for an answer and
does not serve the other."""

from mpi4py import MPI

ASK, WORK = 1, 2
comm = MPI.COMM_WORLD
if comm.rank == 0:
    # Gives one piece to the first rank that asks, the second piece to the next.
    for piece in range(2):
        status = MPI.Status()
        comm.recv(source=MPI.ANY_SOURCE, tag=ASK, status=status)
        comm.send(piece, dest=status.source, tag=WORK)
elif comm.rank in (1, 2):
    peer = 3 - comm.rank
    comm.send(None, dest=0, tag=ASK)
    piece = comm.recv(source=0, tag=WORK)
    if piece == 1 and comm.rank == 1:
        # The second one asks its peer, which has ended its round.
        comm.send(None, dest=peer, tag=ASK)
        comm.recv(source=peer, tag=WORK)
    elif piece == 1:
        comm.send(None, dest=peer, tag=ASK)
        comm.recv(source=peer, tag=WORK)
    elif comm.rank == 1:
        comm.recv(source=peer, tag=ASK)
        comm.send(None, dest=peer, tag=WORK)
