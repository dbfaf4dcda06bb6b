"""A cache in front of a store: a reader fills the cache with what it has read from the store.

Rank 0 is the cache, rank 1 the store, rank 2 a writer, rank 3 a reader. The writer changes a value
in the store and removes it from the cache. The reader asks the cache; if the value is missing, the
cache asks the store, which sends the value to the cache, and the cache answers when it comes.

The error: a value from the store fills the cache even if it has been removed since the cache had
asked for it. If it is late for all changes of the writer, the cache keeps an old value for ever.
With the argument `right` the cache keeps only a value of the version that it has last removed.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

from mpi4py import MPI

CACHE, STORE, WRITER, READER = range(4)
GET, FETCH, FILL, PUT, REMOVE, END = range(1, 7)
CHANGES = 16
PRIVATE = 1000  # keys from here on are of the writer alone


@dataclass
class Entry:
    """A value with its version."""

    value: int
    version: int


class Cache:
    """Keeps values, and asks the store for others."""

    def __init__(self, comm: MPI.Comm, right: bool) -> None:
        self.comm = comm
        self.right = right
        self.entries: dict[int, Entry] = {}
        self.removed: dict[int, int] = {}  # versions
        self.waiting: dict[int, list[int]] = {}  # readers, by key

    def get(self, reader: int, key: int) -> None:
        entry = self.entries.get(key)
        if entry is not None:
            self.comm.send(entry.value, dest=reader, tag=GET)
            return
        readers = self.waiting.setdefault(key, [])
        readers.append(reader)
        if len(readers) == 1:
            self.comm.send(key, dest=STORE, tag=FETCH)

    def fill(self, key: int, entry: Entry) -> None:
        if not self.right or entry.version >= self.removed.get(key, 0):
            self.entries[key] = entry
        for reader in self.waiting.pop(key, []):
            self.comm.send(entry.value, dest=reader, tag=GET)

    def remove(self, key: int, version: int) -> None:
        self.removed[key] = max(version, self.removed.get(key, 0))
        entry = self.entries.get(key)
        if entry is not None and entry.version < version:
            del self.entries[key]

    def run(self) -> dict[int, Entry]:
        status = MPI.Status()
        clients = 2
        while clients or self.waiting:
            body = self.comm.recv(source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG, status=status)
            if status.tag == GET:
                self.get(status.source, body)
            elif status.tag == FILL:
                self.fill(*body)
            elif status.tag == REMOVE:
                self.remove(*body)
                self.comm.send(None, dest=status.source, tag=REMOVE)
            else:
                clients -= 1
        self.comm.send(None, dest=STORE, tag=END)
        return self.entries


class Store:
    """Has the true values."""

    def __init__(self, comm: MPI.Comm) -> None:
        self.comm = comm
        self.entries = {0: Entry(0, 0)}
        self.fills: list[MPI.Request] = []

    def run(self) -> dict[int, Entry]:
        status = MPI.Status()
        while True:
            body = self.comm.recv(source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG, status=status)
            if status.tag == END:
                MPI.Request.waitall(self.fills)
                return self.entries
            if status.tag == FETCH:
                found = self.entries[body]
                copy = Entry(found.value, found.version)
                self.fills.append(self.comm.isend((body, copy), dest=CACHE, tag=FILL))
            else:
                key, entry = body
                self.entries[key] = entry
                self.comm.send(None, dest=status.source, tag=PUT)


def write(comm: MPI.Comm) -> None:
    """Change values: many of its own, and at last the one of the reader."""
    for change in range(CHANGES):
        key = PRIVATE + change if change < CHANGES - 1 else 0
        comm.send((key, Entry(change, change + 1)), dest=STORE, tag=PUT)
        comm.recv(source=STORE, tag=PUT)
        comm.send((key, change + 1), dest=CACHE, tag=REMOVE)
        comm.recv(source=CACHE, tag=REMOVE)
    comm.send(None, dest=CACHE, tag=END)


def read(comm: MPI.Comm) -> None:
    comm.send(0, dest=CACHE, tag=GET)
    assert comm.recv(source=CACHE, tag=GET) in (0, CHANGES - 1)
    comm.send(None, dest=CACHE, tag=END)


def main() -> None:
    comm = MPI.COMM_WORLD
    if comm.size <= READER:
        return
    entries: dict[int, Entry] = {}
    if comm.rank == CACHE:
        entries = Cache(comm, "right" in sys.argv[1:]).run()
    elif comm.rank == STORE:
        entries = Store(comm).run()
    elif comm.rank == WRITER:
        write(comm)
    elif comm.rank == READER:
        read(comm)
    true = comm.bcast(entries, root=STORE)
    for key, entry in entries.items():
        assert entry == true[key], f"key {key}: {entry} in the cache, {true[key]} in the store"


main()
