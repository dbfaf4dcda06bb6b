"""A stream of events: publishers write it, a broker keeps the latest events, a reader follows.

Rank 0 is the broker, rank 1 publishes and waits for each receipt, rank 2 reads one event after the
other by its number. The broker keeps events in a ring, and answers a reader as soon as there is an
event with the number that it asks for.

The error: the broker looks for an event at its place in the ring, and does not see that a later
one has taken this place, if the reader is late for as many events as the ring has places. With the
argument `right` a publisher gets its receipt only when the place of the next event is free.
"""

from __future__ import annotations

import sys
from collections import deque
from dataclasses import dataclass

from mpi4py import MPI

BROKER, PUBLISHER, READER = 0, 1, 2
PUBLISH, NEXT, CLOSE = 1, 2, 3
PLACES = 16
EVENTS = 19


@dataclass(frozen=True)
class Event:
    """A change of a quantity."""

    number: int
    change: int


class Stream:
    """The latest events."""

    def __init__(self, places: int) -> None:
        self.places: list[Event | None] = [None] * places
        self.count = 0
        self.read = 0  # events that the reader has

    @property
    def full(self) -> bool:
        return self.count - self.read >= len(self.places)

    def append(self, change: int) -> None:
        self.places[self.count % len(self.places)] = Event(self.count, change)
        self.count += 1

    def at(self, number: int) -> Event | None:
        if number >= self.count:
            return None
        self.read = number + 1
        return self.places[number % len(self.places)]


class Broker:
    """Takes events and requests as they come."""

    def __init__(self, comm: MPI.Comm, right: bool) -> None:
        self.comm = comm
        self.right = right
        self.stream = Stream(PLACES)
        self.wanted: int | None = None  # the number for which the reader waits
        self.receipts: deque[int] = deque()  # publishers that wait

    def answer(self) -> None:
        """Send the event for which the reader waits, if it is there."""
        if self.wanted is None:
            return
        event = self.stream.at(self.wanted)
        if event is not None:
            self.wanted = None
            self.comm.send(event, dest=READER, tag=NEXT)

    def confirm(self) -> None:
        """Send the receipts that may be sent."""
        while self.receipts and not (self.right and self.stream.full):
            self.comm.send(self.stream.count, dest=self.receipts.popleft(), tag=PUBLISH)

    def run(self) -> int:
        status = MPI.Status()
        clients = 2
        while clients:
            body = self.comm.recv(source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG, status=status)
            if status.tag == PUBLISH:
                self.stream.append(body)
                self.receipts.append(status.source)
            elif status.tag == NEXT:
                self.wanted = body
            else:
                clients -= 1
            self.answer()
            self.confirm()
        return self.stream.count


def publish(comm: MPI.Comm) -> int:
    """Publish all events; return the quantity."""
    quantity = 0
    for number in range(EVENTS):
        change = number * number % 7 - 3
        quantity += change
        comm.send(change, dest=BROKER, tag=PUBLISH)
        comm.recv(source=BROKER, tag=PUBLISH)
    comm.send(None, dest=BROKER, tag=CLOSE)
    return quantity


def follow(comm: MPI.Comm) -> int:
    """Read all events; return the quantity."""
    quantity = 0
    for number in range(EVENTS):
        comm.send(number, dest=BROKER, tag=NEXT)
        event = comm.recv(source=BROKER, tag=NEXT)
        assert event.number == number, f"event {event.number} in the place of {number}"
        quantity += event.change
    comm.send(None, dest=BROKER, tag=CLOSE)
    return quantity


def main() -> None:
    comm = MPI.COMM_WORLD
    if comm.size <= READER:
        return
    quantity = 0
    if comm.rank == BROKER:
        assert Broker(comm, "right" in sys.argv[1:]).run() == EVENTS
    elif comm.rank == PUBLISHER:
        quantity = publish(comm)
    elif comm.rank == READER:
        quantity = -follow(comm)
    assert comm.allreduce(quantity) == 0


main()
