"""Gather and scatter in two levels (MVAPICH2)."""

from __future__ import annotations

from typing import Any

from pysmpi.collectives.algorithms.allgather_nodes import by_node
from pysmpi.collectives.building import Builder
from pysmpi.collectives.call import Call
from pysmpi.collectives.registry import algorithm


def node_counts(c: Call) -> tuple[int, ...]:
    """The elements of all blocks of each node."""
    layout = c.layout
    return tuple(len(layout.local[leader]) * c.count for leader in layout.leaders)


@algorithm("gather", "mvapich2_two_level", "gather in nodes, linear among leaders, leader to root")
def gather_two_level(s: Builder, c: Call) -> None:
    """Inside nodes `mpich`'s gather unless chosen otherwise.

    Nodes of unequal sizes use gatherv among leaders.
    """
    s.prepare_nodes()
    if c.count == 0:
        return
    layout = c.layout
    home = layout.leader_index[c.root]
    counts = node_counts(c)
    own = counts[layout.leader_index[c.rank]]
    # Leaders have the blocks in the order of nodes.
    work = s.scratch()
    start = work + sum(counts[: layout.leader_index[c.rank]]) * c.type_size
    if c.leads:
        s.move(c.nbytes, c.input, start)
    s.on_node("gather", c.part(1, "mpich"), output=start)
    places: dict[str, Any] = {"root": home, "count": own, "input": start, "output": work}
    if layout.uniform:
        s.on_leaders("gather", "ompi_basic_linear", **places)
    else:
        s.on_leaders("gatherv", recv_counts=counts, **places)
    leader, nbytes = layout.leaders[home], c.nbytes * c.size
    if leader != c.root:
        if c.rank == leader:
            s.send(c.root, nbytes, work)
        elif c.rank == c.root:
            s.recv(leader, nbytes, by_node(c.output, c))
    elif c.rank == c.root:
        s.move(nbytes, work, by_node(c.output, c))


def scatter_two_level(s: Builder, c: Call, among_leaders: str) -> None:
    """Root to its leader, scatter among leaders, scatter inside nodes."""
    s.prepare_nodes()
    if c.count == 0:
        return
    layout = c.layout
    if len(layout.leaders) == 1:
        s.call("scatter", "ompi_basic_linear")
        return
    home = layout.leader_index[c.root]
    leader = layout.leaders[home]
    # Leaders have the blocks in the order of nodes, and those of their node in `node`.
    work, node, nbytes = s.scratch(), s.scratch(), c.nbytes * c.size
    if leader != c.root:
        if c.rank == leader:
            s.recv(c.root, nbytes, work)
        elif c.rank == c.root:
            s.send(leader, nbytes, by_node(c.input, c))
    elif c.rank == c.root:
        s.move(nbytes, by_node(c.input, c), work)
    counts = node_counts(c)
    own = counts[layout.leader_index[c.rank]]
    if c.rank == leader:
        s.move(own * c.type_size, work + sum(counts[:home]) * c.type_size, node)
    places: dict[str, Any] = {"root": home, "count": own, "input": work, "output": node}
    if layout.uniform:
        s.on_leaders("scatter", among_leaders, **places)
    else:
        s.on_leaders("scatterv", send_counts=counts, **places)
    if c.leads:
        s.move(c.nbytes, node, c.output)
    s.on_node("scatter", c.part(1, "mpich"), input=node)


@algorithm("scatter", "mvapich2_two_level_direct", "linear among leaders, mpich in nodes")
def scatter_direct(s: Builder, c: Call) -> None:
    """One node: linear. Nodes of unequal sizes use scatterv among leaders."""
    scatter_two_level(s, c, "ompi_basic_linear")


@algorithm("scatter", "mvapich2_two_level_binomial", "binomial among leaders, mpich in nodes")
def scatter_binomial(s: Builder, c: Call) -> None:
    """As `mvapich2_two_level_direct`, with a tree among leaders."""
    scatter_two_level(s, c, "ompi_binomial")
