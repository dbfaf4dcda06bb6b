"""Buffers that all ranks share: a list of free ones in a window, changed by compare-and-swap.

Rank 0 has the memory: the first free buffer, the next one of each, and the owner of each. All
others take buffers and give them back. One reads the first buffer and the one after it, and then
puts the second in the place of the first, if this is still the first one.

The error: the first buffer may be the same again after others have taken it, taken the second one
and given the first back. A rank that is late for all of this puts a buffer that is in use into the
list. With the argument `right` the place of the first buffer also counts its changes.
"""

from __future__ import annotations

import sys
from collections import deque

import numpy as np
from mpi4py import MPI

BUFFERS = 8
HEAD = 0
NEXT = 1  # place of the one after buffer 0
OWNER = NEXT + BUFFERS
NONE = -1
FREE = -1
COUNT = 1 << 20  # one change of the first buffer
HELD = 5  # buffers that a collector has at a time
ROUNDS = 3  # of a worker


class Memory:
    """Atomic accesses to the words of rank 0."""

    def __init__(self, comm: MPI.Comm) -> None:
        words = OWNER + BUFFERS if comm.rank == 0 else 0
        self.win = MPI.Win.Allocate(8 * words, 8, comm=comm)
        if comm.rank == 0:
            local = np.frombuffer(self.win.tomemory(), "i8")
            local[HEAD] = 0
            local[NEXT:OWNER] = [*range(1, BUFFERS), NONE]
            local[OWNER:] = FREE
        comm.Barrier()
        self.win.Lock_all()

    def read(self, place: int) -> int:
        return self._apply(0, place, MPI.NO_OP)

    def write(self, place: int, value: int) -> int:
        """Set a word, and return what it was."""
        return self._apply(value, place, MPI.REPLACE)

    def _apply(self, value: int, place: int, operator: MPI.Op) -> int:
        old = np.empty(1, "i8")
        self.win.Fetch_and_op(np.array([value]), old, 0, place, operator)
        self.win.Flush(0)
        return int(old[0])

    def swap(self, place: int, expected: int, value: int) -> bool:
        """Set a word if it is the expected one."""
        old = np.empty(1, "i8")
        self.win.Compare_and_swap(np.array([value]), np.array([expected]), old, 0, place)
        self.win.Flush(0)
        return bool(old[0] == expected)

    def close(self) -> None:
        self.win.Unlock_all()
        self.win.Free()


class FreeList:
    """The free buffers, the latest one that was given back first."""

    def __init__(self, memory: Memory, right: bool) -> None:
        self.memory = memory
        self.right = right

    def split(self, head: int) -> tuple[int, int]:
        """The first buffer, and the changes that the word counts."""
        if not self.right:
            return head, 0
        return (head + 1) % COUNT - 1, (head + 1) // COUNT

    def joined(self, buffer: int, changes: int) -> int:
        return buffer + changes * COUNT if self.right else buffer

    def take(self) -> int | None:
        while True:
            head = self.memory.read(HEAD)
            buffer, changes = self.split(head)
            if buffer == NONE:
                return None
            following = self.memory.read(NEXT + buffer)
            if self.memory.swap(HEAD, head, self.joined(following, changes + 1)):
                return buffer

    def give_back(self, buffer: int) -> None:
        while True:
            head = self.memory.read(HEAD)
            first, changes = self.split(head)
            self.memory.write(NEXT + buffer, first)
            if self.memory.swap(HEAD, head, self.joined(buffer, changes + 1)):
                return


class User:
    """Takes buffers and gives them back."""

    def __init__(self, comm: MPI.Comm, memory: Memory, right: bool) -> None:
        self.rank = comm.rank
        self.memory = memory
        self.free = FreeList(memory, right)
        self.held: deque[int] = deque()

    def take(self) -> None:
        buffer = self.free.take()
        if buffer is None:
            return
        before = self.memory.write(OWNER + buffer, self.rank)
        assert before == FREE, f"buffer {buffer} is of rank {before} and of rank {self.rank}"
        self.held.append(buffer)

    def give_back(self) -> None:
        """Give the buffer back that was held longest."""
        buffer = self.held.popleft()
        self.memory.write(OWNER + buffer, FREE)
        self.free.give_back(buffer)

    def work(self) -> None:
        for _ in range(ROUNDS):
            self.take()
            while self.held:
                self.give_back()

    def collect(self) -> None:
        for _ in range(HELD):
            self.take()
        while self.held:
            self.give_back()


def main() -> None:
    comm = MPI.COMM_WORLD
    memory = Memory(comm)
    user = User(comm, memory, "right" in sys.argv[1:])
    if comm.rank == 1:
        user.work()
    elif comm.rank > 1:
        user.collect()
    comm.Barrier()
    if comm.rank == 0:
        left = 0
        while user.free.take() is not None:
            left += 1
        assert left == BUFFERS, f"{left} of {BUFFERS} buffers are free"
    memory.close()


main()
