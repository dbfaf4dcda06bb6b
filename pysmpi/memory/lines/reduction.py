"""The small reduction."""

from __future__ import annotations

from pysmpi.memory.lines.costs import LineCosts
from pysmpi.memory.lines.trees import Fanouts, best

LINEAR, FULL = "linear", "full"


def combine(costs: LineCosts, lines: int, reading: str = LINEAR) -> float:
    """T_k: a parent reads the buffers of its k children (lines in all) and combines them.

    Reading "linear" takes o k. The printed trees follow from it: the buffers belong to the parent,
    and there is no start-up of a message. "full" takes equation 2 with its start-up.
    """
    if reading == FULL:
        return costs.transfer(lines)
    return costs.per_line() * lines


def reduction(
    costs: LineCosts, tree: Fanouts, worst: bool = False, *, lines: int = 1, reading: str = LINEAR
) -> float:
    """T_red of a vector of `lines` lines in a tree (equations 17 and 18, which have one line).

    Each further line costs o for the write of the child and o for the combining of its parent.
    """
    R, twice = costs.R_R, 2 if worst else 1
    seconds = R
    for k in tree:
        seconds += (
            costs.R_I
            + twice * costs.contended(k)
            + twice * (1 + k) * R
            + costs.R_L
            + (lines - 1) * costs.per_line()
            + combine(costs, k * lines, reading)
        )
    return seconds


def best_reduction(
    costs: LineCosts, threads: int, worst: bool = False, *, lines: int = 1, reading: str = LINEAR
) -> Fanouts:
    """The tree that minimises equation 17 (18 for the worst case)."""
    return best(threads, lambda tree: reduction(costs, tree, worst, lines=lines, reading=reading))
