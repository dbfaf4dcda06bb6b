"""The clock of a compiled program: it stops at the entry points of MPI."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from greenlet import getcurrent

from pysmpi.mpi.base.ranks import Rank
from pysmpi.time.stopwatch import Stopwatch

_overhead: list[int] = []


class EntryTimer:
    """The timer of a rank with a compiled program: a call of MPI takes no compute at all.

    A call of the program is one of Python inside a chapter of `pysmpi.abi`, so the work of both is
    left out. The boundary of the inner call finds a timer that has stopped.
    """

    __slots__ = ("clock", "inside", "overhead", "paused", "rank", "real")

    def __init__(self, real: Any, rank: Rank) -> None:
        self.real = real
        self.rank = rank
        self.clock: Any = getattr(real, "clock", None) or Stopwatch()
        self.paused = False  # by `arrive`
        self.inside = False  # a call
        self.overhead = 0  # ns of an empty block, which the clock does not know
        if not _overhead and type(self.clock) is not Stopwatch:
            _overhead.append(self._calibrate())
        if _overhead:
            self.overhead = -_overhead[0]

    def __getattr__(self, name: str) -> object:
        return getattr(self.real, name)

    # As other timers, for calls in Python.

    def start(self) -> None:
        """A block begins."""
        if not self.inside:
            self.real.resume()

    def resume(self) -> None:
        """Work of the program inside a call begins; that in C is between `leave` and `enter`."""

    def stop(self) -> float:
        """The block ends; returns its seconds on the simulated core."""
        return 0.0 if self.inside else float(self.real.stop())

    def part(self) -> float | None:
        """The seconds of the block up to here; None in a call."""
        return None if self.inside else self.real.part()

    # For entry points.

    def arrive(self) -> None:
        """The program has called MPI: the clock pauses until `enter`."""
        self.clock.pause()
        self.paused = True

    def enter(self) -> None:
        """The block before the call ends. The caller is the line of the program."""
        if not self.inside:
            self.rank.process.debt += self.real.stop()
            self.inside = True
        if self.paused:
            self.paused = False
            self.clock.resume()

    def leave(self) -> None:
        """The call ends, or calls a function of the program."""
        if self.paused or not self.inside:
            self.enter()
        self.inside = False
        self.real.resume()
        self.clock.charge(self.overhead)

    def _calibrate(self) -> int:
        """The usual time of an empty block (ns)."""
        empty: list[int] = []
        for _ in range(301):
            self.inside = True
            self.leave()
            self.arrive()
            self.paused = False
            empty.append(self.clock.stop())
            self.clock.resume()
        self.inside = False
        return sorted(empty)[150]


def timed(function: Callable[..., object]) -> Callable[..., object]:
    """A function that begins with `enter`."""

    def call(*arguments: Any) -> object:
        timer = getattr(getattr(getcurrent(), "rank", None), "timer", None)
        if type(timer) is EntryTimer:
            timer.enter()
        return function(*arguments)

    return call
