"""Gather and scatter with equal blocks, and their v forms."""

from __future__ import annotations

from pysmpi.collectives import trees
from pysmpi.collectives.building import Builder
from pysmpi.collectives.bulk import irecv_each, isend_each
from pysmpi.collectives.call import Call
from pysmpi.collectives.patterns import around, others, segment_count
from pysmpi.collectives.registry import algorithm
from pysmpi.kernel.schedule import Place


@algorithm("gather", "default", "all to the root at once; 1 step, (P-1) blocks into the root")
def gather_flat(s: Builder, c: Call) -> None:
    """The root posts all receives in rank order. SMPI's `default`."""
    first = s.slots
    if c.rank != c.root:
        s.isend(c.root, c.nbytes, c.input)
    else:
        irecv_each(s, others(c.rank, c.size), c.nbytes, c.output, c.nbytes)
    s.waitall(first, s.slots)


@algorithm("gather", "ompi_basic_linear", "root receives 0, 1 ... P-1 in turn; P-1 steps")
def gather_linear(s: Builder, c: Call) -> None:
    """Blocking receives in rank order. Open MPI coll/base."""
    if c.rank != c.root:
        s.send(c.root, c.nbytes, c.input)
        return
    for peer in others(c.rank, c.size):
        s.recv(peer, c.nbytes, c.output + peer * c.nbytes)


@algorithm("gather", "ompi_binomial", "in-order binomial tree; ceil(log2 P) steps, growing blocks")
def gather_binomial(s: Builder, c: Call) -> None:
    """Each rank collects its subtree's blocks, then sends them in one message. Open MPI."""
    parent, children = trees.in_order_binomial(c.rank, c.size, c.root)
    n, work = c.nbytes, c.input
    if parent >= 0 and children:
        work = s.scratch()
        s.move(n, c.input, work)
    for child in children:
        blocks = subtree(child, c)
        s.recv(child, blocks * n, subtree_place(c, parent < 0, c.output, work, child, blocks))
    if parent >= 0:
        s.send(parent, subtree(c.rank, c) * n, work)


def subtree_place(
    c: Call, at_root: bool, all_blocks: int, work: int, child: int, blocks: int
) -> Place:
    """The place of the blocks of a child's subtree: the root has them with all others.

    Other ranks have those of their own subtree in `work`, which begins with the own block.
    """
    if at_root:
        return around(all_blocks, child, blocks, c.size, c.nbytes)
    return work + (child - c.rank) % c.size * c.nbytes


def subtree(rank: int, c: Call) -> int:
    """The size of the subtree of `rank` in the in-order binomial tree, including `rank`."""
    v = (rank - c.root) % c.size
    return min(v & -v, c.size - v) if v else c.size


@algorithm(
    "gather", "ompi_linear_sync", "root asks each rank in turn; a first segment, then the rest"
)
def gather_linear_sync(s: Builder, c: Call) -> None:
    """The root signals a rank when its receives are posted, so no message is unexpected.

    The first segment is 1 KiB, 32 KiB for blocks above 90 KiB. Open MPI coll/base.
    """
    segment = 32768 if c.nbytes > 92160 else 1024
    head = segment_count(segment, c.type_size, c.count) * c.type_size
    tail = c.nbytes - head
    if c.rank != c.root:
        s.recv(c.root, 0)
        s.send(c.root, head, c.input)
        s.send(c.root, tail, c.input + head)
        return
    first = s.slots
    for peer in others(c.rank, c.size):
        place = c.output + peer * c.nbytes
        arriving = s.irecv(peer, head, place)
        s.send(peer, 0)
        s.irecv(peer, tail, place + head)
        s.wait(arriving)
    s.waitall(first, s.slots)


@algorithm("gatherv", "default", "all to the root at once; 1 step")
def gatherv_flat(s: Builder, c: Call) -> None:
    """The root posts all receives in rank order. SMPI has no other."""
    first = s.slots
    if c.rank != c.root:
        s.isend(c.root, c.nbytes, c.input)
    else:
        place = c.output
        for peer, count in enumerate(c.recv_counts or ()):
            if peer != c.rank:
                s.irecv(peer, count * c.type_size, place)
            place += count * c.type_size
    s.waitall(first, s.slots)


@algorithm("scatter", "default", "root to all at once; 1 step, (P-1) blocks out of the root")
def scatter_flat(s: Builder, c: Call) -> None:
    """The root starts all sends in rank order. SMPI's `default`."""
    first = s.slots
    if c.rank != c.root:
        s.irecv(c.root, c.nbytes, c.output)
    else:
        isend_each(s, others(c.rank, c.size), c.nbytes, c.input, c.nbytes)
    s.waitall(first, s.slots)


@algorithm("scatter", "ompi_basic_linear", "root to 0, 1 ... P-1 in turn; P-1 steps")
def scatter_linear(s: Builder, c: Call) -> None:
    """Blocking sends in rank order. Open MPI coll/base."""
    if c.rank != c.root:
        s.recv(c.root, c.nbytes, c.output)
        return
    for peer in others(c.rank, c.size):
        s.send(peer, c.nbytes, c.input + peer * c.nbytes)


@algorithm("scatter", "ompi_linear_nb", "root to all, sends started in order; 1 step")
def scatter_linear_nb(s: Builder, c: Call) -> None:
    """Non-blocking sends in rank order. Open MPI coll/base."""
    scatter_flat(s, c)


@algorithm("scatter", "ompi_binomial", "in-order binomial tree; ceil(log2 P) steps, halving blocks")
def scatter_binomial(s: Builder, c: Call) -> None:
    """Each rank receives its subtree's blocks in one message, then sends parts on. Open MPI."""
    parent, children = trees.in_order_binomial(c.rank, c.size, c.root)
    n, work = c.nbytes, c.output
    if parent >= 0:
        if children:
            work = s.scratch()
        s.recv(parent, subtree(c.rank, c) * n, work)
    for child in children:
        blocks = subtree(child, c)
        s.send(child, blocks * n, subtree_place(c, parent < 0, c.input, work, child, blocks))
    if parent >= 0:
        s.move(n, work, c.output)


@algorithm("scatterv", "default", "root to all at once; 1 step")
def scatterv_flat(s: Builder, c: Call) -> None:
    """The root starts all sends in rank order. SMPI has no other."""
    first = s.slots
    if c.rank != c.root:
        s.irecv(c.root, c.nbytes, c.output)
    else:
        place = c.input
        for peer, count in enumerate(c.send_counts or ()):
            if peer != c.rank:
                s.isend(peer, count * c.type_size, place)
            place += count * c.type_size
    s.waitall(first, s.slots)
