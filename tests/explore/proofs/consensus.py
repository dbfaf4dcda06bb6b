"""Sparse exchange with a non-blocking consensus (NBX; Hoefler, Siebert and Lumsdaine, PPoPP 2010).

Each rank sends one message to the next rank, which does not know of it. A rank enters the barrier
once its own message was received, and ends once all ranks have entered it.

The error, with the argument `early`: a rank enters the barrier as soon as it has sent.
"""

import sys

from mpi4py import MPI

comm = MPI.COMM_WORLD
early = "early" in sys.argv


def exchange(target: int, value: int) -> int:
    """Send a value to a rank; return the sum of the values that have come."""
    send = comm.isend(value, target) if early else comm.issend(value, target)
    barrier = None
    total = 0
    while True:
        if comm.iprobe():
            total += comm.recv()
        if barrier is None:
            if send.test()[0]:
                barrier = comm.Ibarrier()
        elif barrier.Test():
            return total


got = exchange((comm.rank + 1) % comm.size, comm.rank + 1)
assert got == (comm.rank - 1) % comm.size + 1, f"a message was missed: {got}"
