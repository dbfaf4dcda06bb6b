"""Numerical integration with a work queue: rank 0 hands out intervals, and refines those whose
error is too large.

The error: a worker asks for its next interval before it computes, so that it need not wait. If the
queue is empty then, it is sent away for good, although its own interval may be cut in two.
"""

from __future__ import annotations

import sys
from math import exp

from mpi4py import MPI

ASK, RESULT, WORK, STOP = 1, 2, 3, 4
Interval = tuple[float, float, float]  # begin, end, tolerance


def function(x: float) -> float:
    return exp(-40.0 * (x - 0.3) ** 2)


def simpson(begin: float, end: float) -> float:
    middle = 0.5 * (begin + end)
    return (end - begin) / 6.0 * (function(begin) + 4.0 * function(middle) + function(end))


def refine(interval: Interval) -> tuple[float, list[Interval]]:
    """The integral over an interval, or the two halves if it is not known well enough."""
    begin, end, tolerance = interval
    middle = 0.5 * (begin + end)
    whole, halves = simpson(begin, end), simpson(begin, middle) + simpson(middle, end)
    if abs(whole - halves) < tolerance:
        return halves, []
    return 0.0, [(begin, middle, 0.5 * tolerance), (middle, end, 0.5 * tolerance)]


class Queue:
    """The intervals that are left, and the workers that have stopped."""

    def __init__(self, comm: MPI.Comm, intervals: list[Interval]) -> None:
        self.comm = comm
        self.left = intervals
        self.total = 0.0
        self.stopped = 0
        self.under_way = 0

    def serve(self) -> float:
        status = MPI.Status()
        while self.under_way or self.stopped < self.comm.size - 1:
            message = self.comm.recv(source=MPI.ANY_SOURCE, status=status)
            if status.tag == RESULT:
                value, more = message
                self.total += value
                self.left += more
                self.under_way -= 1
            elif self.left:
                self.comm.send(self.left.pop(0), dest=status.source, tag=WORK)
                self.under_way += 1
            else:  # should wait until no interval is under way
                self.comm.send(None, dest=status.source, tag=STOP)
                self.stopped += 1
        return self.total


def work(comm: MPI.Comm) -> None:
    status = MPI.Status()
    comm.send(None, dest=0, tag=ASK)
    while True:
        interval = comm.recv(source=0, status=status)
        if status.tag == STOP:
            return
        comm.send(None, dest=0, tag=ASK)
        comm.send(refine(interval), dest=0, tag=RESULT)


def main() -> None:
    comm = MPI.COMM_WORLD
    pieces = max(2, int(sys.argv[1])) if len(sys.argv) > 1 else 4
    if comm.rank:
        work(comm)
        return
    step = 1.0 / pieces
    found = Queue(comm, [(i * step, (i + 1) * step, 2e-3) for i in range(pieces)]).serve()
    assert abs(found - 0.2799) < 0.004, f"the integral is {found:.4f}, expected 0.2799"


main()
