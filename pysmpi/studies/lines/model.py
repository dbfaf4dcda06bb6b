"""The common part of the studies of the Xeon Phi: its costs and the printed parameters."""

from __future__ import annotations

from pysmpi.memory.lines.costs import LineCosts
from pysmpi.memory.lines.machine import costs_of

NS = 1e-9
PHI = "xeon-phi-5110p"


def costs() -> LineCosts:
    """The line costs of the Xeon Phi."""
    return costs_of(PHI)


def ns(seconds: float) -> float:
    """Nanoseconds."""
    return seconds / NS
