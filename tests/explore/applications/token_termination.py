"""Work that makes new work on other ranks, and a token that finds out when all of it is done
(Dijkstra, Feijen and van Gasteren).

The error: a rank that sends work to a rank which the token has already passed must blacken the
token. It does so only for work that goes down, and not for all that goes up the ring.
"""

from __future__ import annotations

import sys

from mpi4py import MPI

WORK, TOKEN, STOP = 1, 2, 3
WHITE, BLACK = "white", "black"


class Worker:
    """A rank that works, passes work on, and passes the token while it is idle."""

    def __init__(self, comm: MPI.Comm, depth: int) -> None:
        self.comm = comm
        self.depth = depth
        self.done = 0
        self.colour = WHITE
        self.stopped = False

    def work(self, depth: int) -> None:
        """One piece of work: it makes a piece of less depth on another rank."""
        self.done += 1
        if depth > 1:
            peer = (self.comm.rank + 2) % self.comm.size
            if peer == self.comm.rank:
                peer = (peer + 1) % self.comm.size
            if peer < self.comm.rank - 1:  # should be peer > rank: those the token has passed
                self.colour = BLACK
            self.comm.send(depth - 1, dest=peer, tag=WORK)

    def token(self, colour: str) -> None:
        """The token comes down from the next rank; rank 0 judges it."""
        comm = self.comm
        if comm.rank == 0:
            if colour == WHITE and self.colour == WHITE:
                for peer in range(1, comm.size):
                    comm.send(None, dest=peer, tag=STOP)
                self.stopped = True
                return
            colour = WHITE
        elif self.colour == BLACK:
            colour = BLACK
        self.colour = WHITE
        comm.send(colour, dest=(comm.rank - 1) % comm.size, tag=TOKEN)

    def run(self) -> int:
        status = MPI.Status()
        if self.comm.rank == 0:
            self.work(self.depth)
            self.comm.send(WHITE, dest=self.comm.size - 1, tag=TOKEN)
        while not self.stopped:
            message = self.comm.recv(source=MPI.ANY_SOURCE, status=status)
            if status.tag == WORK:
                self.work(message)
            elif status.tag == TOKEN:
                self.token(message)
            else:
                self.stopped = True
        return self.done


def main() -> None:
    comm = MPI.COMM_WORLD
    depth = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    total = comm.reduce(Worker(comm, depth).run(), root=0)
    if comm.rank == 0:
        assert total == depth, f"{total} of {depth} pieces of work were done"


main()
