"""SMPI's default without a selector: flat patterns, and Open MPI's choice for alltoall."""

from __future__ import annotations

from pysmpi.collectives.registry import Rules, selector
from pysmpi.collectives.selectors.nonblocking import SMPI


@selector(
    "default", "SMPI's own: flat patterns, binomial bcast, Open MPI's alltoall", nonblocking=SMPI
)
def _rules() -> Rules:
    return {
        "barrier": lambda call: "ompi_basic_linear",
        "bcast": lambda call: "binomial_tree",
        "alltoall": lambda call: "ompi",
    }
