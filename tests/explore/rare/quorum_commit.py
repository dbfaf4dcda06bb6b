"""Transactions that a majority decides: a coordinator, and participants that vote on each.

Rank 0 proposes one transaction after the other. A participant votes on each, in order. A majority
of votes for a transaction commits it, one vote against it aborts it. The coordinator does not wait
for late votes: it takes them out when they come.

The error: the coordinator keeps the latest 16 ballots, and takes a vote for one that it does not
keep as a vote for the present one. With the argument `right` it takes such a vote for none.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field

from mpi4py import MPI

PROPOSE, VOTE, DECIDE, END = 1, 2, 3, 4
TRANSACTIONS = 24
KEPT = 16


@dataclass(frozen=True)
class Transaction:
    """The accounts between which an amount moves."""

    number: int
    source: int
    target: int
    amount: int


@dataclass
class Ballot:
    """The votes for one transaction."""

    transaction: Transaction
    needed: int
    voters: set[int] = field(default_factory=set)
    refused: bool = False

    @property
    def decided(self) -> bool:
        return self.refused or len(self.voters) >= self.needed


class Coordinator:
    """Proposes transactions, and counts votes."""

    def __init__(self, comm: MPI.Comm, right: bool) -> None:
        self.comm = comm
        self.right = right
        self.committed: list[int] = []
        self.ballots: dict[int, Ballot] = {}  # the latest ones
        self.outstanding = 0
        self.votes: dict[int, list[int]] = {}  # participants by transaction, for the audit

    def to_all(self, body: object, tag: int) -> None:
        for peer in range(1, self.comm.size):
            self.comm.send(body, dest=peer, tag=tag)

    def take_vote(self, ballot: Ballot) -> None:
        """Count one vote, if it is for the present transaction."""
        status = MPI.Status()
        number, agrees = self.comm.recv(source=MPI.ANY_SOURCE, tag=VOTE, status=status)
        self.outstanding -= 1
        found = self.ballots.get(number, None if self.right else ballot)
        if found is None:
            return
        if not agrees:
            found.refused = True
            return
        found.voters.add(status.source)
        self.votes.setdefault(found.transaction.number, []).append(number)

    def decide(self, transaction: Transaction) -> None:
        ballot = Ballot(transaction, max(2, self.comm.size // 2))
        self.ballots[transaction.number] = ballot
        self.ballots.pop(transaction.number - KEPT, None)
        self.to_all(transaction, PROPOSE)
        self.outstanding += self.comm.size - 1
        while not ballot.decided and self.outstanding:
            self.take_vote(ballot)
        if not ballot.refused:
            self.committed.append(transaction.number)

    def audit(self) -> None:
        """Every vote that counted was for its transaction."""
        for number, counted in self.votes.items():
            assert all(one == number for one in counted), (
                f"transaction {number} has votes {counted}"
            )

    def run(self) -> int:
        for number in range(TRANSACTIONS):
            source, target = number % 5, (number * 3 + 1) % 5
            self.decide(Transaction(number, source, target, number + 1))
        while self.outstanding:
            self.comm.recv(source=MPI.ANY_SOURCE, tag=VOTE)
            self.outstanding -= 1
        self.to_all(None, END)
        self.audit()
        return len(self.committed)


class Participant:
    """Votes for every transaction that it can carry out."""

    def __init__(self, comm: MPI.Comm) -> None:
        self.comm = comm

    def agrees(self, transaction: Transaction) -> bool:
        return transaction.amount > 0

    def run(self) -> None:
        status = MPI.Status()
        while True:
            transaction = self.comm.recv(source=0, tag=MPI.ANY_TAG, status=status)
            if status.tag == END:
                return
            vote = transaction.number, self.agrees(transaction)
            self.comm.send(vote, dest=0, tag=VOTE)


def main() -> None:
    comm = MPI.COMM_WORLD
    committed = 0
    if comm.rank == 0:
        committed = Coordinator(comm, "right" in sys.argv[1:]).run()
    else:
        Participant(comm).run()
    committed = comm.bcast(committed)
    assert committed == TRANSACTIONS, committed


main()
