"""Open MPI 5.0's fixed decisions of `coll/tuned`, with its own algorithms (selector `ompi5`).

The decisions of release 5.0.9 are those of 4.1, so the tables are those of `ompi`, plus one for
reduce_scatter_block. The algorithms differ from SMPI's port: here the numbers are Open MPI's own
algorithms, which send whole messages if no segment size is configured. With several ranks on a
node, release 5 prefers its hierarchical component `han`; choose `two_level` for it.

Source: ompi/mca/coll/tuned/coll_tuned_decision_fixed.c and coll_tuned_*_decision.c.
"""

from __future__ import annotations

from pysmpi.collectives.call import Call
from pysmpi.collectives.patterns import floor_power_of_two, is_power_of_two
from pysmpi.collectives.registry import SELECTORS, Rule, Selector
from pysmpi.collectives.selectors import ompi
from pysmpi.collectives.selectors.tables import SelectorTable, by_order

_ALLREDUCE = "1=linear 2=redbcast 3=rdb 4=ring 5=ring 6=rab_rdb"
_BCAST = (
    "1=flattree 2=chain 3=chain 4=split_binary 5=binary 6=binomial 7=knomial"
    " 8=scatter_rdb_allgather 9=scatter_LR_allgather"
)
_REDUCE = (
    "1=ompi_basic_linear 2=chain 3=chain 4=binary 5=in_order_binomial 6=ompi_in_order_binary 7=rab"
)
ALLREDUCE = ompi.ALLREDUCE.renamed(_ALLREDUCE)
ALLREDUCE_IN_ORDER = ompi.ALLREDUCE_IN_ORDER.renamed(_ALLREDUCE)
ALLTOALL = ompi.ALLTOALL.renamed("1=basic_linear 2=ring 3=bruck 4=basic_linear 5=pair")
ALLTOALLV = ompi.ALLTOALLV.renamed("1=ompi_basic_linear 2=pairwise")
BARRIER = ompi.BARRIER.renamed(
    "1=ompi_basic_linear 2=ompi_doublering 3=ompi_recursivedoubling 4=ompi_bruck"
    " 5=ompi_two_procs 6=ompi_tree"
)
BCAST = ompi.BCAST.renamed(_BCAST)
REDUCE = ompi.REDUCE.renamed(_REDUCE)
REDUCE_IN_ORDER = ompi.REDUCE_IN_ORDER.renamed(_REDUCE)
REDUCE_SCATTER = ompi.REDUCE_SCATTER.renamed(
    "1=redscatterv 2=ompi_basic_recursivehalving 3=ompi_ring 4=ompi_butterfly"
)
REDUCE_SCATTER_BLOCK = SelectorTable(
    """
    P < 4   <4:2 <8:4 <16:3 <128:4 <256:3 <4K:4 <8K:3 <128K:4 else:1
    P < 8   <8:3 <32:2 <256:4 <8K:3 <16K:4 <1M:3 else:1
    P < 16  <4:1 <32:3 <128:4 <512K:3 <4M:1 else:4
    P < 32  <32:1 <512K:3 <2M:1 <4M:3 else:4
    else    <4:3 <16:1 <64K:4 <256K:1 else:4
    """,
    "1=redscatter 2=mpich_rdb 3=ompi_basic_recursivehalving 4=ompi_butterfly",
)
ALLGATHER = ompi.ALLGATHER.renamed("1=GB 2=bruck 3=rdb 4=NTSLR 5=ompi_neighborexchange 6=pair")
ALLGATHERV = ompi.ALLGATHERV.renamed(
    "1=GB 2=ompi_bruck 3=neighbour_ring 4=ompi_neighborexchange 5=pair"
)
GATHER = ompi.GATHER.renamed("1=ompi_basic_linear 2=ompi_binomial 3=linear_sync")


def _reduce_scatter(call: Call) -> str:
    if not call.commutative:
        return "redscatterv"
    return REDUCE_SCATTER.choose(call.size, sum(call.recv_counts or ()) * call.type_size)


def _reduce_scatter_block(call: Call) -> str:
    if not call.commutative:
        return "redscatter"
    return REDUCE_SCATTER_BLOCK.choose(call.size, call.nbytes * call.size)


def _allgather(call: Call) -> str:
    name = ALLGATHER.by_message(call)
    if name == "rdb" and not is_power_of_two(call.size):
        return "bruck"
    return "NTSLR" if name == "ompi_neighborexchange" and call.size % 2 else name


def _allgatherv(call: Call) -> str:
    total = sum(call.recv_counts or ()) * call.type_size
    name = ALLGATHERV.choose(call.size, total // call.size)
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

SELECTORS.add(
    Selector(
        "ompi5",
        "Open MPI 5.0's fixed decisions, with Open MPI's own algorithms",
        {
            "allreduce": by_order(ALLREDUCE, ALLREDUCE_IN_ORDER),
            "alltoall": ALLTOALL.by_message,
            "alltoallv": ALLTOALLV.by_ranks,
            "barrier": BARRIER.by_ranks,
            "bcast": BCAST.by_message,
            "reduce": by_order(REDUCE, REDUCE_IN_ORDER),
            "reduce_scatter": _reduce_scatter,
            "reduce_scatter_block": _reduce_scatter_block,
            "allgather": _allgather,
            "allgatherv": _allgatherv,
            "gather": GATHER.by_message,
            "scatter": ompi.SCATTER.by_message,
            "scan": lambda call: "linear",
            "exscan": lambda call: "linear",
        },
        nonblocking=LIBNBC,
    )
)
