"""The messages with which ranks learn the two-level structure of a communicator."""

from __future__ import annotations

from pysmpi.collectives.building import Builder
from pysmpi.collectives.call import Call
from pysmpi.collectives.registry import algorithm

INT = 4  # bytes


@algorithm("smp_setup", "default", "leaders' numbers to all, node sizes among leaders, agreement")
def learn_nodes(s: Builder, c: Call) -> None:
    """As in SMPI and MVAPICH2, at the first node-aware algorithm of a communicator.

    All ranks exchange the numbers of their leaders; the leaders compare the sizes of their nodes;
    each node gets the answer; all ranks agree whether the ranks of a node are consecutive.
    """
    one = {"count": 1, "type_size": INT, "output": s.scratch()}
    s.call("allgather", "ring", **one)
    s.on_leaders("allgather", "ring", **one)
    s.on_node("bcast", "scatter_LR_allgather", **one)
    s.call("allreduce", "default", commutative=True, root=0, **one)
