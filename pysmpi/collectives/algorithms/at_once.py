"""Patterns that libraries use for non-blocking reductions: everything at once, or plain trees."""

from __future__ import annotations

from pysmpi.collectives.algorithms.reduce_scatter import counts_of
from pysmpi.collectives.call import Call
from pysmpi.collectives.patterns import after, byte_ends, irecv_each, isend_each, others
from pysmpi.collectives.registry import algorithm
from pysmpi.kernel.schedule import Schedule


@algorithm("allreduce", "flat", "each to each at once, combined at the end; 1 step, (P-1) m a rank")
def allreduce_flat(s: Schedule, c: Call) -> None:
    """What SMPI's Iallreduce does."""
    first = s.slots
    irecv_each(s, others(c.rank, c.size), c.nbytes)
    isend_each(s, others(c.rank, c.size), c.nbytes)
    s.waitall(first, s.slots)
    for _ in range(c.size - 1):
        s.reduce(c.nbytes)


@algorithm("allreduce", "binomial", "binomial reduce to rank 0 and bcast; 2 log2 P steps of m")
def allreduce_binomial(s: Schedule, c: Call) -> None:
    """Open MPI's libnbc, for short vectors."""
    c.call(s, "reduce", "binomial", root=0)
    c.call(s, "bcast", "binomial_tree", root=0)


@algorithm("reduce_scatter", "flat", "each block to its owner, all at once; 1 step")
def reduce_scatter_flat(s: Schedule, c: Call) -> None:
    """What SMPI's Ireduce_scatter does."""
    sizes = [n * c.type_size for n in counts_of(c)]
    begin = byte_ends(sizes, 1)
    first = s.slots
    c.carries(s, 0, begin[c.rank])
    irecv_each(s, others(c.rank, c.size), sizes[c.rank])
    for peer in after(c.rank, c.size):
        c.carries(s, begin[peer], begin[c.rank])
        s.isend(peer, sizes[peer])
    s.waitall(first, s.slots)
    for _ in range(c.size - 1):
        s.reduce(sizes[c.rank])


@algorithm("reduce_scatter", "binomial", "binomial reduce to rank 0, flat scatterv")
def reduce_scatter_binomial(s: Schedule, c: Call) -> None:
    """Open MPI's libnbc."""
    counts = counts_of(c)
    c.call(s, "reduce", "binomial", root=0, count=sum(counts))
    c.call(s, "scatterv", "default", root=0, count=counts[c.rank], send_counts=c.recv_counts)


def _with_equal_blocks(name: str, summary: str) -> None:
    @algorithm("reduce_scatter_block", name, summary)
    def build(s: Schedule, c: Call) -> None:
        """As reduce_scatter with equal blocks."""
        c.call(s, "reduce_scatter", name, recv_counts=(c.count,) * c.size)


_with_equal_blocks("flat", "as reduce_scatter's: each block to its owner, all at once")
_with_equal_blocks("binomial", "as reduce_scatter's: binomial reduce to rank 0, flat scatterv")
