"""The slopes of contention for which a tree is the best one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pysmpi.memory.lines.costs import LineCosts
from pysmpi.memory.lines.trees import Fanouts, best, candidates

INFINITY = float("inf")
NS = 1e-9
Cost = Callable[[LineCosts, Fanouts], float]


def slopes(costs: LineCosts, threads: int, tree: Fanouts, seconds: Cost) -> tuple[float, float]:
    """(lowest, highest) slope c in seconds for which no tree is cheaper than `tree`.

    All costs here are linear in c, so the bounds are exact. An empty range is (inf, -inf).
    """
    own, own_slope = _line(costs, tree, seconds)
    low, high = 0.0, INFINITY
    for other in candidates(threads):
        their, their_slope = _line(costs, other, seconds)
        gap, turn = their - own, own_slope - their_slope  # cheaper while turn c <= gap
        if abs(turn) < 1e-9:
            if gap < -1e-15:
                return INFINITY, -INFINITY
        elif turn > 0:
            high = min(high, gap / turn)
        else:
            low = max(low, gap / turn)
    return (low, high) if low <= high else (INFINITY, -INFINITY)


def best_slopes(costs: LineCosts, threads: int, seconds: Cost) -> tuple[Fanouts, float, float]:
    """The best tree at the slope of `costs`, and the range of slopes in which it is the best."""
    tree = best(threads, lambda fanouts: seconds(costs, fanouts))
    return (tree, *slopes(costs, threads, tree, seconds))


def _line(costs: LineCosts, tree: Fanouts, seconds: Cost) -> tuple[float, float]:
    at_zero = seconds(replace(costs, contention=0.0), tree)
    at_one = seconds(replace(costs, contention=NS), tree)
    return at_zero, (at_one - at_zero) / NS
