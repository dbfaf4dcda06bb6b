"""Open MPI 4.1's fixed decisions, as SMPI carries them (selector `ompi`).

`ompi.table` has the decisions.
"""

from __future__ import annotations

from pysmpi.collectives.call import Call
from pysmpi.collectives.registry import Rules, selector
from pysmpi.collectives.selectors.nonblocking import SMPI
from pysmpi.collectives.selectors.tables import (
    by_message,
    by_order,
    by_ranks,
    library_tables,
    mean_block,
)

TABLES = library_tables("ompi")


def _reduce_scatter(call: Call) -> str:
    counts = call.recv_counts or ()
    if not call.commutative or 0 in counts:
        return "default"
    return TABLES["reduce_scatter"].choose(call.size, sum(counts) * call.type_size)


@selector("ompi", "Open MPI 4.1.2's fixed decisions, as in SMPI", nonblocking=SMPI)
def _rules() -> Rules:
    return {
        "allreduce": by_order(TABLES, "allreduce"),
        "alltoall": by_message(TABLES, "alltoall"),
        "alltoallv": by_ranks(TABLES, "alltoallv"),
        "barrier": by_ranks(TABLES, "barrier"),
        "bcast": by_message(TABLES, "bcast"),
        "reduce": by_order(TABLES, "reduce"),
        "reduce_scatter": _reduce_scatter,
        "allgather": by_message(TABLES, "allgather"),
        "allgatherv": lambda call: TABLES["allgatherv"].choose(call.size, mean_block(call)),
        "gather": by_message(TABLES, "gather"),
        "scatter": by_message(TABLES, "scatter"),
    }
