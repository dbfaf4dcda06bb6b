"""Gather and scatter in two levels (MVAPICH2)."""

from __future__ import annotations

from pysmpi.collectives.call import Call
from pysmpi.collectives.registry import algorithm
from pysmpi.kernel.schedule import Schedule


def node_counts(c: Call) -> tuple[int, ...]:
    """The elements of all blocks of each node."""
    layout = c.layout
    return tuple(len(layout.local[leader]) * c.count for leader in layout.leaders)


@algorithm("gather", "mvapich2_two_level", "gather in nodes, linear among leaders, leader to root")
def gather_two_level(s: Schedule, c: Call) -> None:
    """Inside nodes `mpich`'s gather unless chosen otherwise.

    Nodes of unequal sizes use gatherv among leaders.
    """
    c.prepare_nodes(s)
    if c.count == 0:
        return
    layout = c.layout
    home = layout.leader_index[c.root]
    counts = node_counts(c)
    own = counts[layout.leader_index[c.rank]]
    c.on_node(s, "gather", c.part(1, "mpich"))
    if layout.uniform:
        c.on_leaders(s, "gather", "ompi_basic_linear", root=home, count=own)
    else:
        c.on_leaders(s, "gatherv", root=home, count=own, recv_counts=counts)
    leader = layout.leaders[home]
    if leader != c.root:
        if c.rank == leader:
            s.send(c.root, c.nbytes * c.size)
        elif c.rank == c.root:
            s.recv(leader, c.nbytes * c.size)


def scatter_two_level(s: Schedule, c: Call, among_leaders: str) -> None:
    """Root to its leader, scatter among leaders, scatter inside nodes."""
    c.prepare_nodes(s)
    if c.count == 0:
        return
    layout = c.layout
    if len(layout.leaders) == 1:
        c.call(s, "scatter", "ompi_basic_linear")
        return
    home = layout.leader_index[c.root]
    leader = layout.leaders[home]
    if leader != c.root:
        if c.rank == leader:
            s.recv(c.root, c.nbytes * c.size)
        elif c.rank == c.root:
            s.send(leader, c.nbytes * c.size)
    counts = node_counts(c)
    own = counts[layout.leader_index[c.rank]]
    if layout.uniform:
        c.on_leaders(s, "scatter", among_leaders, root=home, count=own)
    else:
        c.on_leaders(s, "scatterv", root=home, count=own, send_counts=counts)
    c.on_node(s, "scatter", c.part(1, "mpich"))


@algorithm("scatter", "mvapich2_two_level_direct", "linear among leaders, mpich in nodes")
def scatter_direct(s: Schedule, c: Call) -> None:
    """One node: linear. Nodes of unequal sizes use scatterv among leaders."""
    scatter_two_level(s, c, "ompi_basic_linear")


@algorithm("scatter", "mvapich2_two_level_binomial", "binomial among leaders, mpich in nodes")
def scatter_binomial(s: Schedule, c: Call) -> None:
    """As `mvapich2_two_level_direct`, with a tree among leaders."""
    scatter_two_level(s, c, "ompi_binomial")
