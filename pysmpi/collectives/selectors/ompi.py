"""Open MPI 4.1's fixed decisions, as SMPI carries them (selector `ompi`).

Sizes are bytes: the whole vector for bcast, reduce and allreduce, one block for alltoall,
allgather, gather and scatter, the mean block for allgatherv, all blocks for reduce_scatter. The
numbers are Open MPI's own numbers of its algorithms; if SMPI has no equivalent, the legend names
the algorithm that SMPI runs instead.
"""

from __future__ import annotations

from pysmpi.collectives.call import Call
from pysmpi.collectives.registry import SELECTORS, Selector
from pysmpi.collectives.selectors.nonblocking import SMPI
from pysmpi.collectives.selectors.tables import SelectorTable, by_order

_ALLREDUCE_NUMBERS = "1=redbcast 2=redbcast 3=rdb 4=lr 5=ompi_ring_segmented 6=rab_rdb"
ALLREDUCE = SelectorTable(
    """
    P < 4     <8:4 <4K:3 <8K:4 <16K:3 <64K:4 <256K:5 else:6
    P < 8     <16:4 <8K:3 else:6
    P < 16    <8K:3 else:6
    P < 32    <64:5 <4K:3 else:6
    P < 64    <128:5 else:6
    P < 128   <256K:3 else:6
    P < 256   <128K:2 <256K:3 else:6
    P < 512   <4K:2 else:6
    P < 2048  <2K:2 <16K:3 else:6
    P < 4096  <2K:2 <4K:5 <16K:3 else:6
    else      <2K:2 <16K:5 <32K:3 else:6
    """,
    _ALLREDUCE_NUMBERS,
)
ALLREDUCE_IN_ORDER = SelectorTable(
    """
    P < 4     <128K:3 else:1
    P < 8     3
    P < 16    <1M:3 else:2
    P < 128   3
    P < 256   <128K:2 <512K:3 else:2
    P < 512   <4K:2 <512K:3 else:2
    else      <2K:2 else:3
    """,
    _ALLREDUCE_NUMBERS,
)

_ALLTOALL_NUMBERS = "1=basic_linear 2=pair 3=bruck 4=basic_linear 5=basic_linear"
ALLTOALL = SelectorTable(
    """
    P == 2    <2:2 <4:5 <16:2 <64:5 <256:2 <4K:5 <32K:2 <256K:4 <1M:5 else:2
    P < 8     <8K:4 <16K:1 <64K:4 <512K:1 <1M:2 else:1
    P < 16    <256K:4 else:1
    P < 32    <4:4 <512:3 <8K:4 <32K:1 <256K:4 <512K:1 else:4
    P < 64    <512:3 <512K:1 else:4
    P < 128   <1K:3 <2K:1 <4K:4 <256K:1 else:2
    P < 256   <1K:3 <2K:4 <256K:1 else:2
    P < 512   <1K:3 <8K:4 <32K:1 else:2
    P < 1024  <512:3 <8K:4 <16K:1 <128K:4 <256K:1 else:2
    P < 2048  <512:3 <1K:4 <2K:1 <16K:4 <256K:1 else:4
    P < 4096  <1K:3 <4K:4 <8K:1 <128K:4 else:1
    else      <2K:3 <8K:4 <16K:1 <32K:4 <64K:1 else:4
    """,
    _ALLTOALL_NUMBERS,
)

_ALLTOALLV_NUMBERS = "1=ompi_basic_linear 2=pair"
ALLTOALLV = SelectorTable(
    """
    P < 4     2
    P < 64    1
    P < 128   2
    P < 256   1
    P < 1024  2
    else      1
    """,
    _ALLTOALLV_NUMBERS,
)

_BARRIER_NUMBERS = (
    "1=ompi_basic_linear 2=ompi_basic_linear 3=ompi_recursivedoubling 4=ompi_bruck "
    "5=ompi_two_procs 6=ompi_tree"
)
BARRIER = SelectorTable(
    """
    P < 4     3
    P < 8     1
    P < 64    3
    P < 256   4
    P < 512   6
    P < 1024  4
    P < 4096  6
    else      4
    """,
    _BARRIER_NUMBERS,
)

_BCAST_NUMBERS = (
    "1=NTSL 2=ompi_pipeline 3=ompi_pipeline 4=ompi_split_bintree 5=NTSB 6=binomial_tree "
    "7=mvapich2_knomial_intra_node 8=scatter_rdb_allgather 9=scatter_LR_allgather"
)
BCAST = SelectorTable(
    """
    P < 4     <32:3 <256:5 <512:3 <1K:7 <32K:1 <128K:5 <256K:2 <512K:1 <1M:6 else:5
    P < 8     <64:5 <128:6 <2K:5 <8K:6 <1M:1 else:2
    P < 16    <8:7 <64:5 <4K:7 <16K:5 <32K:6 else:1
    P < 32    <4K:7 <1M:6 else:8
    P < 64    <2K:6 else:7
    P < 128   7
    P < 256   <2:6 <16K:5 <32K:1 <64K:5 else:7
    P < 1024  <16K:7 <32K:4 else:7
    P < 2048  <512K:7 else:8
    P < 4096  <256K:7 else:8
    else      <8K:7 <16K:5 <256K:7 else:8
    """,
    _BCAST_NUMBERS,
)

_REDUCE_NUMBERS = (
    "1=ompi_basic_linear 2=ompi_chain 3=ompi_pipeline 4=ompi_binary 5=ompi_binomial "
    "6=ompi_in_order_binary 7=ompi_basic_linear"
)
REDUCE = SelectorTable(
    """
    P < 4     <8:7 <16:4 <32:3 <256K:1 <512K:3 <1M:2 else:3
    P < 8     <4K:4 <64K:2 <256K:5 <512K:1 <1M:5 else:1
    P < 16    <8K:4 else:5
    P < 32    <4K:4 else:5
    P < 256   5
    P < 512   <8K:5 <16K:6 else:5
    P < 2048  5
    P < 4096  <512:5 <1K:6 <8K:5 <16K:6 else:5
    else      <16:5 <32:6 <1K:5 <2K:6 <8K:5 <16K:6 else:5
    """,
    _REDUCE_NUMBERS,
)
REDUCE_IN_ORDER = SelectorTable(
    """
    P < 4     <8:6 else:1
    P < 8     1
    P < 16    <1K:6 <8K:1 <16K:6 <256K:1 else:6
    P < 128   6
    P < 256   <512:6 <1K:1 else:6
    else      6
    """,
    _REDUCE_NUMBERS,
)

_REDUCE_SCATTER_NUMBERS = "1=default 2=ompi_basic_recursivehalving 3=ompi_ring 4=ompi_butterfly"
REDUCE_SCATTER = SelectorTable(
    """
    P < 4     <64K:3 <128K:4 else:3
    P < 8     <8:1 <256K:2 else:3
    P < 32    <256K:2 else:3
    P < 64    <64:1 <2K:2 <512K:4 else:3
    P < 128   <256:1 <512:2 <2K:4 <4K:2 else:4
    P < 256   <256:1 <512:2 else:4
    P < 512   <256:1 <1K:2 else:4
    P < 1024  <512:1 <2K:2 <8K:4 <16K:2 else:4
    P < 2048  <512:1 <4K:2 <16K:4 <32K:2 else:4
    P < 4096  <512:1 <4K:2 else:4
    else      <1K:1 <8K:2 else:4
    """,
    _REDUCE_SCATTER_NUMBERS,
)

_ALLGATHER_NUMBERS = "1=NTSLR_NB 2=bruck 3=rdb 4=ring 5=ompi_neighborexchange 6=pair"
ALLGATHER = SelectorTable(
    """
    P == 2    6
    P < 32    3
    P < 64    <1K:3 <64K:5 else:4
    P < 128   <512:3 <64K:5 else:4
    P < 256   <512:3 <128K:5 <512K:4 <1M:5 else:4
    P < 512   <32:3 <128:2 <1K:3 <128K:5 <512K:4 <1M:5 else:4
    P < 1024  <64:3 <256:2 <2K:3 else:5
    P < 2048  <4:3 <8:2 <16:3 <32:2 <256:3 <512:2 <4K:3 else:5
    P < 4096  <32:2 <128:3 <512:2 <4K:3 else:5
    else      <2:3 <8:2 <16:3 <512:2 <4K:3 else:5
    """,
    _ALLGATHER_NUMBERS,
)

_ALLGATHERV_NUMBERS = "1=GB 2=ompi_bruck 3=mpich_ring 4=ompi_neighborexchange 5=pair"
ALLGATHERV = SelectorTable(
    """
    P == 2    <2K:3 <4K:5 <8K:3 else:5
    P < 8     <256:1 <4K:4 <8K:3 <16K:4 <256K:2 else:4
    P < 16    <1K:1 else:2
    P < 32    <128:1 <256K:2 else:3
    P < 64    <256:1 <8K:2 else:3
    P < 128   <256:1 <4K:2 else:3
    P < 256   <1K:2 <64K:4 else:3
    P < 512   <1K:2 else:3
    P < 1024  <512:2 <1K:1 <4K:2 <1M:4 else:3
    else      <4K:2 else:4
    """,
    _ALLGATHERV_NUMBERS,
)

_GATHER_NUMBERS = "1=ompi_basic_linear 2=ompi_binomial 3=ompi_linear_sync"
GATHER = SelectorTable(
    """
    P < 4     <2:3 <4:1 <32K:2 <64K:1 <128K:2 else:3
    P < 8     <1K:2 <8K:1 <32K:2 <256K:1 else:3
    P < 256   2
    P < 512   <2K:2 <8K:1 else:2
    else      2
    """,
    _GATHER_NUMBERS,
)

_SCATTER_NUMBERS = "1=ompi_basic_linear 2=ompi_binomial 3=ompi_linear_nb"
SCATTER = SelectorTable(
    """
    P < 4     <2:3 <128K:1 <256K:3 else:1
    P < 8     <2K:2 <4K:1 <8K:2 <32K:1 <1M:3 else:1
    P < 16    <16K:2 <1M:3 else:1
    P < 32    <16K:2 <32K:1 else:3
    P < 64    <512:2 <8K:3 <16K:2 else:3
    else      <512:2 else:3
    """,
    _SCATTER_NUMBERS,
)


def _reduce_scatter(call: Call) -> str:
    counts = call.recv_counts or ()
    if not call.commutative or 0 in counts:
        return "default"
    return REDUCE_SCATTER.choose(call.size, sum(counts) * call.type_size)


def _allgatherv(call: Call) -> str:
    total = sum(call.recv_counts or ()) * call.type_size
    return ALLGATHERV.choose(call.size, total // call.size)


SELECTORS.add(
    Selector(
        "ompi",
        "Open MPI 4.1.2's fixed decisions, as in SMPI",
        {
            "allreduce": by_order(ALLREDUCE, ALLREDUCE_IN_ORDER),
            "alltoall": ALLTOALL.by_message,
            "alltoallv": ALLTOALLV.by_ranks,
            "barrier": BARRIER.by_ranks,
            "bcast": BCAST.by_message,
            "reduce": by_order(REDUCE, REDUCE_IN_ORDER),
            "reduce_scatter": _reduce_scatter,
            "allgather": ALLGATHER.by_message,
            "allgatherv": _allgatherv,
            "gather": GATHER.by_message,
            "scatter": SCATTER.by_message,
        },
        nonblocking=SMPI,
    )
)
