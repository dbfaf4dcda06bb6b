"""The dissemination barrier."""

from __future__ import annotations

from pysmpi.memory.lines.costs import LineCosts


def rounds(threads: int, partners: int, *, printed: bool = False) -> int:
    """r: rounds until information from every thread has reached all others, m partners in each.

    Partners of round i have the distance (m + 1)^i, so that r = ceil(log_(m+1) threads). The paper
    prints r = ceil(log_m threads), and uses it for its tuned parameters; `printed` selects this
    formula. It never gives fewer rounds, and is not defined for one partner.
    """
    base = partners if printed else partners + 1
    if base < 2:
        raise ValueError(f"partners: expected at least {2 if printed else 1}, got {partners}")
    r, reached = 0, 1
    while reached < threads:
        reached *= base
        r += 1
    return r


def barrier(
    costs: LineCosts, threads: int, partners: int, worst: bool = False, *, printed: bool = False
) -> float:
    """T_barr with m partners a round (equations 15 and 16)."""
    r, m = rounds(threads, partners, printed=printed), partners
    if worst:
        return r * (costs.R_R + 4 * m * costs.R_R + (2 * m + 1) * costs.R_R)
    return r * (costs.R_L + costs.R_R * m + costs.R_R)


def best_partners(
    costs: LineCosts, threads: int, worst: bool = False, *, printed: bool = False
) -> tuple[int, int]:
    """(m, r) that minimise equation 15 (16 for the worst case)."""
    if threads < 2:
        return 0, 0
    least = 2 if printed else 1
    m = min(
        range(least, max(threads, least + 1)),
        key=lambda m: (barrier(costs, threads, m, worst, printed=printed), m),
    )
    return m, rounds(threads, m, printed=printed)
