"""Global snapshots of money that moves between ranks (Chandy and Lamport), one after the other.

Rank 0 and rank 1 trade with each other, rank 2 holds a reserve. After some trades rank 0 starts a
snapshot: each rank notes its money, sends a marker to all others, and notes what arrives over a
channel before its marker. The sum of all notes is the money of all ranks.

The error: a rank reports its part when it has noted its own money, and not when the markers of all
channels are there. If a marker is late for all trades up to the next snapshot, it counts for that
one. With the argument `right` a rank reports when its part is complete.
"""

from __future__ import annotations

import sys

from mpi4py import MPI

START, MONEY, ASK, MARKER, REPORT, END = range(1, 7)
TRADES = 15  # between two snapshots
SNAPSHOTS = 2
EACH = 100


class Account:
    """The money of a rank, and its part of the present snapshot."""

    def __init__(self, comm: MPI.Comm, right: bool) -> None:
        self.comm = comm
        self.right = right
        self.money = EACH
        self.number = 0  # of the present snapshot
        self.open: set[int] = set()  # channels whose marker is missing
        self.noted = 0
        self.reported = True
        self.sent: list[MPI.Request] = []

    def send(self, body: object, peer: int, tag: int) -> None:
        self.sent.append(self.comm.isend(body, dest=peer, tag=tag))

    def others(self) -> list[int]:
        return [peer for peer in range(self.comm.size) if peer != self.comm.rank]

    def begin(self, number: int) -> None:
        """Note the money, and let all others know."""
        self.number = number
        self.noted = self.money
        self.open = set(self.others())
        self.reported = False
        for peer in self.others():
            self.send(number, peer, MARKER)

    def marker(self, source: int, number: int) -> None:
        """The marker of a channel."""
        if not self.right:
            if self.reported and not self.open:
                self.begin(number)
            elif source == 0 and self.reported:
                self.begin(number)  # the next snapshot
            assert number == self.number, f"marker of snapshot {number} in snapshot {self.number}"
        elif number > self.number:
            self.begin(number)
        self.open.discard(source)
        self.report()

    def report(self) -> None:
        """Send the part to rank 0 when it is known."""
        if self.reported or (self.right and self.open):
            return
        self.reported = True
        self.send(self.noted, 0, REPORT)

    def receive(self, source: int, amount: int) -> None:
        self.money += amount
        if source in self.open and not self.reported:
            self.noted += amount

    def pay(self, peer: int, amount: int, tag: int) -> None:
        self.money -= amount
        self.send(amount, peer, tag)


class Leader(Account):
    """Rank 0: trades, and takes snapshots."""

    parts = 0

    def collect(self) -> None:
        """Take in all parts of a snapshot."""
        status = MPI.Status()
        missing = self.comm.size
        while missing:
            body = self.comm.recv(source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG, status=status)
            if status.tag == REPORT:
                missing -= 1
                self.parts += body
            elif status.tag == MARKER:
                self.open.discard(status.source)
                self.report()

    def run(self) -> int:
        for number in range(1, SNAPSHOTS + 1):
            for amount in range(TRADES):
                self.pay(1, amount, ASK)
                self.receive(1, self.comm.recv(source=1, tag=MONEY))
            self.begin(number)
            self.collect()
        for peer in self.others():
            self.send(None, peer, END)
        MPI.Request.waitall(self.sent)
        return self.parts


class Trader(Account):
    """Another rank: it answers trades and markers as they come."""

    def run(self) -> int:
        status = MPI.Status()
        missing = SNAPSHOTS * (self.comm.size - 1) + 1  # markers, and the end
        while missing:
            body = self.comm.recv(source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG, status=status)
            if status.tag == ASK:
                self.receive(0, body)
                self.pay(0, body, MONEY)
                continue
            missing -= 1
            if status.tag == MARKER:
                self.marker(status.source, body)
        MPI.Request.waitall(self.sent)
        return 0


def main() -> None:
    comm = MPI.COMM_WORLD
    right = "right" in sys.argv[1:]
    if comm.size < 3:
        return
    account = Leader(comm, right) if comm.rank == 0 else Trader(comm, right)
    total = account.run()
    money = comm.allreduce(account.money)
    assert money == EACH * comm.size, money
    if comm.rank == 0 and right:
        assert total == SNAPSHOTS * EACH * comm.size, total


main()
