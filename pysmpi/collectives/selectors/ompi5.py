"""Open MPI 5.0's fixed decisions of `coll/tuned`, with its own algorithms (selector `ompi5`).

The decisions of release 5.0.9 are those of 4.1, so `ompi5.table` takes those of `ompi`, and has one
more for reduce_scatter_block. The algorithms differ from SMPI's port: here the numbers are Open
MPI's own algorithms, which send whole messages if no segment size is configured. With several
ranks on a node, release 5 prefers its hierarchical component `han`; choose `two_level` for it.

Source: ompi/mca/coll/tuned/coll_tuned_decision_fixed.c and coll_tuned_*_decision.c.
"""

from __future__ import annotations

from pysmpi.collectives.call import Call
from pysmpi.collectives.patterns import floor_power_of_two, is_power_of_two
from pysmpi.collectives.registry import Rules, selector
from pysmpi.collectives.selectors.tables import (
    by_message,
    by_order,
    by_ranks,
    library_tables,
    mean_block,
)

TABLES = library_tables("ompi5")


def _reduce_scatter(call: Call) -> str:
    if not call.commutative:
        return "redscatterv"
    return TABLES["reduce_scatter"].choose(call.size, sum(call.recv_counts or ()) * call.type_size)


def _reduce_scatter_block(call: Call) -> str:
    if not call.commutative:
        return "redscatter"
    return TABLES["reduce_scatter_block"].choose(call.size, call.nbytes * call.size)


def _allgather(call: Call) -> str:
    name = TABLES["allgather"].choose(call.size, call.nbytes)
    if name == "rdb" and not is_power_of_two(call.size):
        return "bruck"
    return "NTSLR" if name == "ompi_neighborexchange" and call.size % 2 else name


def _allgatherv(call: Call) -> str:
    name = TABLES["allgatherv"].choose(call.size, mean_block(call))
    return "neighbour_ring" if name == "ompi_neighborexchange" and call.size % 2 else name


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


LIBNBC: Rules = {
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


@selector(
    "ompi5", "Open MPI 5.0's fixed decisions, with Open MPI's own algorithms", nonblocking=LIBNBC
)
def _rules() -> Rules:
    return {
        "allreduce": by_order(TABLES, "allreduce"),
        "alltoall": by_message(TABLES, "alltoall"),
        "alltoallv": by_ranks(TABLES, "alltoallv"),
        "barrier": by_ranks(TABLES, "barrier"),
        "bcast": by_message(TABLES, "bcast"),
        "reduce": by_order(TABLES, "reduce"),
        "reduce_scatter": _reduce_scatter,
        "reduce_scatter_block": _reduce_scatter_block,
        "allgather": _allgather,
        "allgatherv": _allgatherv,
        "gather": by_message(TABLES, "gather"),
        "scatter": by_message(TABLES, "scatter"),
        "scan": lambda call: "linear",
        "exscan": lambda call: "linear",
    }
