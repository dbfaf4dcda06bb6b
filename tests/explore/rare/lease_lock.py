"""A lock with leases: a manager grants it, a storage writes for its owner and then gives it back.

Rank 0 manages the lock, rank 1 stores, all others are clients. A client gets the lock, hands a
write to the storage and goes on; the storage gives the lock back when the write is done. A lock
that is not given back within some requests of clients is taken away and granted to the next one.

The error: the message that gives the lock back names the client, and not its grant. If it comes so
late that its lease has run out, and the client has the lock again, then it ends the new lease: two
clients write at the same time. With the argument `right` it names the grant.
"""

from __future__ import annotations

import sys
from collections import deque

from mpi4py import MPI

MANAGER, STORAGE, FIRST = 0, 1, 2
WANT, TICK, BACK, WRITE, LEAVE = range(1, 6)
LEASE = 16  # requests after which a lock is taken away
TICKS = 9  # requests of a client while it has no lock
ROUNDS = 2


class Manager:
    """The owner of the lock, those that wait for it, and the age of the lease."""

    def __init__(self, comm: MPI.Comm, right: bool) -> None:
        self.comm = comm
        self.right = right
        self.queue: deque[int] = deque()
        self.owner: int | None = None
        self.grant = 0
        self.age = 0
        self.clients = comm.size - FIRST
        self.pending = 0  # grants whose message has not come back

    def next(self) -> None:
        """Grant the lock to the first in the queue."""
        self.owner = None
        if self.queue:
            self.owner = self.queue.popleft()
            self.grant += 1
            self.age = 0
            self.pending += 1
            self.comm.send(self.grant, dest=self.owner, tag=WANT)

    def tick(self) -> None:
        """One request more: perhaps the lease has run out."""
        self.age += 1
        if self.owner is not None and self.age >= LEASE:
            self.next()

    def back(self, client: int, grant: int) -> None:
        """A write is done."""
        self.pending -= 1
        mine = self.grant == grant if self.right else self.owner == client
        if not self.right and mine:
            assert self.grant == grant, f"the lease of grant {self.grant} ends by that of {grant}"
        if self.owner is not None and mine:
            self.next()

    def run(self) -> None:
        status = MPI.Status()
        while self.clients or self.pending:
            body = self.comm.recv(source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG, status=status)
            if status.tag == WANT:
                self.queue.append(status.source)
                if self.owner is None:
                    self.next()
            elif status.tag == TICK:
                self.tick()
                self.comm.send(None, dest=status.source, tag=TICK)
            elif status.tag == BACK:
                self.back(*body)
            elif status.tag == LEAVE:
                self.clients -= 1
        self.comm.send(None, dest=STORAGE, tag=LEAVE)


class Storage:
    """Writes in the order in which the clients ask, and gives their locks back."""

    def __init__(self, comm: MPI.Comm) -> None:
        self.comm = comm
        self.writes: dict[int, int] = {}

    def run(self) -> int:
        status = MPI.Status()
        while True:
            body = self.comm.recv(source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG, status=status)
            if status.tag == LEAVE:
                return sum(self.writes.values())
            self.writes[status.source] = self.writes.get(status.source, 0) + 1
            self.comm.send((status.source, body), dest=MANAGER, tag=BACK)


class Client:
    """Writes under the lock, and asks the manager for other things in between."""

    def __init__(self, comm: MPI.Comm) -> None:
        self.comm = comm

    def other_work(self) -> None:
        for _ in range(TICKS):
            self.comm.send(None, dest=MANAGER, tag=TICK)
            self.comm.recv(source=MANAGER, tag=TICK)

    def run(self) -> None:
        for _ in range(ROUNDS):
            self.comm.send(None, dest=MANAGER, tag=WANT)
            grant = self.comm.recv(source=MANAGER, tag=WANT)
            self.comm.send(grant, dest=STORAGE, tag=WRITE)
            self.other_work()
        self.comm.send(None, dest=MANAGER, tag=LEAVE)


def main() -> None:
    comm = MPI.COMM_WORLD
    writes = 0
    if comm.rank == MANAGER:
        Manager(comm, "right" in sys.argv[1:]).run()
    elif comm.rank == STORAGE:
        writes = Storage(comm).run()
    else:
        Client(comm).run()
    assert comm.allreduce(writes) == ROUNDS * max(0, comm.size - FIRST)


main()
