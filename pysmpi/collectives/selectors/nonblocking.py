"""SMPI's non-blocking and persistent collectives: one flat pattern each, under every selector.

Source: SimGrid's smpi_nbc_impl.cpp.
"""

from __future__ import annotations

from pysmpi.collectives.registry import Rules

SMPI: Rules = {
    # SMPI's Ibarrier releases ranks before all have arrived; this is the correct pattern.
    "barrier": lambda call: "ompi_basic_linear",
    "bcast": lambda call: "flattree",
    "allreduce": lambda call: "flat",
    "reduce_scatter": lambda call: "flat",
    "reduce_scatter_block": lambda call: "flat",
    "alltoall": lambda call: "basic_linear",
}
