"""The clocks of the ranks: their distance from the clock of rank 0, at the begin and at the end."""

from __future__ import annotations

import time
from typing import Any

ROUNDS = 100


def offset(comm: Any) -> float:
    """The seconds to add to this rank's clock for the date on rank 0; all ranks call it.

    The quickest of some round trips with rank 0 counts: rank 0 reads its clock in the middle of it.
    """
    best, result = float("inf"), 0.0
    for rank in range(1, comm.size):
        if comm.rank == 0:
            for _ in range(ROUNDS):
                comm.recv(source=rank)
                comm.send(time.perf_counter(), rank)
        elif comm.rank == rank:
            for _ in range(ROUNDS):
                before = time.perf_counter()
                comm.send(None, 0)
                there = comm.recv(source=0)
                after = time.perf_counter()
                if after - before < best:
                    best = after - before
                    result = there - (before + after) / 2
    return result


class RealClock:
    """Dates of this rank as seconds since the begin of the recording, on the clock of rank 0."""

    def __init__(self, begin: float, first: float, end: float, last: float, zero: float) -> None:
        self.begin = begin
        self.first = first
        self.zero = zero
        # Clocks run at slightly different speeds.
        self.drift = (last - first) / (end - begin) if end > begin else 0.0

    def date(self, local: float) -> float:
        """The date of a local time, not before the begin."""
        there = local + self.first + (local - self.begin) * self.drift
        return max(0.0, there - self.zero)
