"""Reductions to a root: flat ones, and Open MPI's along trees."""

from __future__ import annotations

from pysmpi.collectives import trees
from pysmpi.collectives.building import Builder
from pysmpi.collectives.bulk import irecv_each
from pysmpi.collectives.call import Call
from pysmpi.collectives.patterns import byte_ends, others, segment_count, segments
from pysmpi.collectives.registry import algorithm


@algorithm(
    "reduce",
    "default",
    "all to the root at once, combined at the end; 1 step, (P-1) m",
    ordered=True,
)
def flat(s: Builder, c: Call) -> None:
    """The root posts all receives in rank order and combines once all have arrived.

    Operators that do not commute take `ompi_basic_linear`. SMPI's `default`.
    """
    if not c.commutative:
        basic_linear(s, c)
        return
    if c.rank != c.root:
        s.wait(s.isend(c.root, c.nbytes, c.output))
        return
    first, got, n = s.slots, s.scratch(), c.nbytes
    irecv_each(s, others(c.rank, c.size), n, got, n)
    s.waitall(first, s.slots)
    for peer in others(c.rank, c.size):
        s.reduce(n, c.output, got + peer * n, c.output)


@algorithm(
    "reduce",
    "ompi_basic_linear",
    "root receives P-1, P-2 ... 0 in turn; P-1 steps of m",
    ordered=True,
)
def basic_linear(s: Builder, c: Call) -> None:
    """In the order of decreasing ranks, so any operator may be used. Open MPI coll/base."""
    n, last = c.nbytes, c.size - 1
    if c.rank != c.root:
        s.send(c.root, n, c.output)
        return
    got = s.scratch()
    result = c.output if c.rank == last else s.scratch()
    for peer in range(last, -1, -1):
        if peer != c.rank:
            s.recv(peer, n, result if peer == last else got)
        if peer != last:
            s.reduce(n, c.output if peer == c.rank else got, result, result)
    if c.rank != last:
        s.move(n, result, c.output)


@algorithm(
    "reduce", "flat_tree", "root receives from one rank after another; P-1 steps of m", ordered=True
)
def flat_tree(s: Builder, c: Call) -> None:
    """The root takes the contributions from the last rank down to the first (STAR-MPI)."""
    basic_linear(s, c)


def up_tree(s: Builder, c: Call, parent: int, children: list[int], per_segment: int) -> None:
    """Combine segments up a tree with two receives in flight (Open MPI's generic reduction).

    An inner rank waits for the segment before the one just posted and combines it. It sends the
    segment on after it has received it from all children.
    """
    counts = segments(c.count, max(1, per_segment))
    sizes = [n * c.type_size for n in counts]
    if not sizes:
        return
    starts = [c.output + start for start in byte_ends(counts, c.type_size)]
    if not children:
        for size, start in zip(sizes, starts):
            s.send(parent, size, start)
        return
    # Incoming data alternates between two pieces of memory.
    arriving, arrived = s.scratch(), s.scratch()
    waiting = -1
    for i in range(len(sizes) + 1):
        for k, child in enumerate(children):
            posted = s.irecv(child, sizes[i], arriving) if i < len(sizes) else -1
            if waiting >= 0:
                s.wait(waiting)
            waiting = posted
            if k > 0:
                s.reduce(sizes[i], arrived, starts[i], starts[i])
            elif i > 0:
                s.reduce(sizes[i - 1], arrived, starts[i - 1], starts[i - 1])
                if parent >= 0:
                    s.send(parent, sizes[i - 1], starts[i - 1])
                if i == len(sizes):
                    break
            arriving, arrived = arrived, arriving


def segmented(s: Builder, c: Call, tree: tuple[int, list[int]], segment: int) -> None:
    """`up_tree` with segments of `segment` bytes (0: whole message)."""
    up_tree(s, c, *tree, segment_count(segment, c.type_size, c.count))


@algorithm("reduce", "ompi_chain", "P/2 chains under the root, 64 KiB segments")
def chain(s: Builder, c: Call) -> None:
    """With that many chains, each has two or three ranks. Open MPI."""
    segmented(s, c, trees.chains(c.rank, c.size, c.root, c.size // 2), 64 << 10)


@algorithm("reduce", "ompi_pipeline", "one chain to the root, segments of 1, 32 or 64 KiB")
def pipeline(s: Builder, c: Call) -> None:
    """The segment follows from lines fitted to P against the size. Open MPI."""
    m = c.nbytes
    if c.size > 0.0410 / 1024.0 * m + 9.7128:
        segment = 1 << 10
    elif c.size > 0.0033 / 1024.0 * m + 1.6761:
        segment = 32 << 10
    else:
        segment = 64 << 10
    segmented(s, c, trees.chains(c.rank, c.size, c.root, 1), segment)


@algorithm("reduce", "ompi_binary", "binary tree to the root, 32 KiB segments")
def binary(s: Builder, c: Call) -> None:
    """A complete binary tree counted from the root. Open MPI."""
    segmented(s, c, trees.kary(c.rank, c.size, c.root, 2), 32 << 10)


@algorithm("reduce", "ompi_binomial", "in-order binomial tree; 1 KiB segments where P is great")
def binomial(s: Builder, c: Call) -> None:
    """Segments of 1 KiB only if P is above a line fitted against the size. Open MPI."""
    m = c.nbytes
    segment = 0
    small = (c.size < 8 and m < 20480) or m < 2048 or c.count <= 1
    if not small and c.size > 0.6016 / 1024.0 * m + 1.3496:
        segment = 1 << 10
    segmented(s, c, trees.in_order_binomial(c.rank, c.size, c.root), segment)


@algorithm(
    "reduce",
    "ompi_in_order_binary",
    "in-order binary tree to rank P-1, then to the root",
    ordered=True,
)
def in_order_binary(s: Builder, c: Call) -> None:
    """Keeps the order of ranks for operators that do not commute; no segments. Open MPI."""
    segmented(s, c, trees.in_order_binary(c.rank, c.size), 0)
    last = c.size - 1
    if last != c.root:
        if c.rank == c.root:
            s.recv(last, c.nbytes, c.output)
        elif c.rank == last:
            s.send(c.root, c.nbytes, c.output)
