"""MPICH 4's default selection (selector `mpich4`).

Release 4.3: the generic selection of algorithms, below the compositions of device ch4, which work
in two levels if a communicator has several ranks on a node and more than one node.

Source: maint/tuning/coll/mpir/generic.json and maint/tuning/coll/ch4/generic.json.
"""

from __future__ import annotations

from pysmpi.collectives.call import Call
from pysmpi.collectives.patterns import floor_power_of_two, is_power_of_two
from pysmpi.collectives.registry import Rules, selector

TWO_LEVEL = "two_level:mpich4,mpich4"


def hierarchical(call: Call) -> bool:
    leaders = len(call.layout.leaders)
    return not call.on_node_level and 1 < leaders < call.size


def _bcast(call: Call) -> str:
    m = call.nbytes
    if hierarchical(call):
        limit = 524288 if is_power_of_two(call.size) else 12288
        if call.size < 8 or m < limit:
            return TWO_LEVEL
    return flat_bcast(call)


def flat_bcast(call: Call) -> str:
    """The algorithm of one level."""
    m = call.nbytes
    if call.size < 8 or m <= 12288:
        return "binomial_tree"
    if is_power_of_two(call.size) and m <= 524288:
        return "scatter_rdb_allgather"
    return "scatter_LR_allgather"


def _allreduce(call: Call) -> str:
    if hierarchical(call) and call.commutative:
        return TWO_LEVEL
    few = call.count < floor_power_of_two(call.size)
    # User-defined operators are treated like built-in ones that do not commute.
    return "rdb" if call.nbytes <= 8 or few or not call.commutative else "rab_rdb"


def _reduce(call: Call) -> str:
    if hierarchical(call) and call.commutative:
        return TWO_LEVEL
    few = call.count < floor_power_of_two(call.size)
    short = call.nbytes <= 2048 or few or not call.commutative
    return "binomial" if short else "scatter_gather"


def _reduce_scatter(call: Call) -> str:
    counts = call.recv_counts or (call.count,) * call.size
    if call.commutative:
        short = sum(counts) * call.type_size < 524288
        return "ompi_basic_recursivehalving" if short else "mpich_pair"
    equal = all(n == counts[0] for n in counts)
    return "mpich_noncomm" if equal and is_power_of_two(call.size) else "mpich_rdb"


def _allgather(call: Call) -> str:
    total = call.nbytes * call.size
    if is_power_of_two(call.size):
        return "rdb" if total < 524288 else "NTSLR"
    return "bruck" if total < 81920 else "NTSLR"


def _allgatherv(call: Call) -> str:
    total = sum(call.recv_counts or ()) * call.type_size
    if is_power_of_two(call.size):
        return "mpich_rdb" if total < 524288 else "mpich_ring"
    return "ompi_bruck" if total < 81920 else "mpich_ring"


def _alltoall(call: Call) -> str:
    if call.in_place:
        return "ring"
    if call.size >= 8 and call.nbytes <= 256:
        return "bruck"
    if call.nbytes <= 32768:
        return "scattered"
    return "pair" if is_power_of_two(call.size) else "ring"


RULES: Rules = {
    "allreduce": _allreduce,
    "alltoall": _alltoall,
    "alltoallv": lambda call: "pairwise" if call.in_place else "scattered",
    "alltoallw": lambda call: "scattered",
    "barrier": lambda call: TWO_LEVEL if hierarchical(call) else "ompi_bruck",
    "bcast": _bcast,
    "reduce": _reduce,
    "reduce_scatter": _reduce_scatter,
    "reduce_scatter_block": _reduce_scatter,
    "allgather": _allgather,
    "allgatherv": _allgatherv,
    "gather": lambda call: "ompi_binomial",
    "scatter": lambda call: "ompi_binomial",
    "scan": lambda call: "recursive_doubling",
    "exscan": lambda call: "recursive_doubling",
}


def _nonblocking_bcast(call: Call) -> str:
    return TWO_LEVEL if hierarchical(call) else flat_bcast(call)


NONBLOCKING: Rules = {
    **RULES,
    "barrier": lambda call: "ompi_bruck",
    "bcast": _nonblocking_bcast,
}


@selector(
    "mpich4", "MPICH 4.3's generic selection and two-level compositions", nonblocking=NONBLOCKING
)
def _rules() -> Rules:
    return RULES
