"""A bank whose accounts are in a window at rank 0; ranks move money, protected by a ticket lock
that is in the window, too.

The error: a ticket is drawn with Get and Put in two epochs, not with Fetch_and_op. Two ranks can
draw the same ticket, and then are both in the critical section.
"""

from __future__ import annotations

import numpy as np
from mpi4py import MPI

NEXT, SERVED, FIRST = 0, 1, 2  # places in the window: the next ticket, the served one, accounts
ACCOUNTS = 3


class Window:
    """Numbers at rank 0 that all ranks read and write."""

    def __init__(self, comm: MPI.Comm) -> None:
        size = 8 * (FIRST + ACCOUNTS) if comm.rank == 0 else 0
        self.window = MPI.Win.Allocate(size, 8, comm=comm)
        if comm.rank == 0:
            memory = np.frombuffer(self.window, dtype="i8")
            memory[:] = [0, 0] + [10] * ACCOUNTS
        comm.Barrier()

    def read(self, place: int) -> int:
        value = np.zeros(1, "i8")
        self.window.Lock(0, MPI.LOCK_SHARED)
        self.window.Get_accumulate(value, value, 0, (place, 1), op=MPI.NO_OP)
        self.window.Unlock(0)
        return int(value[0])

    def write(self, place: int, value: int) -> None:
        self.window.Lock(0, MPI.LOCK_SHARED)
        self.window.Accumulate(np.array([value], "i8"), 0, (place, 1), op=MPI.REPLACE)
        self.window.Unlock(0)


class TicketLock:
    """A lock that serves ranks in the order of their tickets."""

    def __init__(self, window: Window) -> None:
        self.window = window

    def acquire(self) -> None:
        ticket = self.window.read(NEXT)
        self.window.write(NEXT, ticket + 1)
        while self.window.read(SERVED) < ticket:
            pass

    def release(self) -> None:
        self.window.write(SERVED, self.window.read(SERVED) + 1)


def move(window: Window, lock: TicketLock, source: int, target: int, amount: int) -> None:
    """Move money between two accounts."""
    lock.acquire()
    have, other = window.read(FIRST + source), window.read(FIRST + target)
    window.write(FIRST + source, have - amount)
    window.write(FIRST + target, other + amount)
    lock.release()


def main() -> None:
    comm = MPI.COMM_WORLD
    window = Window(comm)
    lock = TicketLock(window)
    if comm.rank == 1:
        move(window, lock, 0, 1, 5)
        comm.send("moved", dest=2)
    elif comm.rank == 2:
        if comm.iprobe(source=1):  # usually rank 1 is first
            comm.recv(source=1)
            move(window, lock, 1, 2, 3)
        else:
            move(window, lock, 1, 2, 3)
            comm.recv(source=1)
    comm.Barrier()
    if comm.rank == 0:
        accounts = [window.read(FIRST + i) for i in range(ACCOUNTS)]
        assert accounts == [5, 12, 13], accounts
    window.window.Free()


main()
