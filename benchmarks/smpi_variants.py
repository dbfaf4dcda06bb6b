"""Messages of SMPI that differ from those of MPI.

Its algorithms below leave out the last, shorter piece of a message. To compare the rest of their
times, these variants leave it out as well; programs never run them.
"""

from __future__ import annotations

from pysmpi.collectives import registry
from pysmpi.collectives.algorithms.allreduce_more import PIPELINE
from pysmpi.collectives.algorithms.bcast_pipelined import SEGMENT
from pysmpi.collectives.building import Builder
from pysmpi.collectives.call import Call

# The name in a row, and the name of the variant.
VARIANTS = {
    ("bcast", "flattree_pipeline"): "smpi_flattree_pipeline",
    ("allreduce", "smp_binomial_pipeline"): "smpi_binomial_pipeline",
}


def _cut(op: str, name: str, piece: int) -> None:
    """Register a variant of `name` that sends whole pieces of so many bytes only."""
    registry.COLLECTIVES.known()

    def without_rest(s: Builder, c: Call) -> None:
        """As the algorithm, of whole pieces only."""
        s.call(op, name, count=c.count if c.count < piece else c.count // piece * piece)

    registry.algorithm(op, VARIANTS[op, name], f"{name} without the last piece")(without_rest)


def register() -> None:
    """Make the variants known; rows are of single bytes, so elements are bytes."""
    if VARIANTS["bcast", "flattree_pipeline"] not in registry.algorithms_of("bcast"):
        _cut("bcast", "flattree_pipeline", SEGMENT)
        _cut("allreduce", "smp_binomial_pipeline", PIPELINE)
