"""MVAPICH2 1.9's tables for Stampede, as SMPI carries them (selector `mvapich2`).

`mvapich2.table` has the tables; a second one has the algorithms inside nodes. If SMPI returns an
error (allgather of up to 1 KiB with 16 ranks on a node), pysmpi uses recursive doubling. Multicast
entries, which need hardware, are left out as in SMPI.
"""

from __future__ import annotations

from pysmpi.collectives.call import Call
from pysmpi.collectives.patterns import floor_power_of_two, is_power_of_two
from pysmpi.collectives.registry import Rules, selector
from pysmpi.collectives.selectors.nonblocking import SMPI
from pysmpi.collectives.selectors.tables import library_tables

TABLES = library_tables("mvapich2")
NODES = (1, 2, 16)  # ranks on a node for which allgather and scatter have tables


def _chosen(heading: str, call: Call) -> str:
    return TABLES[heading].choose(call.size, call.nbytes)


def _ranks_on_node(call: Call) -> int:
    return call.layout.per_node if call.layout.per_node in NODES else 1


def _alltoall(call: Call) -> str:
    return "ring" if call.in_place else _chosen("alltoall", call)


def _allgather(call: Call) -> str:
    name = _chosen(f"allgather/{_ranks_on_node(call)}", call)
    if name.endswith("*"):
        return "mvapich2_smp" if call.layout.blocked else "mpich"
    return name


def _allgatherv(call: Call) -> str:
    total = sum(call.recv_counts or ()) * call.type_size
    name = TABLES["allgatherv"].choose(call.size, total / call.size)
    return "ompi_bruck" if name == "mpich_rdb" and not is_power_of_two(call.size) else name


def _allreduce(call: Call) -> str:
    if call.count == 0:
        return "mvapich2_rs"
    name = _chosen("allreduce", call)
    if name.endswith("*"):
        return f"mvapich2_two_level:{name[:-1]},reduce" if call.commutative else "rdb"
    return name


def _bcast(call: Call) -> str:
    if call.count == 0:
        return "mvapich2_intra_node"
    name = _chosen("bcast", call)
    return f"mvapich2_inter_node:{name[:-1]},mpich" if name.endswith("*") else name


def _reduce(call: Call) -> str:
    if call.count == 0:
        return "mvapich2_knomial"
    name = _chosen("reduce", call)
    if name.endswith("*"):
        if not call.commutative:
            return "binomial"
        inside = _chosen("reduce inside", call)
        return f"mvapich2_two_level:{name[:-1]},{inside}"
    if not call.commutative:
        return "binomial"
    few = call.count < floor_power_of_two(call.size)
    return "binomial" if name == "scatter_gather" and few else name


def _reduce_scatter(call: Call) -> str:
    counts = call.recv_counts or ()
    if call.commutative:
        return TABLES["reduce_scatter"].choose(call.size, sum(counts) * call.type_size)
    equal = all(n == counts[0] for n in counts)
    return "mpich_noncomm" if equal and is_power_of_two(call.size) else "mpich_rdb"


def _gather(call: Call) -> str:
    # SMPI assumes scattered ranks until the communicator has learned its nodes.
    if call.level not in call.ready or not call.layout.blocked:
        return "mpich"
    name = _chosen("gather", call)
    if name == "mvapich2_two_level":
        return f"{name}:,{_chosen('gather inside', call)}"
    return name


def _scatter(call: Call) -> str:
    heading = f"scatter/{_ranks_on_node(call)}"
    name = _chosen(heading, call)
    if name.startswith("mvapich2_two_level"):
        if not call.layout.blocked:
            return "ompi_binomial"
        return f"{name}:,{_chosen(f'{heading} inside', call)}"
    return name


def _uses_nodes(call: Call) -> bool:
    return call.op in ("allgather", "scatter") or (call.op == "bcast" and call.count > 0)


@selector(
    "mvapich2",
    "MVAPICH2 1.9's tables for Stampede, as in SMPI",
    uses_nodes=_uses_nodes,
    nonblocking=SMPI,
)
def _rules() -> Rules:
    return {
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
    }
