"""The interval of a sampled run: when the same run in full would end, with 90 % probability.

A kind of pass was measured n times, with variance v, and skipped m times. In full, these passes
take m times their true mean, plus the variation of m single passes. The variance of the difference
is v (m^2 / n + m): the first term is the error of the mean. Passes in a row are alike, because a
computer is busy for a while; so both terms are larger, by the correlation of measures that follow
each other. Few measures show their variance badly, as in Student's distribution.

Two errors have no trace in the measures:

- a run that skips passes computes the others with other contents of the caches and with memory on
  other pages, and two runs in full differ too: `SYSTEMATIC`, relative to all compute;
- ranks that wait for each other after each pass wait for the slowest one. In a run that charges
  means none is slow. The upper end contains these waits, as if all passes were followed by one.

Folded arrays stay in the cache where the arrays of all ranks would not: `FOLDED`, relative to all
measured compute.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import hypot, log, sqrt

from pysmpi.python.records import record
from pysmpi.shadow.estimate import Estimate

LEVEL = 0.9
DEVIATE = 1.645  # of a normal distribution, between whose values of both signs are 90 %
# Root mean square of the errors of sampled runs whose passes were alike, and of folded ones
# (docs/explanation/accuracy.md).
SYSTEMATIC = 0.05
FOLDED = 0.08
# A run in full takes longer where arrays of all ranks do not fit the cache, and where each rank
# gets new pages for its temporary arrays.
FOLDED_ABOVE = 0.5
# And of runs on a computer with more work than processors: two runs in full differ by as much.
# `--compute steady` leaves most of it out.
BUSY = 0.12
BUSY_STEADY = 0.04
# The error (s) of the time of a pass: looks at a clock, and what they and pysmpi leave in caches.
PASS = 2.5e-6
FEWEST = 4  # measures from which a variance is known


@record(frozen=True)
class SkippedPasses:
    """The skipped passes of one kind and one rank: their number, time, and deviations (s).

    `error` is the standard deviation of the time of all of them. `waits` is the sum of the
    deviations of the blocks of compute in which they lie.
    """

    passes: int
    seconds: float
    error: float
    waits: float


def skipped_passes(
    estimate: Estimate,
    passes: int,
    charge: str,
    second: float,
    blocks: int | None = None,
    others: Iterable[Estimate] = (),
) -> SkippedPasses:
    """The skipped passes of a kind, whose measures are in units of `second`.

    They lie in a number of blocks of compute. Passes that are charged by `draw` vary by themselves.
    Passes of the same kind on other ranks have about the same relative variance.
    """
    values = estimate.values
    count = len(values)
    steady = charge == "steady"  # blocks take their undisturbed time, and none is slow
    typical = estimate.typical(charge, steady)
    mean = sum(values) / count if count else typical
    ways, variance = relative_variance([estimate, *others])
    variance *= mean * mean
    usual = variance
    # Student's distribution with a number of degrees of freedom has this variance from 3 on.
    variance *= ways / (ways - 2) if ways > 2 else 3.0
    alone = independence(values)
    scatter = estimate.scatter * estimate.stratified
    if estimate.unlike:
        squared = (passes * scatter) ** 2 + passes * variance
    else:
        squared = variance * (passes * passes / max(1.0, count * alone) + passes / alone)
        # What late measures differ by more than they scatter.
        apart = estimate.stratified - (estimate.mean if steady else typical)
        squared += passes * passes * max(0.0, apart**2 - scatter**2)
    waits = 0.0 if steady or charge == "draw" else sqrt(usual * passes * (blocks or passes))
    return SkippedPasses(passes, passes * typical * second, sqrt(squared) * second, waits * second)


def relative_variance(estimates: Iterable[Estimate]) -> tuple[int, float]:
    """The variance of some measures relative to the square of their mean, and its freedom."""
    ways, whole = 0, 0.0
    for estimate in estimates:
        values = estimate.values
        mean = sum(values) / len(values) if values else 0.0
        if mean > 0.0:
            ways += len(values) - 1
            whole += sum((value / mean - 1.0) ** 2 for value in values)
    return ways, whole / max(1, ways)


def independence(values: Sequence[float]) -> float:
    """The part of some measures that counts, by the correlation of neighbours; at least a fifth."""
    count = len(values)
    if count < FEWEST:
        return 1.0
    mean = sum(values) / count
    whole = sum((value - mean) ** 2 for value in values)
    if whole <= 0.0:
        return 1.0
    near = sum((a - mean) * (b - mean) for a, b in zip(values, values[1:], strict=False))
    # Few measures show less correlation than there is (Kendall 1954).
    correlation = near / whole
    correlation = min(max(correlation + (1.0 + 3.0 * correlation) / count, 0.0), 0.67)
    return (1.0 - correlation) / (1.0 + correlation)


def largest_of(ranks: int) -> float:
    """About how many deviations the largest of some normal values is above their mean."""
    return 0.0 if ranks < 2 else sqrt(2.0 * log(ranks)) * (0.48 if ranks < 4 else 0.75)


def around(
    ranks: Iterable[Sequence[SkippedPasses]],
    compute: float = 0.0,
    folded: bool = False,
    busy: float = 0.0,
) -> tuple[float, float]:
    """The seconds by which the interval reaches below and above the time of a run.

    `ranks` has the skipped passes of each rank, `compute` is the most measured compute of a rank
    (s), `folded` tells whether it worked with folded arrays, `busy` is the error if the
    computer has more work than processors.
    """
    every = [list(kinds) for kinds in ranks]
    error = max((hypot(*(kind.error for kind in kinds)) for kinds in every), default=0.0)
    waits = max((sum(kind.waits for kind in kinds) for kinds in every), default=0.0)
    relative = FOLDED if folded else SYSTEMATIC
    error = hypot(error, hypot(relative, busy) * compute)
    if compute:
        error = hypot(error, PASS * max(sum(kind.passes for kind in kinds) for kinds in every))
    above = hypot(error, FOLDED_ABOVE * compute) if folded else error
    return DEVIATE * error, DEVIATE * above + largest_of(len(every)) * waits
