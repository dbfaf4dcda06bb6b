"""The cost of the boundary of MPI calls, which measured blocks of compute would contain.

A block goes from the end of one call to the start of the next. It contains the return from the
boundary of the first call, and the first instructions of the boundary of the next. The costs of
calls of a calibrated machine contain the same of a real library.
"""

from __future__ import annotations

from typing import Any

from greenlet import greenlet

from pysmpi.mpi.base.procedures import CallKind, Procedure
from pysmpi.mpi.calls import bare_boundary
from pysmpi.time.cpu_clock import CpuClock, CpuTimer

BATCHES, CALLS = 9, 40


class _BareProcess:
    debt = 0.0


class _BareRank:
    """As much of a rank as a boundary looks at."""

    in_call = False
    watchers = None
    record = None

    def __init__(self, clock: CpuClock) -> None:
        self.timer = CpuTimer(clock, 1.0)
        self.process = _BareProcess()


class _BareFiber(greenlet):
    rank: _BareRank


def _nothing(self: object, first: object, second: object) -> None:
    """A call with two arguments, as most have."""


def boundary_cost(clock: CpuClock) -> int:
    """The usual time (ns) of a block between two calls in a row, as `clock` measures it."""
    call: Any = bare_boundary(_nothing, Procedure(_nothing, CallKind.POINT_TO_POINT, "", None))
    rank = _BareRank(clock)
    process = rank.process
    means: list[float] = []

    def calls() -> None:
        for _ in range(BATCHES):
            rank.timer.start()
            process.debt = 0.0
            for _ in range(CALLS):
                call(rank, None, None)
            means.append(process.debt / CALLS)

    fiber = _BareFiber(calls)
    fiber.rank = rank
    fiber.switch()
    return round(sorted(means)[BATCHES // 2])
