"""The errors of predictions against a real MPI, on cases that were not used for the fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pysmpi.calibrate.library import POOL
from pysmpi.calibrate.pingpong import OPERATIONS, PATTERNS, Case, Times, really, simulated

# No size that was measured or used for the fit.
SIZES = (100, 700, 3000, 10_000, 20_000, 48_000, 100_000, 200_000, 400_000, 700_000, 1_500_000,
         3_000_000)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Comparison:
    """Seconds of each case, real and predicted."""

    real: Times
    predicted: Times

    def error(self, case: Case) -> float:
        """The relative error of a prediction."""
        return self.predicted[case] / self.real[case] - 1.0

    def summary(
        self, pattern: str | None = None, operation: str | None = None
    ) -> tuple[float, float]:
        """(mean, worst) absolute relative error of all cases, or of some."""
        errors = [
            abs(self.error(case))
            for case in self.real
            if pattern in (None, case[0]) and operation in (None, case[1])
        ]
        return sum(errors) / len(errors), max(errors)


def compare(
    platform: Path, cpus: Sequence[int], steady: Callable[[], bool],
    sizes: Sequence[int] = SIZES, runs: int = 3,
) -> Comparison:  # fmt: skip
    """Run the ping-pong program under the real MPI and under pysmpi."""
    real = really(cpus, POOL, PATTERNS, OPERATIONS, sizes, steady, runs)
    return Comparison(real, simulated(platform, POOL, PATTERNS, OPERATIONS, sizes))
