"""A pipeline with credits: a producer, a stage with a ring of slots, and a consumer that pulls.

Rank 0 makes items and sends one for each credit. The stage, rank 1, keeps them in a ring. The
consumer, rank 2, asks for an item when it has worked on the one before; the stage answers as soon
as it has one.

The error: the stage gives the credit back when an item arrives, and not when its slot is free
again. If the consumer is slow for as many items as there are slots, a slot is overwritten. With the
argument `right` the credit comes back when the consumer has taken the item.
"""

from __future__ import annotations

import sys

from mpi4py import MPI

PRODUCER, STAGE, CONSUMER = 0, 1, 2
ITEM, PULL, CREDIT, END = 1, 2, 3, 4
SLOTS = 16
CREDITS = 2
ITEMS = 20


class Ring:
    """Slots that are written and read in turn."""

    def __init__(self, size: int) -> None:
        self.slots: list[int | None] = [None] * size
        self.begin = 0
        self.end = 0

    def put(self, item: int) -> None:
        self.slots[self.end % len(self.slots)] = item
        self.end += 1

    def get(self) -> int:
        item = self.slots[self.begin % len(self.slots)]
        assert item is not None
        self.begin += 1
        return item

    def __len__(self) -> int:
        return self.end - self.begin


class Producer:
    """Sends an item for each credit."""

    def __init__(self, comm: MPI.Comm) -> None:
        self.comm = comm
        self.credits = CREDITS

    def run(self) -> None:
        for number in range(ITEMS):
            if not self.credits:
                self.comm.recv(source=STAGE, tag=CREDIT)
                self.credits += 1
            self.credits -= 1
            self.comm.send(number, dest=STAGE, tag=ITEM)
        while self.credits < CREDITS:
            self.comm.recv(source=STAGE, tag=CREDIT)
            self.credits += 1


class Stage:
    """Takes items and requests as they come."""

    def __init__(self, comm: MPI.Comm, right: bool) -> None:
        self.comm = comm
        self.right = right
        self.ring = Ring(SLOTS)
        self.arrived = 0
        self.served = 0
        self.hungry = False  # whether a request waits for an item
        self.credits: list[MPI.Request] = []

    def credit(self) -> None:
        self.credits.append(self.comm.isend(None, dest=PRODUCER, tag=CREDIT))

    def serve(self) -> None:
        """Answer a request, if there is one, and an item for it."""
        if not self.hungry or not len(self.ring):
            return
        item = self.ring.get()
        assert item == self.served, f"item {item} in the place of {self.served}"
        self.served += 1
        self.hungry = False
        self.comm.send(item, dest=CONSUMER, tag=ITEM)
        if self.right:
            self.credit()

    def run(self) -> None:
        status = MPI.Status()
        while self.served < ITEMS:
            body = self.comm.recv(source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG, status=status)
            if status.tag == ITEM:
                self.arrived += 1
                self.ring.put(body)
                if not self.right:
                    self.credit()
            else:
                self.hungry = True
            self.serve()
        MPI.Request.waitall(self.credits)


class Consumer:
    """Pulls items, and works on them."""

    def __init__(self, comm: MPI.Comm) -> None:
        self.comm = comm
        self.total = 0

    def work(self, item: int) -> None:
        self.total += item * item

    def run(self) -> int:
        for _ in range(ITEMS):
            self.comm.send(None, dest=STAGE, tag=PULL)
            self.work(self.comm.recv(source=STAGE, tag=ITEM))
        return self.total


def main() -> None:
    comm = MPI.COMM_WORLD
    right = "right" in sys.argv[1:]
    total = 0
    if comm.rank == PRODUCER:
        Producer(comm).run()
    elif comm.rank == STAGE:
        Stage(comm, right).run()
    elif comm.rank == CONSUMER:
        total = Consumer(comm).run()
    if comm.size > CONSUMER:
        assert comm.allreduce(total) == sum(item * item for item in range(ITEMS))


main()
