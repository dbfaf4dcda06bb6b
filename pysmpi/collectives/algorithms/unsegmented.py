"""Trees for whole messages, and linear patterns: the defaults of Open MPI 5.

The fixed decisions name an algorithm and leave the segment size at 0. Trees and chains that are
known for pipelining therefore send every message as a whole.
"""

from __future__ import annotations

from pysmpi.collectives import trees
from pysmpi.collectives.algorithms.allgatherv import block_bytes, block_places
from pysmpi.collectives.algorithms.allreduce import ring_combine
from pysmpi.collectives.algorithms.bcast import knomial_tree
from pysmpi.collectives.algorithms.bcast_pipelined import down_tree, swap_halves
from pysmpi.collectives.algorithms.reduce import up_tree
from pysmpi.collectives.algorithms.reduce_scatter import scatter_result
from pysmpi.collectives.building import Builder
from pysmpi.collectives.call import Call
from pysmpi.collectives.patterns import blocks_of, byte_ends, others
from pysmpi.collectives.registry import algorithm


@algorithm("bcast", "chain", "chain from the root, whole message; P-1 steps of m")
def bcast_chain(s: Builder, c: Call) -> None:
    """Open MPI's chain and pipeline without segments."""
    down_tree(s, c, *trees.chains(c.rank, c.size, c.root, 1), max(1, c.count))


@algorithm("bcast", "binary", "binary tree from the root, whole message; log2 P levels")
def bcast_binary(s: Builder, c: Call) -> None:
    """Open MPI's binary tree without segments."""
    down_tree(s, c, *trees.kary(c.rank, c.size, c.root, 2), max(1, c.count))


@algorithm("bcast", "binomial", "binomial tree, nearest child first, whole message")
def bcast_binomial(s: Builder, c: Call) -> None:
    """Open MPI's binomial tree; a rank starts the sends to all children together."""
    down_tree(s, c, *trees.binomial(c.rank, c.size, c.root), max(1, c.count))


@algorithm("bcast", "knomial", "4-nomial tree, whole message; ceil(log4 P) steps of m")
def bcast_knomial(s: Builder, c: Call) -> None:
    """Open MPI's k-nomial tree with its default radix."""
    knomial_tree(s, c, 4)


@algorithm("bcast", "split_binary", "halves down the two subtrees, then exchanged; whole halves")
def bcast_split(s: Builder, c: Call) -> None:
    """Open MPI's split binary tree without segments; fewer than 2 elements: `chain`."""
    size, me = c.size, c.relative
    if c.count < 2:
        s.call("bcast", "chain")
        return
    first = (c.count + 1) // 2
    halves = (first * c.type_size, (c.count - first) * c.type_size)
    starts = (c.output, c.output + halves[0])
    parent, children = trees.kary(c.rank, size, c.root, 2)
    half = (me + 1) % 2
    if me == 0:
        for which, child in enumerate(children):
            s.send(child, halves[which], starts[which])
    else:
        s.recv(parent, halves[half], starts[half])
        for child in children:
            s.send(child, halves[half], starts[half])
    swap_halves(s, c, halves, starts)


@algorithm("reduce", "chain", "chain to the root, whole vector; P-1 steps of m")
def reduce_chain(s: Builder, c: Call) -> None:
    """Open MPI's chain and pipeline without segments."""
    up_tree(s, c, *trees.chains(c.rank, c.size, c.root, 1), c.count)


@algorithm("reduce", "binary", "binary tree to the root, whole vector; log2 P levels")
def reduce_binary(s: Builder, c: Call) -> None:
    """Open MPI's binary tree without segments."""
    up_tree(s, c, *trees.kary(c.rank, c.size, c.root, 2), c.count)


@algorithm("reduce", "in_order_binomial", "in-order binomial tree, whole vector; log2 P levels")
def reduce_binomial(s: Builder, c: Call) -> None:
    """Open MPI's binomial reduction without segments."""
    up_tree(s, c, *trees.in_order_binomial(c.rank, c.size, c.root), c.count)


@algorithm("allreduce", "linear", "linear reduce to rank 0, flat bcast", ordered=True)
def allreduce_linear(s: Builder, c: Call) -> None:
    """Open MPI coll/base."""
    s.call("reduce", "ompi_basic_linear", root=0)
    s.call("bcast", "flattree", root=0)


@algorithm("allreduce", "ring", "ring reduce-scatter, ring allgather; 2 (P-1) steps of m/P")
def allreduce_ring(s: Builder, c: Call) -> None:
    """Open MPI's ring, any count; fewer elements than ranks: `rdb`."""
    size = c.size
    if c.count < size:
        s.call("allreduce", "rdb")
        return
    sizes = [n * c.type_size for n in blocks_of(c.count, size)]
    begin = byte_ends(sizes, 1)
    places = [c.output + at for at in begin]
    right, left = (c.rank + 1) % size, (c.rank - 1) % size
    ring_combine(s, c, sizes, places)
    for k in range(size - 1):
        sent, got = (c.rank + 1 - k) % size, (c.rank - k) % size
        s.sendrecv(right, sizes[sent], left, sizes[got], places[sent], places[got])


@algorithm("reduce_scatter", "redscatterv", "the selection's reduce to rank 0, then scatterv")
def reduce_scatterv(s: Builder, c: Call) -> None:
    """Open MPI's non-overlapping reduce-scatter."""
    counts = c.recv_counts or ()
    s.call("reduce", root=0, count=sum(counts), output=c.input)
    scatter_result(s, c)


@algorithm("reduce_scatter_block", "redscatter", "the selection's reduce to rank 0, then scatter")
def reduce_scatter_blocks(s: Builder, c: Call) -> None:
    """Open MPI's linear reduce-scatter with equal blocks."""
    s.call("reduce", root=0, count=c.count * c.size, output=c.input)
    if c.rank == 0:
        s.move(c.nbytes, c.input, c.output)
    s.call("scatter", root=0)


def _as_reduce_scatter(name: str, summary: str, ordered: bool = True) -> None:
    @algorithm("reduce_scatter_block", name, summary, ordered=ordered)
    def build(s: Builder, c: Call) -> None:
        s.call("reduce_scatter", name, recv_counts=(c.count,) * c.size)


_as_reduce_scatter("mpich_rdb", "as reduce_scatter's: recursive doubling")
_as_reduce_scatter("mpich_pair", "as reduce_scatter's: each block to its owner", False)
_as_reduce_scatter("mpich_noncomm", "as reduce_scatter's: halves, blocks permuted")
_as_reduce_scatter(
    "ompi_basic_recursivehalving", "as reduce_scatter's: halves, farthest first", False
)
_as_reduce_scatter("ompi_butterfly", "as reduce_scatter's: halves, nearest first")


@algorithm("allgatherv", "neighbour_ring", "neighbour ring, forwards the last block; P-1 steps")
def allgatherv_ring(s: Builder, c: Call) -> None:
    """Open MPI's ring."""
    sizes, places = block_bytes(c), block_places(c)
    right, left = (c.rank + 1) % c.size, (c.rank - 1) % c.size
    for i in range(c.size - 1):
        sent, got = (c.rank - i) % c.size, (left - i) % c.size
        s.sendrecv(right, sizes[sent], left, sizes[got], places[sent], places[got])


@algorithm("gather", "linear_sync", "root asks each rank in turn; whole blocks")
def gather_linear_sync(s: Builder, c: Call) -> None:
    """As `ompi_linear_sync` without a first segment: an empty message closes each block."""
    if c.rank != c.root:
        s.recv(c.root, 0)
        s.send(c.root, c.nbytes, c.input)
        s.send(c.root, 0)
        return
    first = s.slots
    for peer in others(c.rank, c.size):
        arriving = s.irecv(peer, c.nbytes, c.output + peer * c.nbytes)
        s.send(peer, 0)
        s.irecv(peer, 0)
        s.wait(arriving)
    s.waitall(first, s.slots)
