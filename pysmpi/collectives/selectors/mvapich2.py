"""MVAPICH2 1.9's tables for Stampede, as SMPI carries them (selector `mvapich2`).

Sizes are bytes: one block for alltoall, allgather, gather and scatter, the mean block for
allgatherv, the whole vector for bcast, reduce and allreduce, all blocks for reduce_scatter. A star
marks two levels; a second table has the algorithms inside nodes. If SMPI returns an error
(allgather of up to 1 KiB with 16 ranks on a node), pysmpi uses recursive doubling. Multicast
entries, which need hardware, are left out as in SMPI.
"""

from __future__ import annotations

from pysmpi.collectives.call import Call
from pysmpi.collectives.patterns import floor_power_of_two, is_power_of_two
from pysmpi.collectives.registry import SELECTORS, Selector
from pysmpi.collectives.selectors.nonblocking import SMPI
from pysmpi.collectives.selectors.tables import SelectorTable

_NAMES = (
    "linear=ompi_basic_linear knomial=mvapich2_knomial "
    "two_direct=mvapich2_two_level_direct two_binomial=mvapich2_two_level_binomial "
    "two_level=mvapich2_two_level scatter_ring=scatter_LR_allgather "
    "scatter_rdb=scatter_rdb_allgather halving=ompi_basic_recursivehalving "
    "scatter_dest=mvapich2_scatter_dest tree=ompi_binomial"
)

ALLTOALL = SelectorTable(
    """
    P <= 2   pair
    P <= 4   <=256K:scatter_dest else:pair
    P <= 8   <=8:rdb else:scatter_dest
    P <= 16  <=64:rdb <=512:bruck else:scatter_dest
    P <= 32  <=32:rdb <=2K:bruck else:scatter_dest
    P <= 64  <=8:rdb <=1K:bruck else:scatter_dest
    """,
    _NAMES,
)

ALLGATHER_1 = SelectorTable(
    """
    P <= 2   ring
    P <= 4   <=256K:rdb else:ring
    P <= 8   <=128K:rdb else:ring
    P <= 16  <=128K:rdb else:ring
    P <= 32  <=64K:rdb else:ring
    P <= 64  <=32K:rdb else:ring
    """,
    _NAMES,
)

ALLGATHER_2 = SelectorTable(
    """
    P <= 4    <=512K:rdb else:ring
    P <= 8    <=32K:rdb else:ring*
    P <= 16   <=16K:rdb else:ring*
    P <= 32   <=64K:rdb* else:ring*
    P <= 64   <=32K:rdb* else:ring*
    P <= 128  <=64K:rdb* else:ring*
    """,
    _NAMES,
)

ALLGATHER_16 = SelectorTable(
    """
    P <= 16   <=1K:rdb else:ring
    P <= 32   <=1K:rdb else:ring
    P <= 64   <=1K:rdb else:ring
    P <= 128  <=1K:rdb else:ring
    P <= 256  <=1K:rdb else:ring
    P <= 512  <=1K:rdb else:ring
    """,
    _NAMES,
)

ALLGATHERV = SelectorTable(
    """
    P <= 16   <=512:mpich_rdb else:mpich_ring
    P <= 32   <=512:mpich_rdb else:mpich_ring
    P <= 64   <=256:mpich_rdb else:mpich_ring
    P <= 128  <=256:mpich_rdb else:mpich_ring
    P <= 256  <=256:mpich_rdb else:mpich_ring
    P <= 512  <=256:mpich_rdb else:mpich_ring
    """,
    _NAMES,
)

ALLREDUCE = SelectorTable(
    """
    P <= 16    <=1K:rdb* else:mvapich2_rs
    P <= 32    <=16K:rdb* else:mvapich2_rs
    P <= 64    <=16K:rdb* else:mvapich2_rs
    P <= 128   <=16K:rdb* else:mvapich2_rs
    P <= 256   <=16K:rdb* else:mvapich2_rs
    P <= 512   <=16K:rdb* else:mvapich2_rs
    P <= 1024  <=8K:rdb* <=64K:mvapich2_rs* else:mvapich2_rs
    P <= 2048  <=64:rdb* <=512:mvapich2_rs* <=4K:rdb* else:mvapich2_rs
    """,
    _NAMES,
)

BCAST = SelectorTable(
    """
    P <= 16    <=8K:mpich* <=16K:binomial_tree* <=64K:mpich* <=256K:scatter_ring*
               <=512K:scatter_rdb* else:scatter_ring*
    P <= 32    mpich*
    P <= 64    mpich*
    P <= 128   <=512K:mpich* else:scatter_ring
    P <= 256   <=128K:mpich* <=256K:scatter_ring* <=512K:mpich* else:scatter_ring*
    P <= 512   <=256K:mpich* else:scatter_ring*
    P <= 1024  <=512K:mpich* else:scatter_ring*
    P <= 2048  <=512K:mpich* else:scatter_ring*
    """,
    _NAMES,
)

REDUCE = SelectorTable(
    """
    P <= 16    <=256K:knomial* <=1M:binomial else:scatter_gather
    P <= 32    <=32K:knomial* <=64K:binomial* <=256K:knomial <=1M:binomial else:scatter_gather
    P <= 64    <=16K:knomial* <=64K:binomial* <=256K:knomial* else:scatter_gather
    P <= 128   <=8K:knomial* <=16K:knomial <=64K:binomial* <=256K:knomial <=1M:binomial*
               else:scatter_gather
    P <= 256   <=16K:knomial* <=32K:binomial* <=64K:binomial <=1M:binomial* else:scatter_gather
    P <= 512   <=8K:knomial* <=16K:knomial <=1M:binomial* else:scatter_gather
    P <= 1024  <=8K:knomial* <=16K:knomial else:binomial*
    P <= 2048  <=2K:knomial* <=4K:knomial else:binomial*
    """,
    _NAMES,
)

REDUCE_INSIDE = SelectorTable(
    """
    P <= 16    <=64K:linear else:binomial
    P <= 32    <=8K:linear <=16K:knomial <=256K:linear else:binomial
    P <= 64    <=8K:linear <=16K:knomial <=64K:linear <=256K:knomial else:binomial
    P <= 128   <=8K:linear <=16K:knomial <=64K:linear <=256K:knomial else:binomial
    P <= 256   <=8K:linear <=16K:knomial <=64K:linear <=256K:knomial else:binomial
    P <= 512   <=8K:linear <=16K:knomial <=64K:linear <=256K:knomial else:binomial
    P <= 1024  <=8K:linear <=16K:knomial <=64K:linear <=256K:knomial else:binomial
    P <= 2048  <=16K:linear <=64K:knomial <=128K:binomial else:linear
    """,
    _NAMES,
)

REDUCE_SCATTER = SelectorTable(
    """
    P <= 16   <=64:default <=64K:halving else:mpich_pair
    P <= 32   <=64:default <=128K:halving else:mpich_pair
    P <= 64   <=1K:default <=256K:halving else:mpich_pair
    P <= 128  <=128:default else:halving
    P <= 256  <=128:default else:halving
    P <= 512  <=256:default else:halving
    """,
    _NAMES,
)

GATHER = SelectorTable(
    """
    P <= 16    <=512K:linear else:mpich
    P <= 32    <=16K:linear <=128K:mpich else:two_level
    P <= 64    <=256:two_level <=16K:linear else:two_level
    P <= 128   <=512:two_level <=16K:linear else:two_level
    P <= 256   <=512:two_level <=16K:linear else:two_level
    P <= 512   <=512:two_level <=16K:linear else:two_level
    P <= 1024  <=512:two_level <=16K:linear else:two_level
    """,
    _NAMES,
)

GATHER_INSIDE = SelectorTable(
    """
    P <= 16    linear
    P <= 32    mpich
    P <= 64    mpich
    P <= 128   mpich
    P <= 256   mpich
    P <= 512   mpich
    P <= 1024  mpich
    """,
    _NAMES,
)

SCATTER_1 = SelectorTable(
    """
    P <= 2   tree
    P <= 4   linear
    P <= 8   linear
    P <= 16  linear
    P <= 32  linear
    P <= 64  <=32:tree else:linear
    """,
    _NAMES,
)

SCATTER_INSIDE_1 = SelectorTable(
    """
    P <= 2   tree
    P <= 4   linear
    P <= 8   linear
    P <= 16  linear
    P <= 32  linear
    P <= 64  tree
    """,
    _NAMES,
)

SCATTER_2 = SelectorTable(
    """
    P <= 4    <=4K:tree else:linear
    P <= 8    <=512:two_direct else:linear
    P <= 16   <=2K:two_direct else:linear
    P <= 32   <=2K:two_direct else:linear
    P <= 64   <=8K:two_direct else:linear
    P <= 128  <=16:tree <=128:two_binomial <=16K:two_direct else:linear
    """,
    _NAMES,
)

SCATTER_INSIDE_2 = SelectorTable(
    """
    P <= 4    linear
    P <= 8    tree
    P <= 16   tree
    P <= 32   tree
    P <= 64   tree
    P <= 128  linear
    """,
    _NAMES,
)

SCATTER_16 = SelectorTable(
    """
    P <= 16    <=256:tree else:linear
    P <= 32    <=512:tree else:linear
    P <= 64    <=1K:two_direct else:linear
    P <= 128   <=2K:two_direct else:linear
    P <= 256   <=2K:two_direct else:linear
    P <= 512   <=4K:two_direct else:linear
    P <= 1024  <=32:tree <=4K:two_direct else:linear
    P <= 2048  <=128:two_binomial <=16K:two_direct <=64K:linear else:two_direct
    """,
    _NAMES,
)

SCATTER_INSIDE_16 = SelectorTable(
    """
    P <= 16    linear
    P <= 32    linear
    P <= 64    linear
    P <= 128   linear
    P <= 256   linear
    P <= 512   tree
    P <= 1024  tree
    P <= 2048  <=1K:tree else:linear
    """,
    _NAMES,
)

# Allgather and scatter have tables for 1, 2 and 16 ranks a node.
ALLGATHER = {1: ALLGATHER_1, 2: ALLGATHER_2, 16: ALLGATHER_16}
SCATTER = {
    1: (SCATTER_1, SCATTER_INSIDE_1),
    2: (SCATTER_2, SCATTER_INSIDE_2),
    16: (SCATTER_16, SCATTER_INSIDE_16),
}


def _alltoall(call: Call) -> str:
    return "ring" if call.in_place else ALLTOALL.by_message(call)


def _allgather(call: Call) -> str:
    layout = call.layout
    table = ALLGATHER.get(layout.per_node, ALLGATHER_1)
    name = table.by_message(call)
    if name.endswith("*"):
        return "mvapich2_smp" if layout.blocked else "mpich"
    return name


def _allgatherv(call: Call) -> str:
    total = sum(call.recv_counts or ()) * call.type_size
    name = ALLGATHERV.choose(call.size, total / call.size)
    return "ompi_bruck" if name == "mpich_rdb" and not is_power_of_two(call.size) else name


def _allreduce(call: Call) -> str:
    if call.count == 0:
        return "mvapich2_rs"
    name = ALLREDUCE.by_message(call)
    if name.endswith("*"):
        return f"mvapich2_two_level:{name[:-1]},reduce" if call.commutative else "rdb"
    return name


def _bcast(call: Call) -> str:
    if call.count == 0:
        return "mvapich2_intra_node"
    name = BCAST.by_message(call)
    return f"mvapich2_inter_node:{name[:-1]},mpich" if name.endswith("*") else name


def _reduce(call: Call) -> str:
    if call.count == 0:
        return "mvapich2_knomial"
    name = REDUCE.by_message(call)
    if name.endswith("*"):
        if not call.commutative:
            return "binomial"
        inside = REDUCE_INSIDE.by_message(call)
        return f"mvapich2_two_level:{name[:-1]},{inside}"
    if not call.commutative:
        return "binomial"
    few = call.count < floor_power_of_two(call.size)
    return "binomial" if name == "scatter_gather" and few else name


def _reduce_scatter(call: Call) -> str:
    counts = call.recv_counts or ()
    if call.commutative:
        return REDUCE_SCATTER.choose(call.size, sum(counts) * call.type_size)
    equal = all(n == counts[0] for n in counts)
    return "mpich_noncomm" if equal and is_power_of_two(call.size) else "mpich_rdb"


def _gather(call: Call) -> str:
    # SMPI assumes scattered ranks until the communicator has learned its nodes.
    if call.level not in call.ready or not call.layout.blocked:
        return "mpich"
    name = GATHER.by_message(call)
    if name == "mvapich2_two_level":
        return f"{name}:,{GATHER_INSIDE.by_message(call)}"
    return name


def _scatter(call: Call) -> str:
    layout = call.layout
    table, inside = SCATTER.get(layout.per_node, SCATTER[1])
    name = table.by_message(call)
    if name.startswith("mvapich2_two_level"):
        if not layout.blocked:
            return "ompi_binomial"
        return f"{name}:,{inside.by_message(call)}"
    return name


SELECTORS.add(
    Selector(
        "mvapich2",
        "MVAPICH2 1.9's tables for Stampede, as in SMPI",
        {
            "alltoall": _alltoall,
            "alltoallv": lambda call: "ompi_basic_linear" if call.in_place else "ring",
            "allgather": _allgather,
            "allgatherv": _allgatherv,
            "allreduce": _allreduce,
            "barrier": lambda call: "mvapich2_pair",
            "bcast": _bcast,
            "reduce": _reduce,
            "reduce_scatter": _reduce_scatter,
            "gather": _gather,
            "scatter": _scatter,
        },
        lambda call: call.op in ("allgather", "scatter") or (call.op == "bcast" and call.count > 0),
        nonblocking=SMPI,
    )
)
