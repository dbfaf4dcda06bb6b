"""Allgather in two levels. Nodes may hold different numbers of ranks, in any order."""

from __future__ import annotations

from pysmpi.collectives.building import Builder
from pysmpi.collectives.call import Call
from pysmpi.collectives.patterns import of_ranks
from pysmpi.collectives.registry import algorithm
from pysmpi.kernel.schedule import Place


def spread_in_node(s: Builder, c: Call, local: tuple[int, ...]) -> None:
    """Each rank gives its block to the others of its node, nearest first."""
    n, i = len(local), local.index(c.rank)
    own = c.output + c.rank * c.nbytes
    for k in range(1, n):
        source = local[(i - k) % n]
        into = c.output + source * c.nbytes
        s.sendrecv(local[(i + k) % n], c.nbytes, source, c.nbytes, own, into)


def node_bytes(c: Call) -> list[int]:
    """The bytes of all blocks of each node."""
    layout = c.layout
    return [len(layout.local[leader]) * c.nbytes for leader in layout.leaders]


def node_places(c: Call) -> list[Place]:
    """The places of each node's blocks among those of all ranks."""
    layout = c.layout
    return [of_ranks(c.output, layout.local[leader], c.nbytes) for leader in layout.leaders]


def by_node(base: int, c: Call) -> Place:
    """The places of the blocks of all ranks in the order of nodes."""
    layout = c.layout
    if layout.blocked:
        return base
    return lambda: [
        (base + rank * c.nbytes, c.nbytes)
        for leader in layout.leaders
        for rank in layout.local[leader]
    ]


@algorithm("allgather", "smp_simple", "in nodes, leaders all at once, leaders to their ranks")
def smp_simple(s: Builder, c: Call) -> None:
    """The leader sends everything to each rank of its node (STAR-MPI)."""
    s.prepare_nodes()
    layout = c.layout
    local, me, leaders = layout.local[c.rank], layout.leader_index[c.rank], layout.leaders
    spread_in_node(s, c, local)
    if c.rank != local[0]:
        s.recv(local[0], c.nbytes * c.size, c.output)
        return
    sizes, places, n, first = node_bytes(c), node_places(c), len(leaders), s.slots
    for k in range(1, n):
        other = (me - k) % n
        s.irecv(leaders[other], sizes[other], places[other])
    for k in range(1, n):
        s.isend(leaders[(me + k) % n], sizes[me], places[me])
    s.waitall(first, s.slots)
    for rank in local[1:]:
        s.send(rank, c.nbytes * c.size, c.output)


@algorithm("allgather", "SMP_NTS", "in nodes, ring of leaders, each node's blocks down a chain")
def smp_ring(s: Builder, c: Call) -> None:
    """Node blocks go round and down the chain as they arrive (STAR-MPI). One node: `default`."""
    s.prepare_nodes()
    layout = c.layout
    local, me, leaders = layout.local[c.rank], layout.leader_index[c.rank], layout.leaders
    n = len(leaders)
    if n == 1:
        s.call("allgather", "default")
        return
    spread_in_node(s, c, local)
    sizes, places = node_bytes(c), node_places(c)
    i = local.index(c.rank)
    below = local[i + 1] if i + 1 < len(local) else -1
    if i > 0:
        for k in range(n - 1):
            node = (me - k - 1) % n
            s.recv(local[i - 1], sizes[node], places[node])
            if below >= 0:
                s.send(below, sizes[node], places[node])
        return
    left, right = leaders[(me - 1) % n], leaders[(me + 1) % n]
    received = s.slots
    for k in range(n - 1):
        s.irecv(left, sizes[(me - k - 1) % n], places[(me - k - 1) % n])
    sent = s.slots
    s.isend(right, sizes[me], places[me])
    for k in range(n - 1):
        node = (me - k - 1) % n
        s.wait(received + k)
        if k < n - 2:
            s.isend(right, sizes[node], places[node])
        if below >= 0:
            s.send(below, sizes[node], places[node])
    s.waitall(sent, s.slots)


@algorithm("allgather", "loosely_lr", "a ring for each local index, blocks shared in the node")
def loosely_coupled_rings(s: Builder, c: Call) -> None:
    """STAR-MPI. Nodes of unequal sizes take `SMP_NTS`; SMPI aborts or uses one core a node."""
    s.prepare_nodes()
    layout = c.layout
    if not layout.uniform:
        s.call("allgather", "SMP_NTS")
        return
    local, me, leaders = layout.local[c.rank], layout.leader_index[c.rank], layout.leaders
    i, n = local.index(c.rank), len(leaders)
    to = layout.local[leaders[(me + 1) % n]][i]
    source = layout.local[leaders[(me - 1) % n]][i]
    first, nbytes = s.slots, c.nbytes
    for step in range(n):
        arriving = -1
        # Each rank of the node has the block of one rank of that node from the step before.
        here = layout.local[leaders[(me - step) % n]]
        mine = c.output + here[i] * nbytes
        for j, peer in enumerate(local):
            if j == i and step < n - 1:
                next_one = layout.local[leaders[(me - step - 1) % n]][i]
                arriving = s.irecv(source, nbytes, c.output + next_one * nbytes)
                s.isend(to, nbytes, mine)
            elif j != i:
                s.irecv(peer, nbytes, c.output + here[j] * nbytes)
                s.isend(peer, nbytes, mine)
        if arriving >= 0:
            s.wait(arriving)
    s.waitall(first, s.slots)


@algorithm("allgather", "mvapich2_smp", "gather in nodes, mpich among leaders, bcast in nodes")
def mvapich2(s: Builder, c: Call) -> None:
    """The selection chooses the gather and the bcast.

    SMPI aborts if nodes differ in size or their ranks are not consecutive.
    """
    s.prepare_nodes()
    if c.count == 0:
        return
    layout = c.layout
    local, leaders = layout.local[c.rank], layout.leaders
    counts = tuple(len(layout.local[leader]) * c.count for leader in leaders)
    # Leaders have the blocks in the order of nodes.
    work, own = s.scratch(), c.output + c.rank * c.nbytes
    start = work + sum(counts[: layout.leader_index[c.rank]]) * c.type_size
    if c.leads:
        s.move(c.nbytes, own, start)
    s.on_node("gather", input=own, output=start)
    if layout.uniform:
        s.on_leaders("allgather", "mpich", count=c.count * len(local), output=work)
    else:
        s.on_leaders("allgatherv", count=c.count * len(local), recv_counts=counts, output=work)
    if c.leads:
        s.move(c.size * c.nbytes, work, by_node(c.output, c))
    s.on_node("bcast", count=c.count * c.size)
