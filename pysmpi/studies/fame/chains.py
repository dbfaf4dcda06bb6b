"""The Markov chains of ping-pong behind figures 1 and 2."""

from __future__ import annotations

from functools import cache

from pysmpi.coherence.study import Sizes, study
from pysmpi.memory.coherence import protocol
from pysmpi.memory.primitives import program
from pysmpi.memory.primitives.placement import at_distance, latencies
from pysmpi.memory.primitives.solution import Figures

PRIMITIVES = {"1": "sr1", "2": "sr2"}
PROTOCOLS = {"A": "FAME-A", "B": "FAME-B"}
CURVES = ("A1", "B1", "A2", "B2")
DISTANCES = (0, 1, 2)
PLACES = ("same node", "same module", "other module")


@cache
def solved(curve: str, distance: int) -> tuple[Figures, Sizes]:
    """The figures of protocol and primitive, such as "A1", at a distance."""
    found = study(
        program(PRIMITIVES[curve[1]]),
        protocol(PROTOCOLS[curve[0]]),
        at_distance(2, distance),
        latencies("fame"),
    )
    assert found.solved is not None
    return found.solved, found.sizes
