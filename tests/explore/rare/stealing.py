"""A search of a tree in which idle workers steal subtrees, and a coordinator that ends it.

Rank 0 coordinates, all others are workers; the first of them begins with the whole tree. A worker
without subtrees asks another one for half of its subtrees. The coordinator asks all workers again
and again whether they are idle, and ends the search after some rounds in which all of them were.

The error: subtrees under way to a thief are with no worker. If their message is late for all of
these rounds, the search ends without them. With the argument `right` a worker also tells how many
messages with subtrees it has sent and received, and the coordinator goes on while these differ.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

from mpi4py import MPI

COORDINATOR, FIRST = 0, 1
ASK, ANSWER, STEAL, GIVE, END = range(1, 6)
QUIET = 14  # rounds after which the search ends
DEPTH = 3


@dataclass(frozen=True)
class Subtree:
    """A node of the binary tree, with all below it."""

    path: int
    depth: int

    def below(self) -> list[Subtree]:
        if self.depth == DEPTH:
            return []
        return [Subtree(2 * self.path + i, self.depth + 1) for i in range(2)]


@dataclass(frozen=True)
class Answer:
    """The report of a worker to the coordinator."""

    idle: bool
    sent: int
    received: int


class Coordinator:
    """Asks in rounds, and ends the search."""

    def __init__(self, comm: MPI.Comm, right: bool) -> None:
        self.comm = comm
        self.right = right
        self.quiet = 0

    @property
    def workers(self) -> range:
        return range(FIRST, self.comm.size)

    def round(self) -> None:
        for worker in self.workers:
            self.comm.send(None, dest=worker, tag=ASK)
        answers = [self.comm.recv(source=worker, tag=ANSWER) for worker in self.workers]
        quiet = all(answer.idle for answer in answers)
        if self.right:
            sent = sum(answer.sent for answer in answers)
            quiet = quiet and sent == sum(answer.received for answer in answers)
        self.quiet = self.quiet + 1 if quiet else 0

    def run(self) -> None:
        while self.quiet < QUIET:
            self.round()
        for worker in self.workers:
            self.comm.send(None, dest=worker, tag=END)


class Worker:
    """Searches, steals, and answers."""

    def __init__(self, comm: MPI.Comm) -> None:
        self.comm = comm
        self.subtrees: list[Subtree] = []
        self.nodes = 0
        self.sent = 0
        self.received = 0
        self.asked = False  # whether a thief waits for an answer
        self.over = False
        self.status = MPI.Status()

    def visit(self) -> None:
        subtree = self.subtrees.pop()
        self.nodes += 1
        self.subtrees += subtree.below()

    def steal(self) -> None:
        """Ask the next worker, if there is no question already."""
        victim = FIRST + (self.comm.rank - FIRST + 1) % (self.comm.size - FIRST)
        if not self.asked and victim != self.comm.rank:
            self.asked = True
            self.comm.send(None, dest=victim, tag=STEAL)

    def give(self, thief: int) -> None:
        count = (len(self.subtrees) + 1) // 2
        given, self.subtrees = self.subtrees[:count], self.subtrees[count:]
        self.sent += bool(given)
        self.comm.send(given, dest=thief, tag=GIVE)

    def take(self, given: list[Subtree]) -> None:
        self.subtrees += given
        if given:
            self.received += 1
            self.asked = False

    def handle(self) -> None:
        """Receive one message."""
        body = self.comm.recv(source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG, status=self.status)
        source, tag = self.status.source, self.status.tag
        if tag == ASK:
            answer = Answer(not self.subtrees, self.sent, self.received)
            self.comm.send(answer, dest=COORDINATOR, tag=ANSWER)
        elif tag == STEAL:
            self.give(source)
        elif tag == GIVE:
            self.take(body)
        else:
            self.over = True

    def run(self) -> int:
        while not self.over:
            if self.subtrees:
                self.visit()
                if not self.comm.iprobe(source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG):
                    continue
            else:
                self.steal()
            self.handle()
        return self.nodes


def main() -> None:
    comm = MPI.COMM_WORLD
    nodes = 0
    if comm.rank == COORDINATOR:
        Coordinator(comm, "right" in sys.argv[1:]).run()
    else:
        worker = Worker(comm)
        if comm.rank == FIRST:
            worker.subtrees.append(Subtree(1, 0))
        nodes = worker.run()
    nodes = comm.allreduce(nodes)
    if comm.size > FIRST:
        assert nodes == 2 ** (DEPTH + 1) - 1, f"{nodes} nodes were visited"


main()
