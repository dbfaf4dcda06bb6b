"""Idle ranks steal work from others, and answer those that want to steal from them.

Rank 0 has the work. A rank that was refused by all others tells rank 0, and serves the others until
the end.

The error, with the argument `deaf`: a rank that waits for an answer does not answer others.
"""

import sys

from mpi4py import MPI

ASK, ANSWER, IDLE, STOP = 1, 2, 3, 4
comm = MPI.COMM_WORLD
deaf = "deaf" in sys.argv
status = MPI.Status()
work = [1, 1] if comm.rank == 0 else []
done = 0


def serve(tag: int) -> object:
    """Wait for a message with a tag, and answer the others that ask meanwhile."""
    while True:
        if deaf and tag == ANSWER:
            return comm.recv(tag=tag)
        message = comm.recv(status=status)
        if status.tag == tag:
            return message
        comm.send(work.pop() if work else None, dest=status.source, tag=ANSWER)


if comm.rank == 0:
    for _ in range(comm.size - 1):
        serve(IDLE)
    done = len(work)
    for peer in range(1, comm.size):
        comm.send(None, dest=peer, tag=STOP)
else:
    for victim in [0, 0, *(one for one in range(1, comm.size) if one != comm.rank)]:
        comm.send(None, dest=victim, tag=ASK)
        if serve(ANSWER):
            done += 1
    comm.send(None, dest=0, tag=IDLE)
    serve(STOP)
total = comm.reduce(done, root=0)
if comm.rank == 0:
    assert total == 2, f"{total} of 2 pieces of work were done"
