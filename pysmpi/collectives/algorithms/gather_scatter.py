"""Gather and scatter with equal blocks, and their v forms."""

from __future__ import annotations

from pysmpi.collectives import trees
from pysmpi.collectives.call import Call
from pysmpi.collectives.patterns import irecv_each, isend_each, others, segment_count
from pysmpi.collectives.registry import algorithm
from pysmpi.kernel.schedule import Schedule


@algorithm("gather", "default", "all to the root at once; 1 step, (P-1) blocks into the root")
def gather_flat(s: Schedule, c: Call) -> None:
    """The root posts all receives in rank order. SMPI's `default`."""
    first = s.slots
    if c.rank != c.root:
        s.isend(c.root, c.nbytes)
    else:
        irecv_each(s, others(c.rank, c.size), c.nbytes)
    s.waitall(first, s.slots)


@algorithm("gather", "ompi_basic_linear", "root receives 0, 1 ... P-1 in turn; P-1 steps")
def gather_linear(s: Schedule, c: Call) -> None:
    """Blocking receives in rank order. Open MPI coll/base."""
    if c.rank != c.root:
        s.send(c.root, c.nbytes)
        return
    for peer in others(c.rank, c.size):
        s.recv(peer, c.nbytes)


@algorithm("gather", "ompi_binomial", "in-order binomial tree; ceil(log2 P) steps, growing blocks")
def gather_binomial(s: Schedule, c: Call) -> None:
    """Each rank collects its subtree's blocks, then sends them in one message. Open MPI."""
    parent, children = trees.in_order_binomial(c.rank, c.size, c.root)
    for child in children:
        s.recv(child, subtree(child, c) * c.nbytes)
    if parent >= 0:
        s.send(parent, subtree(c.rank, c) * c.nbytes)


def subtree(rank: int, c: Call) -> int:
    """How many ranks hang under `rank` in the in-order binomial tree, itself included."""
    v = (rank - c.root) % c.size
    return min(v & -v, c.size - v) if v else c.size


@algorithm(
    "gather", "ompi_linear_sync", "root asks each rank in turn; a first segment, then the rest"
)
def gather_linear_sync(s: Schedule, c: Call) -> None:
    """The root lets a rank send when it has posted its receives, so nothing is unexpected.

    The first segment is 1 KiB, 32 KiB for blocks above 90 KiB. Open MPI coll/base.
    """
    segment = 32768 if c.nbytes > 92160 else 1024
    head = segment_count(segment, c.type_size, c.count) * c.type_size
    tail = c.nbytes - head
    if c.rank != c.root:
        s.recv(c.root, 0)
        s.send(c.root, head)
        s.send(c.root, tail)
        return
    first = s.slots
    for peer in others(c.rank, c.size):
        arriving = s.irecv(peer, head)
        s.send(peer, 0)
        s.irecv(peer, tail)
        s.wait(arriving)
    s.waitall(first, s.slots)


@algorithm("gatherv", "default", "all to the root at once; 1 step")
def gatherv_flat(s: Schedule, c: Call) -> None:
    """The root posts all receives in rank order. SMPI has no other."""
    first = s.slots
    if c.rank != c.root:
        s.isend(c.root, c.nbytes)
    else:
        counts = c.recv_counts or ()
        for peer in others(c.rank, c.size):
            s.irecv(peer, counts[peer] * c.type_size)
    s.waitall(first, s.slots)


@algorithm("scatter", "default", "root to all at once; 1 step, (P-1) blocks out of the root")
def scatter_flat(s: Schedule, c: Call) -> None:
    """The root starts all sends in rank order. SMPI's `default`."""
    first = s.slots
    if c.rank != c.root:
        s.irecv(c.root, c.nbytes)
    else:
        isend_each(s, others(c.rank, c.size), c.nbytes)
    s.waitall(first, s.slots)


@algorithm("scatter", "ompi_basic_linear", "root to 0, 1 ... P-1 in turn; P-1 steps")
def scatter_linear(s: Schedule, c: Call) -> None:
    """Blocking sends in rank order. Open MPI coll/base."""
    if c.rank != c.root:
        s.recv(c.root, c.nbytes)
        return
    for peer in others(c.rank, c.size):
        s.send(peer, c.nbytes)


@algorithm("scatter", "ompi_linear_nb", "root to all, sends started in order; 1 step")
def scatter_linear_nb(s: Schedule, c: Call) -> None:
    """Non-blocking sends in rank order. Open MPI coll/base."""
    scatter_flat(s, c)


@algorithm("scatter", "ompi_binomial", "in-order binomial tree; ceil(log2 P) steps, halving blocks")
def scatter_binomial(s: Schedule, c: Call) -> None:
    """Each rank receives its subtree's blocks in one message, then hands parts on. Open MPI."""
    parent, children = trees.in_order_binomial(c.rank, c.size, c.root)
    if parent >= 0:
        s.recv(parent, subtree(c.rank, c) * c.nbytes)
    for child in children:
        s.send(child, subtree(child, c) * c.nbytes)


@algorithm("scatterv", "default", "root to all at once; 1 step")
def scatterv_flat(s: Schedule, c: Call) -> None:
    """The root starts all sends in rank order. SMPI has no other."""
    first = s.slots
    if c.rank != c.root:
        s.irecv(c.root, c.nbytes)
    else:
        counts = c.send_counts or ()
        for peer in others(c.rank, c.size):
            s.isend(peer, counts[peer] * c.type_size)
    s.waitall(first, s.slots)
