"""Tuned to the cache lines of nodes (selector `coherence_tuned`), MPICH 4.3 between them.

Broadcasts, barriers, and reductions up to 8 KiB, the range of the model, are tuned inside nodes;
the leaders of nodes and all other calls do as `mpich4`.
"""

from __future__ import annotations

from pysmpi.collectives.call import Call
from pysmpi.collectives.registry import Rule, Rules, selector
from pysmpi.collectives.selectors.mpich4 import RULES as MPICH4
from pysmpi.collectives.selectors.mpich4 import TWO_LEVEL

TUNED = "coherence_tuned"
LIMIT = 8192  # largest measured size in the paper; vectors up to it are reduced as a whole


def _rule(op: str) -> Rule:
    reduces = op in ("reduce", "allreduce")

    def rule(call: Call) -> str:
        theirs = MPICH4[op](call)
        if reduces and (call.nbytes > LIMIT or not call.commutative):
            return theirs
        one_node = len(call.layout.leaders) == 1
        return TUNED if one_node or theirs == TWO_LEVEL else theirs

    return rule


@selector(TUNED, "trees tuned to the cache lines of nodes, MPICH 4.3 between nodes")
def _rules() -> Rules:
    return MPICH4 | {op: _rule(op) for op in ("barrier", "bcast", "reduce", "allreduce")}
