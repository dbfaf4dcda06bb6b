"""Extrapolation of runs with several numbers of ranks to a larger one.

The critical path of each run is divided by cause. The seconds of a cause at p ranks are taken to be
c0 + c1 * p^i * log2(p)^j, the performance model normal form of Calotoiu, Hoefler, Poke and Wolf
(Using automated performance modeling to find scalability bugs in complex codes, SC 2013), with c1
from a least-squares fit and i, j from leave-one-out cross-validation. The sum of the causes is the
predicted time.

The time of a collective call in the path is taken to be a multiple of the time of its schedule if
all ranks enter at once. This time is replayed for each number of ranks, the predicted one included,
so a change of algorithm is foreseen; the multiple is such a function of p. Calls whose arguments
differ count with the other causes; if their algorithms change, the runs are refused.

Runs of different programs, machines or modes of compute do not extrapolate, nor do runs whose calls
change with the number of ranks, or whose times follow no such function.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pysmpi.analysis.collectives import prices
from pysmpi.analysis.graph import NONE, EventGraph
from pysmpi.analysis.path import COMPUTE, critical_path
from pysmpi.errors import UsageError
from pysmpi.trace.activity import RunActivity

FEWEST: Final = 3  # runs
SMALL: Final = 0.01  # share of a run that does not matter
NOTHING: Final = 1e-9  # share of a run that is rounding
LARGEST_ERROR: Final = 0.1  # of a run predicted from the others, relative
FARTHEST: Final = 64  # times the largest number of ranks
EXPONENTS: Final = (-1.0, -0.75, -2 / 3, -0.5, -1 / 3, -0.25, 0.0, 0.25, 1 / 3, 0.5, 2 / 3, 0.75,
                    1.0, 1.5, 2.0)  # fmt: skip
LOGARITHMS: Final = (0, 1)
# With fewer runs, fewer laws: each has two constants to find.
MANY: Final = 5
SIMPLE: Final = ((0.0, 0), (0.0, 1), (-1.0, 0), (1.0, 0), (-0.5, 0), (0.5, 0))
# Options of a run that must agree.
SAME: Final = ("platform", "model", "preset", "selector", "compute", "data")


@dataclass(frozen=True)
class Law:
    """Seconds as a function of the number of ranks: c0 + c1 * p^exponent * log2(p)^logarithm."""

    constant: float
    factor: float
    exponent: float
    logarithm: int

    def at(self, ranks: float) -> float:
        """The seconds for a number of ranks."""
        term = float(_term(ranks, self.exponent, self.logarithm))
        return max(0.0, self.constant + self.factor * term)

    def __str__(self) -> str:
        if self.factor == 0.0:
            return f"{self.constant:.3g} s"
        power = "" if self.exponent == 0.0 else f" p^{self.exponent:.3g}"
        log = " log2(p)" if self.logarithm else ""
        return f"{self.constant:.3g} s {self.factor:+.3g} s{power}{log}"


@dataclass(frozen=True)
class Extrapolation:
    """The predicted `seconds` of `ranks` ranks, and the law of each cause.

    The law of a collective call, which has one of the `prices`, is a multiple of its price (s).
    `error` is the largest relative error of a run that was predicted from the others.
    """

    ranks: int
    seconds: float
    laws: dict[str, Law]
    error: float
    prices: dict[str, float]

    def seconds_of(self, cause: str) -> float:
        """The predicted seconds of a cause."""
        return self.laws[cause].at(self.ranks) * self.prices.get(cause, 1.0)

    def law_of(self, cause: str) -> str:
        """The law of a cause for people."""
        if cause not in self.prices:
            return str(self.laws[cause])
        factor = self.laws[cause].at(self.ranks)
        return f"{factor:.2f} x {self.prices[cause]:.3g} s, its schedules on {self.ranks} ranks"

    def report(self) -> dict[str, object]:
        """The prediction as plain data."""
        return {
            "ranks": self.ranks,
            "seconds": self.seconds,
            "error": self.error,
            "causes": {cause: self.seconds_of(cause) for cause in self.laws},
            "laws": {cause: self.law_of(cause) for cause in self.laws},
        }


def extrapolate(graphs: Sequence[EventGraph], ranks: int) -> Extrapolation:
    """Predict the time of a larger number of ranks.

    Raises UsageError with the reason if the runs do not allow it.
    """
    graphs = sorted(graphs, key=lambda graph: graph.record.ranks)
    counts = [graph.record.ranks for graph in graphs]
    _refuse_different(graphs, counts, ranks)
    tables, priced = _terms(graphs, ranks)
    sizes = np.array(counts, float)
    whole = sum(graph.seconds for graph in graphs)
    laws = {}
    for cause in tables[0]:
        seconds = np.array([table[cause] for table in tables])
        if seconds.any():
            prices = np.array(priced.get(cause, [1.0] * (len(counts) + 1)))
            laws[cause] = fit(sizes, seconds / prices[:-1], whole / prices[:-1].mean())
    error = _error(sizes, tables, priced, [graph.seconds for graph in graphs])
    if error > LARGEST_ERROR:
        raise UsageError(
            f"extrapolate: the times of {', '.join(map(str, counts))} ranks follow no simple law: "
            f"one of them, predicted from the others, is {error:.0%} off, and at most "
            f"{LARGEST_ERROR:.0%} is accepted; give more runs, or runs of similar decompositions"
        )
    last = {cause: priced[cause][-1] for cause in laws if cause in priced}
    total = sum(law.at(ranks) * last.get(cause, 1.0) for cause, law in laws.items())
    return Extrapolation(ranks, total, laws, error, last)


def _terms(
    graphs: Sequence[EventGraph], ranks: int
) -> tuple[list[dict[str, float]], dict[str, list[float]]]:
    """The seconds of each cause in each run, and the prices of collective calls.

    The collective calls of a site are a cause of their own if they have a price.
    """
    runs = [graph.record for graph in graphs]
    paths = [critical_path(graph) for graph in graphs]
    tables = [path.by_cause() for path in paths]
    inside: list[dict[str, float]] = [defaultdict(float) for _ in graphs]
    parts: list[list[tuple[str, str, float]]] = [[] for _ in graphs]
    for run, path, sums, part in zip(runs, paths, inside, parts):
        for piece in path.pieces:
            name = run.site(piece.site) if piece.site != NONE else ""
            if piece.cause != COMPUTE and name in run.collectives:
                sums[name] += piece.seconds
                part.append((name, piece.cause, piece.seconds))
    found: dict[str, list[float]] = {}
    for name in dict.fromkeys(name for sums in inside for name in sums):
        share = max(sums[name] / graph.seconds for sums, graph in zip(inside, graphs))
        known = prices(runs, name, ranks)
        if known is not None and min(known) > 0.0:
            found[name] = known
        elif share > SMALL:
            used = [run.collectives[name].algorithms for run in runs if name in run.collectives]
            if any(one != used[0] for one in used):
                names = ", ".join(sorted(set().union(*used) - {""}))
                raise UsageError(
                    f"extrapolate: {name}: its algorithm changes with the number of ranks "
                    f"({names}), and its calls differ, so that the algorithm for {ranks} "
                    "ranks is not known; keep one with --coll"
                )
    for graph, table, sums, part in zip(graphs, tables, inside, parts):
        for name, cause, seconds in part:
            if name in found:
                table[cause] -= seconds
        for cause, rest in table.items():
            if rest < NOTHING * graph.seconds:
                table[cause] = 0.0
        for name in found:
            table[name] = sums[name]
    return tables, found


def _refuse_different(graphs: Sequence[EventGraph], counts: list[int], ranks: int) -> None:
    if len(set(counts)) < FEWEST:
        raise UsageError(
            f"extrapolate: expected runs of at least {FEWEST} numbers of ranks, got "
            f"{len(set(counts))}"
        )
    if len(set(counts)) < len(counts):
        raise UsageError("extrapolate: expected one run of each number of ranks, got two of one")
    if not counts[-1] < ranks <= FARTHEST * counts[-1]:
        raise UsageError(
            f"--ranks {ranks}: expected more than the {counts[-1]} ranks of the largest run, and "
            f"at most {FARTHEST} times as many"
        )
    first = graphs[0].record
    for graph, count in zip(graphs[1:], counts[1:]):
        record = graph.record
        for key in SAME:
            if record.facts.get(key) != first.facts.get(key):
                raise UsageError(
                    f"extrapolate: the run of {count} ranks has {key} "
                    f"{record.facts.get(key)!r}, that of {counts[0]} ranks "
                    f"{first.facts.get(key)!r}"
                )
        mine, theirs = _places(first), _places(record)
        other = sorted(mine ^ theirs)
        if other:
            where = counts[0] if other[0] in mine else count
            raise UsageError(
                f"extrapolate: the structure changes with the number of ranks: only the run of "
                f"{where} ranks calls {other[0]}"
            )
    for count, graph in zip(counts, graphs):
        if graph.record.failed:
            raise UsageError(f"extrapolate: the run of {count} ranks has failed")


def _places(record: RunActivity) -> set[str]:
    return {record.site(number) for number in range(len(record.sites))}


def _term(ranks: Any, exponent: float, logarithm: int) -> Any:
    return ranks**exponent * np.log2(ranks) ** logarithm


def _solve(sizes: NDArray[Any], seconds: NDArray[Any], exponent: float, logarithm: int) -> Law:
    if exponent == 0.0 and logarithm == 0:
        return Law(float(seconds.mean()), 0.0, 0.0, 0)
    terms = _term(sizes, exponent, logarithm)
    # Rows weigh by the inverse of their size: relative errors count.
    weights = 1.0 / np.maximum(np.abs(seconds), 1e-3 * np.abs(seconds).max() + 1e-300)
    matrix = np.stack([np.ones_like(terms), terms], 1) * weights[:, None]
    (constant, factor), *_ = np.linalg.lstsq(matrix, seconds * weights, rcond=None)
    return Law(float(constant), float(factor), exponent, logarithm)


def fit(sizes: NDArray[Any], seconds: NDArray[Any], whole: float) -> Law:
    """The law that predicts each of some times best from the others.

    Differences far below the times of the runs, `whole` in all, do not count: then the simplest law
    is taken.
    """
    best: tuple[float, float, int] | None = None
    chosen = _solve(sizes, seconds, 0.0, 0)
    everything = np.arange(len(sizes))
    laws = (
        SIMPLE
        if len(sizes) < MANY
        else tuple((exponent, logarithm) for logarithm in LOGARITHMS for exponent in EXPONENTS)
    )
    for exponent, logarithm in laws:
        error = 0.0
        for left in everything:
            keep = everything != left
            law = _solve(sizes[keep], seconds[keep], exponent, logarithm)
            # The largest run tells most about larger ones.
            weight = sizes[left] / sizes[-1]
            error += weight * (law.at(sizes[left]) - seconds[left]) ** 2
        error = math.sqrt(error) / whole if whole else 0.0
        key = (round(error, 4), abs(exponent) + 0.25 * logarithm, logarithm)
        if best is None or key < best:
            best = key
            chosen = _solve(sizes, seconds, exponent, logarithm)
    return chosen


def _error(
    sizes: NDArray[Any], tables: Sequence[dict[str, float]], priced: dict[str, list[float]],
    times: Sequence[float],
) -> float:  # fmt: skip
    """The relative error of the largest run, predicted from the others, or of the fits."""
    worst = 0.0
    for left in range(len(sizes)):
        keep = [i for i in range(len(sizes)) if i != left or left != len(sizes) - 1]
        if len(keep) < FEWEST:
            keep = list(range(len(sizes)))
        chosen = np.array(keep)
        predicted = 0.0
        for cause in tables[0]:
            seconds = np.array([table[cause] for table in tables])
            if seconds.any():
                own = np.array(priced.get(cause, [1.0] * (len(sizes) + 1)))[:-1]
                law = fit(sizes[chosen], (seconds / own)[chosen], sum(times) / own.mean())
                predicted += law.at(sizes[left]) * own[left]
        if times[left] > 0.0:
            worst = max(worst, abs(predicted / times[left] - 1.0))
    return worst
