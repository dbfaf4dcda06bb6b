"""Patterns of libraries for non-blocking reductions: all messages at once, or plain trees."""

from __future__ import annotations

from pysmpi.collectives.algorithms.reduce_scatter import counts_of, scatter_result
from pysmpi.collectives.building import Builder
from pysmpi.collectives.bulk import trade_each
from pysmpi.collectives.call import Call
from pysmpi.collectives.patterns import byte_ends, others
from pysmpi.collectives.registry import algorithm


@algorithm("allreduce", "flat", "each to each at once, combined at the end; 1 step, (P-1) m a rank")
def allreduce_flat(s: Builder, c: Call) -> None:
    """The pattern of SMPI's Iallreduce."""
    first, got, n = s.slots, s.scratch(), c.nbytes
    places = [got + rank * n for rank in range(c.size)]
    places[c.rank] = c.output
    trade_each(s, c.rank, others(c.rank, c.size), [n] * c.size, places)
    s.waitall(first, s.slots)
    for peer in others(c.rank, c.size):
        s.reduce(n, c.output, got + peer * n, c.output)


@algorithm(
    "allreduce",
    "binomial",
    "binomial reduce to rank 0 and bcast; 2 log2 P steps of m",
)
def allreduce_binomial(s: Builder, c: Call) -> None:
    """Open MPI's libnbc, for short vectors."""
    s.call("reduce", "binomial", root=0)
    s.call("bcast", "binomial_tree", root=0)


@algorithm("reduce_scatter", "flat", "each block to its owner, all at once; 1 step")
def reduce_scatter_flat(s: Builder, c: Call) -> None:
    """The pattern of SMPI's Ireduce_scatter."""
    sizes = [n * c.type_size for n in counts_of(c)]
    begin = byte_ends(sizes, 1)
    first, got, own = s.slots, s.scratch(), sizes[c.rank]
    for peer in others(c.rank, c.size):
        s.isend(peer, sizes[peer], c.input + begin[peer])
        s.irecv(peer, own, got + peer * own)
    s.waitall(first, s.slots)
    s.move(own, c.input + begin[c.rank], c.output)
    for peer in others(c.rank, c.size):
        s.reduce(own, c.output, got + peer * own, c.output)


@algorithm("reduce_scatter", "binomial", "binomial reduce to rank 0, flat scatterv")
def reduce_scatter_binomial(s: Builder, c: Call) -> None:
    """Open MPI's libnbc."""
    counts = counts_of(c)
    s.call("reduce", "binomial", root=0, count=sum(counts), output=c.input)
    scatter_result(s, c, "default")


def _with_equal_blocks(name: str, summary: str) -> None:
    @algorithm("reduce_scatter_block", name, summary)
    def build(s: Builder, c: Call) -> None:
        """As reduce_scatter with equal blocks."""
        s.call("reduce_scatter", name, recv_counts=(c.count,) * c.size)


_with_equal_blocks("flat", "as reduce_scatter's: each block to its owner, all at once")
_with_equal_blocks("binomial", "as reduce_scatter's: binomial reduce to rank 0, flat scatterv")
