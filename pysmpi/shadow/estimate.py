"""The test whether a place has enough measures, and the estimated time of one more pass."""

from __future__ import annotations

import math
from random import Random

from pysmpi.python.records import record

ITERS = 30
PRECISION = 0.01
FEWEST = 3  # measures that are needed for a spread
KEPT = 1024  # measures to draw from
TREND = 6  # measures that are needed for a trend
# A trend is one that chance gives in one of 80 cases and changes the time by a fifth, or in one of
# 2,000 and by a twentieth: normal deviates of Mann and Kendall's test, and relative changes.
_TRENDS = ((2.5, 0.2), (3.5, 0.05))


@record(frozen=True)
class StoppingRule:
    """The rule that ends the measurement.

    The first `warmup` passes do not count, because caches are cold and libraries set up their
    tables. Then passes are measured until there are `iters` of them, or until the relative standard
    error of their mean, sigma / (sqrt(n) mean), is at most `precision`. None: no such limit. After
    that, one pass in `every` is measured; None: no more.
    """

    iters: int | None = ITERS
    precision: float | None = PRECISION
    warmup: int = 1
    every: int | None = None

    def __post_init__(self) -> None:
        if self.iters is None and self.precision is None:
            raise ValueError("expected a number of measures, a precision, or both")
        if self.iters is not None and self.iters < 1:
            raise ValueError(f"iters: expected at least 1 measure, got {self.iters}")
        if self.precision is not None and not 0.0 < self.precision < math.inf:
            raise ValueError(f"precision: expected a positive number, got {self.precision}")
        if self.warmup < 0:
            raise ValueError(f"warmup: expected 0 or more passes, got {self.warmup}")
        if self.every is not None and self.every < 2:
            raise ValueError(f"every: expected 2 or more passes, got {self.every}")


class Estimate:
    """The measures (ns) of one kind of pass, by Welford's method."""

    __slots__ = ("passes", "count", "mean", "_squares", "values", "_median")

    def __init__(self) -> None:
        self.passes = 0
        self.count = 0
        self.mean = 0.0
        self._squares = 0.0
        self.values: list[float] = []
        self._median: float | None = None

    def add(self, value: float, rule: StoppingRule) -> None:
        """Note one more pass."""
        self.passes += 1
        if self.passes <= rule.warmup:
            return
        self.count += 1
        distance = value - self.mean
        self.mean += distance / self.count
        self._squares += distance * (value - self.mean)
        if len(self.values) < KEPT:
            self.values.append(value)
            self._median = None

    @property
    def variance(self) -> float:
        """The sample variance; 0 for fewer than two measures."""
        return max(0.0, self._squares) / (self.count - 1) if self.count > 1 else 0.0

    @property
    def median(self) -> float:
        """The median of the measures; 0 without any."""
        if self._median is None:
            from statistics import median

            self._median = median(self.values) if self.values else 0.0
        return self._median

    @property
    def error(self) -> float:
        """The relative standard error of the mean; infinite for fewer than two measures."""
        if self.count < 2:
            return math.inf
        if self.mean == 0.0:
            return 0.0
        return math.sqrt(self.variance / self.count) / abs(self.mean)

    @property
    def trend(self) -> float | None:
        """The relative change from the first third of the measures to the last one.

        None if it may be chance (the test of Mann and Kendall), or if there are few measures.
        """
        values = self.values[-64:]
        count = len(values)
        if count < TREND:
            return None
        rises = sum(
            1 if later > earlier else -1 if later < earlier else 0
            for index, later in enumerate(values)
            for earlier in values[:index]
        )
        deviate = max(0, abs(rises) - 1) / math.sqrt(count * (count - 1) * (2 * count + 5) / 18.0)
        if deviate < _TRENDS[0][0]:
            return None
        from statistics import median

        third = count // 3
        first, last = median(values[:third]), median(values[-third:])
        if first <= 0.0 or (last > first) != (rises > 0):
            return None
        change = last / first - 1.0
        if any(deviate >= least and abs(change) >= small for least, small in _TRENDS):
            return change
        return None

    def enough(self, rule: StoppingRule) -> bool:
        """Whether further passes can be skipped."""
        if rule.iters is not None and self.count >= rule.iters:
            return True
        return rule.precision is not None and self.count >= FEWEST and self.error <= rule.precision

    def draw(self, random: Random) -> float:
        """One of the measures, by chance."""
        return self.values[random.randrange(len(self.values))]
