"""Broadcasts in two levels: among the leaders of nodes, then inside nodes."""

from __future__ import annotations

from pysmpi.collectives.algorithms.bcast_pipelined import SEGMENT, to_rank_zero
from pysmpi.collectives.call import Call
from pysmpi.collectives.registry import algorithm
from pysmpi.kernel.schedule import Schedule


@algorithm("bcast", "SMP_binomial", "binomial among leaders, binomial in nodes; root moved to 0")
def smp_binomial(s: Schedule, c: Call) -> None:
    """STAR-MPI's, on the nodes where ranks really are.

    SMPI takes node = rank / cores, and turns to `mpich` where nodes differ in size.
    """
    c.prepare_nodes(s)
    to_rank_zero(s, c)
    c.on_leaders(s, "bcast", "binomial_tree")
    c.on_node(s, "bcast", "binomial_tree")


def pipelined(s: Schedule, c: Call, parent: int, children: list[int]) -> None:
    """Send 8192-byte segments down a tree with blocking sends, receives posted first.

    A remainder smaller than a segment goes through the selection's broadcast.
    """
    to_rank_zero(s, c)
    per_segment = max(1, SEGMENT // c.type_size) if c.type_size else 1
    full, rest = divmod(c.count, per_segment)
    if c.count <= per_segment:
        if parent >= 0:
            s.recv(parent, c.nbytes)
        for child in children:
            s.send(child, c.nbytes)
        return
    size = per_segment * c.type_size
    first = s.slots
    if parent >= 0:
        for _ in range(full):
            s.irecv(parent, size)
    for i in range(full):
        if parent >= 0 and children:
            s.wait(first + i)
        for child in children:
            s.send(child, size)
    if parent >= 0 and not children:
        s.waitall(first, s.slots)
    if rest:
        c.call(s, "bcast", count=rest)


def line_position(c: Call) -> tuple[tuple[int, ...], int, int]:
    """(ranks of the node, own index among them, index of the node)."""
    local = c.layout.local[c.rank]
    return local, local.index(c.rank), c.layout.leader_index[c.rank]


@algorithm("bcast", "SMP_linear", "chain of leaders, chain in each node, 8 KiB segments")
def smp_linear(s: Schedule, c: Call) -> None:
    """STAR-MPI's, on the nodes where ranks really are. One node: `default`.

    SMPI sends to the next rank even where a node holds one, and fails there.
    """
    c.prepare_nodes(s)
    layout = c.layout
    leaders = layout.leaders
    local, i, node = line_position(c)
    if len(leaders) == 1:
        c.call(s, "bcast", "default")
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
def smp_binary(s: Schedule, c: Call) -> None:
    """STAR-MPI's, on the nodes where ranks really are."""
    c.prepare_nodes(s)
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
def inter_node(s: Schedule, c: Call) -> None:
    """MVAPICH2's two-level broadcast. `mpich` at both levels unless chosen otherwise.

    SMPI's function of this name leaves the last level to its caller.
    """
    c.prepare_nodes(s)
    to_leaders(s, c, "mpich")
    c.on_node(s, "bcast", c.part(1, "mpich"))


def to_leaders(s: Schedule, c: Call, otherwise: str | None) -> None:
    """Bring the message to every leader, by the chosen algorithm or `otherwise`."""
    layout = c.layout
    home = layout.leader_index[c.root]
    leader = layout.leaders[home]
    if leader != c.root:
        if c.rank == leader:
            s.recv(c.root, c.nbytes)
        elif c.rank == c.root:
            s.send(leader, c.nbytes)
    c.on_leaders(s, "bcast", c.part(0, otherwise), root=home)


@algorithm(
    "bcast",
    "mvapich2_intra_node",
    "binomial, scatter and ring, or two levels, by size; 4-nomial in nodes",
)
def intra_node(s: Schedule, c: Call) -> None:
    """MVAPICH2's general broadcast.

    Two levels above 64 ranks, and for 16 KiB < m < 512 KiB; otherwise binomial up to 16 KiB and
    scatter with ring above.
    """
    if c.count == 0:
        return
    c.prepare_nodes(s)
    m = c.nbytes
    if c.size > 64 or 16384 < m < 512 * 1024:
        to_leaders(s, c, "mpich")
        small = m <= 131072
        c.on_node(s, "bcast", "mpich" if small else "mvapich2_knomial_intra_node")
    elif m <= 16384:
        c.call(s, "bcast", "binomial_tree")
    else:
        c.call(s, "bcast", "scatter_LR_allgather")
