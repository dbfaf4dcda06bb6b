"""The timer of ranks on cores whose speed changes with time."""

from __future__ import annotations

from typing import Any

from pysmpi.mpi.base.ranks import Rank


class PacedTimer:
    """The timer of a rank on a core whose speed changes.

    A core that others share takes compute at its full speed; the sharing knows its present one.
    """

    def __init__(self, timer: Any, rank: Rank) -> None:
        self._timer = timer
        self._rank = rank

    def stop(self) -> float:
        """Stop it; the simulated seconds of compute, from the rank's own clock on."""
        return self._paced(float(self._timer.stop()))

    def part(self) -> float | None:
        """The simulated seconds of the block up to here, which goes on with `start`."""
        work = self._timer.part()
        return None if work is None else self._paced(work)

    def _paced(self, work: float) -> float:
        process = self._rank.process
        if not process.core.bills_alone():
            return work
        return process.core.alone(process.engine.now + process.debt, work)

    def __getattr__(self, name: str) -> object:
        return getattr(self._timer, name)
