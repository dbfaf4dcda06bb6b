"""Broadcasts in two levels: among the leaders of nodes, then inside nodes."""

from __future__ import annotations

from pysmpi.collectives.algorithms.bcast_pipelined import SEGMENT, to_rank_zero
from pysmpi.collectives.building import Builder
from pysmpi.collectives.call import Call
from pysmpi.collectives.registry import algorithm


@algorithm("bcast", "SMP_binomial", "binomial among leaders, binomial in nodes; root moved to 0")
def smp_binomial(s: Builder, c: Call) -> None:
    """STAR-MPI's, on the real nodes of ranks.

    SMPI takes node = rank / cores, and uses `mpich` if nodes differ in size.
    """
    s.prepare_nodes()
    to_rank_zero(s, c)
    s.on_leaders("bcast", "binomial_tree")
    s.on_node("bcast", "binomial_tree")


def pipelined(s: Builder, c: Call, parent: int, children: list[int]) -> None:
    """Send 8192-byte segments down a tree with blocking sends, receives posted first.

    A remainder smaller than a segment goes through the selection's broadcast.
    """
    to_rank_zero(s, c)
    per_segment = max(1, SEGMENT // c.type_size) if c.type_size else 1
    full, rest = divmod(c.count, per_segment)
    if c.count <= per_segment:
        if parent >= 0:
            s.recv(parent, c.nbytes, c.output)
        for child in children:
            s.send(child, c.nbytes, c.output)
        return
    size = per_segment * c.type_size
    first = s.slots
    if parent >= 0:
        for i in range(full):
            s.irecv(parent, size, c.output + i * size)
    for i in range(full):
        if parent >= 0 and children:
            s.wait(first + i)
        for child in children:
            s.send(child, size, c.output + i * size)
    if parent >= 0 and not children:
        s.waitall(first, s.slots)
    if rest:
        s.call("bcast", count=rest, output=c.output + full * size)


def line_position(c: Call) -> tuple[tuple[int, ...], int, int]:
    """(ranks of the node, own index among them, index of the node)."""
    local = c.layout.local[c.rank]
    return local, local.index(c.rank), c.layout.leader_index[c.rank]


@algorithm("bcast", "SMP_linear", "chain of leaders, chain in each node, 8 KiB segments")
def smp_linear(s: Builder, c: Call) -> None:
    """STAR-MPI's, on the real nodes of ranks. One node: `default`.

    SMPI also sends to the next rank if a node holds one rank, and fails then.
    """
    s.prepare_nodes()
    layout = c.layout
    leaders = layout.leaders
    local, i, node = line_position(c)
    if len(leaders) == 1:
        s.call("bcast", "default")
        return
    children = []
    if i == 0:
        parent = leaders[node - 1] if node else -1
        children = list(leaders[node + 1 : node + 2])
    else:
        parent = local[i - 1]
    children.extend(local[i + 1 : i + 2])
    pipelined(s, c, parent, children)


@algorithm("bcast", "SMP_binary", "binary tree of leaders and in each node, 8 KiB segments")
def smp_binary(s: Builder, c: Call) -> None:
    """STAR-MPI's, on the real nodes of ranks."""
    s.prepare_nodes()
    leaders = c.layout.leaders
    local, i, node = line_position(c)
    children = []
    if i == 0:
        parent = leaders[(node - 1) // 2] if node else -1
        children = list(leaders[2 * node + 1 : 2 * node + 3])
    else:
        parent = local[(i - 1) // 2]
    children.extend(local[2 * i + 1 : 2 * i + 3])
    pipelined(s, c, parent, children)


@algorithm("bcast", "mvapich2_inter_node", "root to its leader, leaders' bcast, bcast in nodes")
def inter_node(s: Builder, c: Call) -> None:
    """MVAPICH2's two-level broadcast. `mpich` at both levels unless chosen otherwise.

    SMPI's function of this name leaves the last level to its caller.
    """
    s.prepare_nodes()
    to_leaders(s, c, "mpich")
    s.on_node("bcast", c.part(1, "mpich"))


def to_leaders(s: Builder, c: Call, otherwise: str | None) -> None:
    """Bring the message to every leader, by the chosen algorithm or `otherwise`."""
    layout = c.layout
    home = layout.leader_index[c.root]
    leader = layout.leaders[home]
    if leader != c.root:
        if c.rank == leader:
            s.recv(c.root, c.nbytes, c.output)
        elif c.rank == c.root:
            s.send(leader, c.nbytes, c.output)
    s.on_leaders("bcast", c.part(0, otherwise), root=home)


@algorithm(
    "bcast",
    "mvapich2_intra_node",
    "binomial, scatter and ring, or two levels, by size; 4-nomial in nodes",
)
def intra_node(s: Builder, c: Call) -> None:
    """MVAPICH2's general broadcast.

    Two levels above 64 ranks, and for 16 KiB < m < 512 KiB; otherwise binomial up to 16 KiB and
    scatter with ring above.
    """
    if c.count == 0:
        return
    s.prepare_nodes()
    m = c.nbytes
    if c.size > 64 or 16384 < m < 512 * 1024:
        to_leaders(s, c, "mpich")
        small = m <= 131072
        s.on_node("bcast", "mpich" if small else "mvapich2_knomial_intra_node")
    elif m <= 16384:
        s.call("bcast", "binomial_tree")
    else:
        s.call("bcast", "scatter_LR_allgather")
