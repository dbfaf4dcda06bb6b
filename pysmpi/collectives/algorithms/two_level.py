"""Two levels of any algorithms: `two_level:LEADERS,NODE` names those of leaders and of nodes.

Without names the selection chooses at both levels, for the smaller groups. The groups are assumed
to exist: no messages are needed to find them.
"""

from __future__ import annotations

from pysmpi.collectives.algorithms.bcast_nodes import to_leaders
from pysmpi.collectives.algorithms.reduce_more import from_leaders
from pysmpi.collectives.building import Builder
from pysmpi.collectives.call import Call
from pysmpi.collectives.registry import algorithm


@algorithm("barrier", "two_level", "inside nodes, among leaders, release inside nodes")
def barrier(s: Builder, c: Call) -> None:
    """The release is a broadcast of one byte (MPICH)."""
    s.on_node("barrier", c.part(1, None))
    s.on_leaders("barrier", c.part(0, None))
    s.on_node("bcast", count=1, type_size=1, output=s.scratch())


@algorithm("bcast", "two_level", "root to its leader, among leaders, inside nodes")
def bcast(s: Builder, c: Call) -> None:
    """MPICH's composition for messages that leave the node."""
    to_leaders(s, c, None)
    s.on_node("bcast", c.part(1, None))


@algorithm("reduce", "two_level", "inside nodes, among leaders, leader to root")
def reduce(s: Builder, c: Call) -> None:
    """MPICH's composition; for commutative operators."""
    s.on_node("reduce", c.part(1, None))
    from_leaders(s, c, None)


@algorithm("allreduce", "two_level", "reduce in nodes, allreduce among leaders, bcast in nodes")
def allreduce(s: Builder, c: Call) -> None:
    """MPICH's composition; for commutative operators. NODE names the reduction."""
    s.on_node("reduce", c.part(1, None))
    s.on_leaders("allreduce", c.part(0, None))
    s.on_node("bcast")
