"""Blocks of data on request: a directory knows their stores, and a store sends them to the client.

Rank 0 is the client, rank 1 the directory, all others are stores. The client gives each request a
tag, and begins a receive from any source with this tag, since only the directory knows the store.
It asks for one block in advance, needs many others first, and uses the one in advance at the end.

The error: tags are used again after a period, whether or not their receive is still open. If the
block in advance is late for a period of others, its receive takes one of them. With the argument
`right` a tag with an open receive is left out.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

from mpi4py import MPI

CLIENT, DIRECTORY, FIRST_STORE = 0, 1, 2
FIND, SEND, END = 1, 2, 3
FIRST_TAG = 100
PERIOD = 18
BLOCKS = 24
WORDS = 4


@dataclass(frozen=True)
class Block:
    """A part of an array."""

    number: int
    words: tuple[int, ...]


def block_of(number: int) -> Block:
    return Block(number, tuple(number * number + i for i in range(WORDS)))


class Tags:
    """Gives each request a tag."""

    def __init__(self, right: bool) -> None:
        self.right = right
        self.next = 0
        self.open: set[int] = set()

    def take(self) -> int:
        while True:
            tag = FIRST_TAG + self.next % PERIOD
            self.next += 1
            if not self.right or tag not in self.open:
                break
        self.open.add(tag)
        return tag

    def give_back(self, tag: int) -> None:
        self.open.discard(tag)


class Transfer:
    """A block that was asked for."""

    def __init__(self, client: Client, number: int) -> None:
        self.client = client
        self.number = number
        self.tag = client.tags.take()
        self.request = client.comm.irecv(source=MPI.ANY_SOURCE, tag=self.tag)
        client.comm.send((number, self.tag), dest=DIRECTORY, tag=FIND)

    def wait(self) -> Block:
        block: Block = self.request.wait()
        self.client.tags.give_back(self.tag)
        assert block.number == self.number, f"block {block.number} in the place of {self.number}"
        return block


class Client:
    """Adds the words of all blocks up."""

    def __init__(self, comm: MPI.Comm, right: bool) -> None:
        self.comm = comm
        self.tags = Tags(right)
        self.total = 0

    def use(self, block: Block) -> None:
        self.total += sum(block.words)

    def run(self) -> int:
        last = Transfer(self, BLOCKS)
        for number in range(BLOCKS):
            self.use(Transfer(self, number).wait())
        self.use(last.wait())
        self.comm.send(None, dest=DIRECTORY, tag=END)
        return self.total


class Directory:
    """Knows the store of each block."""

    def __init__(self, comm: MPI.Comm) -> None:
        self.comm = comm

    def store_of(self, number: int) -> int:
        stores = self.comm.size - FIRST_STORE
        return FIRST_STORE + (number // BLOCKS) % stores

    def run(self) -> None:
        status = MPI.Status()
        while True:
            body = self.comm.recv(source=CLIENT, tag=MPI.ANY_TAG, status=status)
            if status.tag == END:
                break
            self.comm.send(body, dest=self.store_of(body[0]), tag=SEND)
        for store in range(FIRST_STORE, self.comm.size):
            self.comm.send(None, dest=store, tag=END)


class Store:
    """Sends the blocks for which the directory asks."""

    def __init__(self, comm: MPI.Comm) -> None:
        self.comm = comm

    def run(self) -> None:
        status = MPI.Status()
        while True:
            body = self.comm.recv(source=DIRECTORY, tag=MPI.ANY_TAG, status=status)
            if status.tag == END:
                break
            number, tag = body
            self.comm.send(block_of(number), dest=CLIENT, tag=tag)


def main() -> None:
    comm = MPI.COMM_WORLD
    if comm.size <= FIRST_STORE:
        return
    total = 0
    if comm.rank == CLIENT:
        total = Client(comm, "right" in sys.argv[1:]).run()
    elif comm.rank == DIRECTORY:
        Directory(comm).run()
    else:
        Store(comm).run()
    total = comm.bcast(total)
    assert total == sum(sum(block_of(number).words) for number in range(BLOCKS + 1))


main()
