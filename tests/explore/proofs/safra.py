"""Work that makes new work on other ranks, and a token that finds out when all of it is done
(Dijkstra, Shmuel Safra's version of termination detection, EWD 998).

The error, with the argument `white`: a rank that receives work does not become black.
"""

import sys

from mpi4py import MPI

WORK, TOKEN, STOP = 1, 2, 3
comm = MPI.COMM_WORLD
white = "white" in sys.argv
NEXT = {0: [3], 3: [1, 2], 1: [], 2: []}  # the ranks to which the work of a rank goes on


def run() -> int:
    """Work until the token finds that all work is done; return the pieces of work done here."""
    black = False
    sent = done = 0
    status = MPI.Status()
    if comm.rank == 0:
        comm.send((0, False), dest=comm.size - 1, tag=TOKEN)
        for peer in NEXT[0]:
            comm.send(None, dest=peer, tag=WORK)
            sent += 1
    while True:
        message = comm.recv(status=status)
        if status.tag == STOP:
            return done
        if status.tag == WORK:
            sent -= 1
            done += 1
            black = not white
            for peer in NEXT[comm.rank]:
                comm.send(None, dest=peer, tag=WORK)
                sent += 1
            continue
        count, dark = message
        if comm.rank:
            comm.send((count + sent, dark or black), dest=comm.rank - 1, tag=TOKEN)
            black = False
        elif count + sent == 0 and not dark and not black:
            for peer in range(1, comm.size):
                comm.send(None, dest=peer, tag=STOP)
            return done
        else:
            black = False
            comm.send((0, False), dest=comm.size - 1, tag=TOKEN)


total = comm.reduce(run(), root=0)
if comm.rank == 0:
    assert total == 3, f"{total} of 3 pieces of work were done"
