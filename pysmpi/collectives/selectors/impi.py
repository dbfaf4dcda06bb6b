"""Intel MPI 4.1.3's tables for Stampede, as SMPI carries them (selector `impi`).

The tables in `impi.table` depend on the number of ranks on a node (1, 2, 4, 8 or 16; others and
unequal nodes count as 1), then on the number of ranks, then on bytes.
"""

from __future__ import annotations

from collections.abc import Callable

from pysmpi.collectives.call import Call
from pysmpi.collectives.registry import Rule, Rules, selector
from pysmpi.collectives.selectors.nonblocking import SMPI
from pysmpi.collectives.selectors.tables import library_tables

TABLES = library_tables("impi")
NODES = (1, 2, 4, 8, 16)  # ranks on a node


def _message(call: Call) -> float:
    return call.nbytes


def _all_blocks(call: Call) -> float:
    return sum(call.recv_counts or ()) * call.type_size


def _one(call: Call) -> float:
    return 1


SIZES: dict[str, Callable[[Call], float]] = {
    "allreduce": _message,
    "alltoall": _message,
    "alltoallv": _one,
    "barrier": _one,
    "bcast": _message,
    "reduce": _message,
    "reduce_scatter": _all_blocks,
    "allgather": _message,
    "allgatherv": _all_blocks,
    "gather": _message,
    "scatter": _message,
}


def _rule(op: str, size: Callable[[Call], float]) -> Rule:
    def choose(call: Call) -> str:
        node = call.layout.per_node
        table = TABLES[f"{op}/{node if node in NODES else 1}"]
        name = table.choose(call.size, size(call))
        if name == "halving":
            return "ompi_basic_recursivehalving" if call.commutative else "mvapich2"
        return name

    return choose


@selector(
    "impi",
    "Intel MPI 4.1.3's tables for Stampede, as in SMPI",
    uses_nodes=lambda call: call.op in SIZES,
    nonblocking=SMPI,
)
def _rules() -> Rules:
    return {op: _rule(op, size) for op, size in SIZES.items()}
