"""Broadcasts: the tree for one line, the pipeline and the flat tree for many."""

from __future__ import annotations

from pysmpi.memory.lines.costs import LineCosts
from pysmpi.memory.lines.trees import Fanouts, best


def notify_back(costs: LineCosts, threads: int, worst: bool = False) -> float:
    """T_nb: threads - 1 children write one line that their parent reads (equations 5 and 6)."""
    return costs.R_I + (2 if worst else 1) * (threads - 1) * costs.R_R


def notify_forward(
    costs: LineCosts, tree: Fanouts, worst: bool = False, *, printed: bool = False
) -> float:
    """T_fw: every parent signals that its line is ready (equation 10).

    In the worst case the children of a level contend with their parent. In the printed equation
    each level pays for the contention of all levels; `printed` selects this equation.
    """
    if not worst:
        return (len(tree) + 1) * costs.R_I + 2 * len(tree) * costs.R_L
    contended = sum(costs.contended(k) for k in tree)
    if printed:
        contended *= len(tree)
    return costs.R_I + 2 * (len(tree) * costs.R_R + contended)


def copy_down(costs: LineCosts, tree: Fanouts) -> float:
    """T_tree: the line goes down the tree (equation 9)."""
    return sum(costs.contended(k) for k in tree)


def small(costs: LineCosts, tree: Fanouts, worst: bool = False, *, printed: bool = False) -> float:
    """T_sbcast of one line down a tree, notifications both ways included (equation 11)."""
    back = sum(notify_back(costs, k + 1, worst) for k in tree)
    return notify_forward(costs, tree, worst, printed=printed) + copy_down(costs, tree) + back


def best_small(costs: LineCosts, threads: int, worst: bool = False) -> Fanouts:
    """The tree that minimises equation 11."""
    return best(threads, lambda tree: small(costs, tree, worst))


def slice_lines(lines: int, threads: int) -> int:
    """N_cl: lines of one of the threads - 1 slices of a pipelined broadcast."""
    return max(1, -(-lines // (threads - 1)))


def pipelined(costs: LineCosts, threads: int, lines: int, worst: bool = False) -> float:
    """T_pipedbcast: all but the root copy each slice from another thread (equations 12 and 13)."""
    if threads < 2:
        return 0.0
    L, R, I = costs.R_L, costs.R_R, costs.R_I  # noqa: E741
    crowd = costs.contended(threads - 1)
    piece = costs.transfer(slice_lines(lines, threads))
    if worst:
        begin = I + 2 * (R + crowd) + R
        first = 2 * R + crowd + piece
        rest = (threads - 2) * (2 * R + piece)
    else:
        begin = I + 2 * L
        first = 2 * L + crowd + piece
        rest = (threads - 2) * (R + L + piece)
    return begin + first + rest + 2 * R + L


def flat(costs: LineCosts, threads: int, lines: int, worst: bool = False) -> float:
    """T_ftbcast: all copy the whole message from the root (equation 14)."""
    if threads < 2:
        return 0.0
    L, R, I = costs.R_L, costs.R_R, costs.R_I  # noqa: E741
    crowd = costs.contended(threads - 1)
    b = costs.contended(0)
    copy = b + costs.contention * (threads - 2) + costs.per_line() * lines
    if worst:
        return copy + I + L + 3 * R + 2 * crowd + 2 * (threads - 1) * R
    return copy + I + 3 * L + R + crowd + (threads - 1) * R


def best_large(costs: LineCosts, threads: int, lines: int, worst: bool = False) -> str:
    """ "pipelined" or "flat", whichever is faster for a message of several lines."""
    by_slices = pipelined(costs, threads, lines, worst)
    return "pipelined" if by_slices < flat(costs, threads, lines, worst) else "flat"


def tree_of_lines(costs: LineCosts, tree: Fanouts, lines: int, worst: bool = False) -> float:
    """The tree of the small broadcast with a message of several lines.

    Each level copies the whole message. The further lines cost o each, without contention, because
    readers of different lines do not disturb each other (section 3.4).
    """
    return small(costs, tree, worst) + len(tree) * (lines - 1) * costs.per_line()


def best_shape(costs: LineCosts, threads: int, lines: int, worst: bool = False) -> str:
    """ "tree", "flat" or "pipelined", whichever is fastest; one line takes the tree."""
    if lines == 1:
        return "tree"
    tree = tree_of_lines(costs, best_small(costs, threads, worst), lines, worst)
    others = min(flat(costs, threads, lines, worst), pipelined(costs, threads, lines, worst))
    return "tree" if tree <= others else best_large(costs, threads, lines, worst)
