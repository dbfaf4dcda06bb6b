"""A leader with terms: nodes vote, a leader sends heartbeats, and a router passes announcements on.

Rank 0 is a registry that knows the present leader. Rank 1 routes announcements to it. Two nodes are
leaders in turn: each announces its term through the router, then sends the registry a number of
heartbeats directly, and hands its office over to the other node.

The error: the registry takes the sender of an announcement as leader whatever its term. If the
router's message is late for all heartbeats of the next leader, an old leader is in office again.
With the argument `right` an announcement of an earlier term is dropped.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field

from mpi4py import MPI

REGISTRY, ROUTER, FIRST = 0, 1, 2
ANNOUNCE, BEAT, OFFICE, ASK, END = range(1, 6)
TERMS = 2
BEATS = 15


@dataclass
class Office:
    """The leader of a term."""

    term: int = 0
    leader: int | None = None
    beats: dict[int, int] = field(default_factory=dict)


class Registry:
    """Knows the leader, and counts heartbeats."""

    def __init__(self, comm: MPI.Comm, right: bool) -> None:
        self.comm = comm
        self.right = right
        self.office = Office()
        self.highest = 0

    def announced(self, term: int, leader: int) -> None:
        if self.right and term < self.office.term:
            return
        self.office.term, self.office.leader = term, leader
        self.highest = max(self.highest, term)

    def beat(self, node: int, term: int) -> None:
        """A leader is alive; the first heartbeat of a term may come before its announcement."""
        beats = self.office.beats
        beats[term] = beats.get(term, 0) + 1
        if term > self.highest:
            self.office.term, self.office.leader = term, node
            self.highest = max(self.highest, term)
        self.comm.send(self.office.term, dest=node, tag=BEAT)

    def run(self) -> Office:
        status = MPI.Status()
        announcements = TERMS
        nodes = self.comm.size - FIRST
        while announcements or nodes:
            body = self.comm.recv(source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG, status=status)
            if status.tag == ANNOUNCE:
                announcements -= 1
                self.announced(*body)
            elif status.tag == BEAT:
                self.beat(status.source, body)
            else:
                nodes -= 1
        self.comm.send(None, dest=ROUTER, tag=END)
        return self.office


class Router:
    """Passes announcements on, in the order in which they come."""

    def __init__(self, comm: MPI.Comm) -> None:
        self.comm = comm
        self.passed = 0

    def run(self) -> int:
        status = MPI.Status()
        sent: list[MPI.Request] = []
        while True:
            body = self.comm.recv(source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG, status=status)
            if status.tag == END:
                MPI.Request.waitall(sent)
                return self.passed
            self.passed += 1
            sent.append(self.comm.isend((body, status.source), dest=REGISTRY, tag=ANNOUNCE))


class Node:
    """Leads in its terms."""

    def __init__(self, comm: MPI.Comm) -> None:
        self.comm = comm

    def leader_of(self, term: int) -> int:
        return FIRST + term % (self.comm.size - FIRST)

    def lead(self, term: int) -> None:
        """Announce the term, and be alive for some time."""
        self.comm.send(term, dest=ROUTER, tag=ANNOUNCE)
        for _ in range(BEATS):
            self.comm.send(term, dest=REGISTRY, tag=BEAT)
            seen = self.comm.recv(source=REGISTRY, tag=BEAT)
            assert seen >= term, f"term {term}: the registry is back in term {seen}"

    def run(self) -> None:
        for term in range(1, TERMS + 1):
            if self.leader_of(term) != self.comm.rank:
                continue
            if term > 1:
                self.comm.recv(source=self.leader_of(term - 1), tag=OFFICE)
            self.lead(term)
            if term < TERMS:
                self.comm.send(term, dest=self.leader_of(term + 1), tag=OFFICE)
        self.comm.send(None, dest=REGISTRY, tag=END)


def main() -> None:
    comm = MPI.COMM_WORLD
    if comm.size < FIRST + 2:
        return
    if comm.rank == REGISTRY:
        office = Registry(comm, "right" in sys.argv[1:]).run()
        assert sum(office.beats.values()) == TERMS * BEATS
    elif comm.rank == ROUTER:
        assert Router(comm).run() == TERMS
    else:
        Node(comm).run()
    comm.Barrier()


main()
