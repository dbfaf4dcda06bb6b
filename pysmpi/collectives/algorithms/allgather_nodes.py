"""Allgather in two levels. Nodes may hold different numbers of ranks, in any order."""

from __future__ import annotations

from pysmpi.collectives.call import Call
from pysmpi.collectives.registry import algorithm
from pysmpi.kernel.schedule import Schedule


def spread_in_node(s: Schedule, c: Call, local: tuple[int, ...]) -> None:
    """Each rank gives its block to the others of its node, nearest first."""
    n, i = len(local), local.index(c.rank)
    for k in range(1, n):
        s.sendrecv(local[(i + k) % n], c.nbytes, local[(i - k) % n], c.nbytes)


def node_bytes(c: Call) -> list[int]:
    """The bytes of all blocks of each node."""
    layout = c.layout
    return [len(layout.local[leader]) * c.nbytes for leader in layout.leaders]


@algorithm("allgather", "smp_simple", "in nodes, leaders all at once, leaders to their ranks")
def smp_simple(s: Schedule, c: Call) -> None:
    """The leader sends everything to each rank of its node (STAR-MPI)."""
    c.prepare_nodes(s)
    layout = c.layout
    local, me, leaders = layout.local[c.rank], layout.leader_index[c.rank], layout.leaders
    spread_in_node(s, c, local)
    if c.rank != local[0]:
        s.recv(local[0], c.nbytes * c.size)
        return
    sizes, n, first = node_bytes(c), len(leaders), s.slots
    for k in range(1, n):
        s.irecv(leaders[(me - k) % n], sizes[(me - k) % n])
    for k in range(1, n):
        s.isend(leaders[(me + k) % n], sizes[me])
    s.waitall(first, s.slots)
    for rank in local[1:]:
        s.send(rank, c.nbytes * c.size)


@algorithm("allgather", "SMP_NTS", "in nodes, ring of leaders, each node's blocks down a chain")
def smp_ring(s: Schedule, c: Call) -> None:
    """Node blocks go round and down the chain as they arrive (STAR-MPI). One node: `default`."""
    c.prepare_nodes(s)
    layout = c.layout
    local, me, leaders = layout.local[c.rank], layout.leader_index[c.rank], layout.leaders
    n = len(leaders)
    if n == 1:
        c.call(s, "allgather", "default")
        return
    spread_in_node(s, c, local)
    sizes = node_bytes(c)
    i = local.index(c.rank)
    below = local[i + 1] if i + 1 < len(local) else -1
    if i > 0:
        for k in range(n - 1):
            size = sizes[(me - k - 1) % n]
            s.recv(local[i - 1], size)
            if below >= 0:
                s.send(below, size)
        return
    left, right = leaders[(me - 1) % n], leaders[(me + 1) % n]
    received = s.slots
    for k in range(n - 1):
        s.irecv(left, sizes[(me - k - 1) % n])
    sent = s.slots
    s.isend(right, sizes[me])
    for k in range(n - 1):
        size = sizes[(me - k - 1) % n]
        s.wait(received + k)
        if k < n - 2:
            s.isend(right, size)
        if below >= 0:
            s.send(below, size)
    s.waitall(sent, s.slots)


@algorithm("allgather", "loosely_lr", "a ring for each local index, blocks shared in the node")
def loosely_coupled_rings(s: Schedule, c: Call) -> None:
    """STAR-MPI. Nodes of unequal sizes take `SMP_NTS`; SMPI aborts or uses one core a node."""
    c.prepare_nodes(s)
    layout = c.layout
    if not layout.uniform:
        c.call(s, "allgather", "SMP_NTS")
        return
    local, me, leaders = layout.local[c.rank], layout.leader_index[c.rank], layout.leaders
    i, n = local.index(c.rank), len(leaders)
    to = layout.local[leaders[(me + 1) % n]][i]
    source = layout.local[leaders[(me - 1) % n]][i]
    first = s.slots
    for step in range(n):
        arriving = -1
        for j, peer in enumerate(local):
            if j == i and step < n - 1:
                arriving = s.irecv(source, c.nbytes)
                s.isend(to, c.nbytes)
            elif j != i:
                s.irecv(peer, c.nbytes)
                s.isend(peer, c.nbytes)
        if arriving >= 0:
            s.wait(arriving)
    s.waitall(first, s.slots)


@algorithm("allgather", "mvapich2_smp", "gather in nodes, mpich among leaders, bcast in nodes")
def mvapich2(s: Schedule, c: Call) -> None:
    """The gather and the bcast are the selection's.

    SMPI aborts where nodes differ in size or their ranks are not consecutive.
    """
    c.prepare_nodes(s)
    if c.count == 0:
        return
    layout = c.layout
    local, leaders = layout.local[c.rank], layout.leaders
    c.on_node(s, "gather")
    if layout.uniform:
        c.on_leaders(s, "allgather", "mpich", count=c.count * len(local))
    else:
        counts = tuple(len(layout.local[leader]) * c.count for leader in leaders)
        c.on_leaders(s, "allgatherv", count=c.count * len(local), recv_counts=counts)
    c.on_node(s, "bcast", count=c.count * c.size)
