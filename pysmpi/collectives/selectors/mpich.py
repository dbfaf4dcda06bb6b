"""MPICH 3.3's choice, as SMPI carries it (selector `mpich`).

Thresholds are bytes, except for reduce_scatter and allgatherv, where SMPI compares elements.
"""

from __future__ import annotations

from pysmpi.collectives.call import Call
from pysmpi.collectives.patterns import floor_power_of_two, is_power_of_two
from pysmpi.collectives.registry import Rules, selector
from pysmpi.collectives.selectors.nonblocking import SMPI


def _allreduce(call: Call) -> str:
    if not call.on_node_level and call.commutative:
        return "mvapich2_two_level"
    enough = call.count >= floor_power_of_two(call.size)
    return "rab_rdb" if call.nbytes > 2048 and enough and call.commutative else "rdb"


def _alltoall(call: Call) -> str:
    if call.nbytes < 256 and call.size >= 8:
        return "bruck"
    if call.nbytes < 32768:
        return "mvapich2_scatter_dest"
    # SMPI chooses `pair` for odd numbers of ranks, and aborts; MPICH uses the ring.
    return "ring"


def _bcast(call: Call) -> str:
    if not call.on_node_level and call.layout.uniform:
        return "SMP_binomial"
    if call.nbytes < 12288 or call.size <= 8:
        return "binomial_tree"
    if call.nbytes < 524288 and call.size % 2 == 0:
        return "scatter_rdb_allgather"
    return "scatter_LR_allgather"


def _reduce(call: Call) -> str:
    if not call.on_node_level and call.commutative:
        return "mvapich2_two_level"
    few = call.count < floor_power_of_two(call.size)
    return "binomial" if few or call.nbytes < 2048 or not call.commutative else "scatter_gather"


def _reduce_scatter(call: Call) -> str:
    counts = call.recv_counts or ()
    if call.commutative:
        return "mpich_pair" if sum(counts) > 524288 else "mpich_rdb"
    equal = all(n == counts[0] for n in counts)
    return "mpich_noncomm" if equal and is_power_of_two(call.size) else "mpich_rdb"


def _allgather(call: Call) -> str:
    total = call.nbytes * call.size
    if is_power_of_two(call.size) and total < 524288:
        return "rdb"
    return "bruck" if total <= 81920 else "ring"


def _allgatherv(call: Call) -> str:
    total = sum(call.recv_counts or ())
    if is_power_of_two(call.size) and total < 524288:
        return "mpich_rdb"
    return "ompi_bruck" if total <= 81920 else "mpich_ring"


def _uses_nodes(call: Call) -> bool:
    return call.op in ("allreduce", "bcast", "reduce") and not call.on_node_level


@selector("mpich", "MPICH 3.3b, as in SMPI", uses_nodes=_uses_nodes, nonblocking=SMPI)
def _rules() -> Rules:
    return {
        "allreduce": _allreduce,
        "alltoall": _alltoall,
        "alltoallv": lambda call: "bruck",
        "barrier": lambda call: "ompi_bruck",
        "bcast": _bcast,
        "reduce": _reduce,
        "reduce_scatter": _reduce_scatter,
        "allgather": _allgather,
        "allgatherv": _allgatherv,
        "gather": lambda call: "ompi_binomial",
        "scatter": lambda call: "ompi_binomial",
    }
