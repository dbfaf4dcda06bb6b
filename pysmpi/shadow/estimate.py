"""The test whether a place has enough measures, and the estimated time of one more pass."""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random

from pysmpi.python.records import record

ITERS = 30
PRECISION = 0.01
FEWEST = 3  # measures that are needed for a spread
KEPT = 1024  # measures to draw from
AUDIT = 8  # fewest passes to skip before one is measured again
TREND = 6  # measures that are needed for a trend
COMPARED = 64  # last measures that are compared
LIKE = 2.6  # normal deviate of Mann and Whitney's test up to which late passes are like early ones
DIFFERENT = 0.05  # smallest relative change of the mean that counts
ROUGH = 0.03  # relative standard error from which passes that are not alike are measured often
FARTHEST = 100  # most passes to skip until one is measured again
ODD = 4.0  # deviations of early measures from which a late one is odd
LATEST = 8  # last measures that show a change before all late ones do
SPREAD = 3.0  # times the low end from which on passes vary by themselves
OPEN = 3  # last measures that stand for the passes after them
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
    """The measures (ns) of one kind of pass, by Welford's method.

    Early measures come before the first skipped pass. A late measure stands for the skipped passes
    before it, so passes need not be alike: `stratified` is the mean of the skipped passes, in which
    each measure has the weight of its passes. Those after it would not do, since their number
    depends on the measure.
    """

    __slots__ = (
        "passes", "count", "mean", "_squares", "values", "_median",
        "early", "late", "apart", "unlike", "_odd", "_step", "_last",
        "_behind", "_weights", "_square", "_weighted",
    )  # fmt: skip

    def __init__(self) -> None:
        self.passes = 0
        self.count = 0
        self.mean = 0.0
        self._squares = 0.0
        self.values: list[float] = []
        self._median: float | None = None
        self.early: list[float] = []
        self.late: list[float] = []  # the last ones
        self.apart = 0  # passes that were skipped since the last measure
        self.unlike = False  # whether late passes take other times than early ones
        self._odd = 0  # measures that are far from all early ones
        self._step = AUDIT  # passes to skip next
        self._last = 0.0  # the last measure
        self._behind = 0  # skipped passes before the last measure
        self._weights = 0.0  # sum of the squares of the weights of late measures
        self._weighted = 0.0  # weighted sum of late measures
        self._square = 0.0  # and of their squares

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
        if self.apart:
            self._add_late(value)
        elif not self._behind and len(self.early) < COMPARED:
            self.early.append(value)
            self._last = self.mean

    def _add_late(self, value: float) -> None:
        weight, self.apart = self.apart, 0
        self._behind += weight
        self._last = value
        self._weights += weight * weight
        self._weighted += weight * value
        self._square += weight * value * value
        self.late.append(value)
        if len(self.late) > COMPARED:
            del self.late[0]
        self._odd += self.odd
        # Once is enough: few passes of another kind may not show among many.
        self.unlike = self.unlike or self._odd >= OPEN or self._differ()

    def _differ(self) -> bool:
        """Whether late passes take other times than early ones (Mann and Whitney's test)."""
        if not self.early:
            return False
        mean = sum(self.early) / len(self.early)
        if abs(self.stratified - mean) < DIFFERENT * abs(mean):
            return False
        return _apart(self.early, self.late) or _apart(self.early, self.late[-LATEST:])

    @property
    def stratified(self) -> float:
        """The mean of the skipped passes, by the measures around them."""
        passes = self._behind + self.apart
        if not self._behind:
            return self.mean
        last = self.late[-OPEN:]
        return (self._weighted + self.apart * sum(last) / len(last)) / passes

    @property
    def scatter(self) -> float:
        """The relative standard error of `stratified`; 0 without late measures."""
        if not self._behind:
            return 0.0
        mean = self._weighted / self._behind
        variance = max(0.0, self._square / self._behind - mean * mean)
        # The weights of few measures show their variance badly.
        effective = self._behind * self._behind / self._weights
        variance *= effective / (effective - 1.0) if effective > 1.5 else 3.0
        weights = self._weights + self.apart * self.apart / min(OPEN, len(self.late))
        whole = self.stratified * (self._behind + self.apart)
        return math.sqrt(variance * weights) / whole if whole > 0.0 else 0.0

    def gap(self) -> int:
        """The passes to skip until one is measured again.

        The time between two measures grows, so that many passes cost few measures. It is short
        again after a measure that the early ones do not let expect, and as long as the mean of
        passes that are not alike is not known.
        """
        if self.late and (self.odd or self.unlike) and self.scatter > ROUGH:
            self._step = AUDIT
        step = self._step
        self._step = min(step + step // 2, FARTHEST)
        return step

    @property
    def odd(self) -> bool:
        """Whether the last measure is far from all early ones."""
        early = self.early
        if len(early) < FEWEST:
            return False
        mean = sum(early) / len(early)
        spread = math.sqrt(sum((one - mean) ** 2 for one in early) / (len(early) - 1))
        return abs(self._last - mean) > max(ODD * spread, 2.0 * DIFFERENT * mean)

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
    def low(self) -> float:
        """The low end of the last measures; their mean if the passes vary (as `time/steady.py`)."""
        values = sorted(self.values[-COMPARED:])
        if not values:
            return 0.0
        # The lowest of few may be a wrong measure.
        low = values[min(max(1, len(values) // 8), len(values) - 1)]
        return low if values[3 * len(values) // 4] <= SPREAD * low else self.mean

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

    def typical(self, charge: str, steady: bool = False) -> float:
        """The time of a skipped pass; `steady` leaves out what other work adds to it."""
        if self.unlike:
            return self.stratified
        if steady:
            return self.low
        return self.median if charge == "median" else self.mean

    def enough(self, rule: StoppingRule) -> bool:
        """Whether further passes can be skipped."""
        if rule.iters is not None and self.count >= rule.iters:
            return True
        return rule.precision is not None and self.count >= FEWEST and self.error <= rule.precision

    def draw(self, random: Random) -> float:
        """One of the measures, by chance."""
        return self.values[random.randrange(len(self.values))]


def _apart(early: Sequence[float], late: Sequence[float]) -> bool:
    """Whether late passes take other times than early ones (Mann and Whitney's test)."""
    if len(early) < FEWEST or len(late) < FEWEST:
        return False
    wins = abs(sum((b > a) - (b < a) for a in early for b in late))
    pairs = len(early) * len(late)
    if pairs < 16:  # all pairs of 3 and 4 measures have one sign by chance in one of 18 cases
        return wins == pairs > 11
    return wins - 1 >= LIKE * math.sqrt(pairs * (len(early) + len(late) + 1) / 3.0)
