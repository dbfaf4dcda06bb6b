"""Choices of libraries for non-blocking and persistent collectives.

SMPI has one flat pattern for each operation and ignores its selectors. Open MPI has a separate
component (libnbc). MPICH's decisions differ little from those of its blocking forms.

Sources: SimGrid's smpi_nbc_impl.cpp; Open MPI 5's ompi/mca/coll/libnbc; MPICH 4's
src/mpi/coll/mpir_coll_sched_auto.c.
"""

from __future__ import annotations

from pysmpi.collectives.call import Call
from pysmpi.collectives.patterns import floor_power_of_two
from pysmpi.collectives.registry import Rule
from pysmpi.collectives.selectors import mpich4

SMPI: dict[str, Rule] = {
    # SMPI's Ibarrier releases ranks before all have arrived; this is the correct pattern.
    "barrier": lambda call: "ompi_basic_linear",
    "bcast": lambda call: "flattree",
    "allreduce": lambda call: "flat",
    "reduce_scatter": lambda call: "flat",
    "reduce_scatter_block": lambda call: "flat",
    "alltoall": lambda call: "basic_linear",
}


def _libnbc_reduce(call: Call) -> str:
    if call.commutative and call.size > 2 and call.count >= floor_power_of_two(call.size):
        return "scatter_gather"
    if call.size > 4 or call.nbytes < 65536 or not call.commutative:
        return "binomial"
    return "NTSL"


def _libnbc_allreduce(call: Call) -> str:
    short = call.size < 4 or call.nbytes < 65536
    if short or not call.commutative or call.in_place:
        return "binomial"
    return "rab_rdb" if call.count >= floor_power_of_two(call.size) else "ring"


LIBNBC: dict[str, Rule] = {
    "barrier": lambda call: "ompi_bruck",
    "bcast": lambda call: "flattree" if call.size <= 4 else "binomial_tree",
    "reduce": _libnbc_reduce,
    "allreduce": _libnbc_allreduce,
    "reduce_scatter": lambda call: "binomial",
    "reduce_scatter_block": lambda call: "binomial",
    "alltoall": lambda call: "basic_linear",
    "scan": lambda call: "linear",
    "exscan": lambda call: "linear",
}


def _mpich_bcast(call: Call) -> str:
    return mpich4.TWO_LEVEL if mpich4.hierarchical(call) else mpich4.flat_bcast(call)


MPICH: dict[str, Rule] = {
    **mpich4.RULES,
    "barrier": lambda call: "ompi_bruck",
    "bcast": _mpich_bcast,
}

BY_LIBRARY = {
    "default": SMPI, "ompi": SMPI, "mpich": SMPI, "mvapich2": SMPI, "impi": SMPI,
    "ompi5": LIBNBC, "mpich4": MPICH,
}  # fmt: skip
