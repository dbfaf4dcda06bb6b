"""Prefix reductions."""

from __future__ import annotations

from pysmpi.collectives.building import NOTHING, Builder
from pysmpi.collectives.bulk import irecv_each, isend_each
from pysmpi.collectives.call import Call
from pysmpi.collectives.patterns import wheel
from pysmpi.collectives.registry import algorithm


@algorithm(
    "scan",
    "default",
    "each rank to all higher ones at once; 1 step, P-1 messages of m",
    ordered=True,
)
def scan_flat(s: Builder, c: Call) -> None:
    """Rank r gets the vectors of all lower ranks and combines them. SMPI has no other."""
    got, n = flat(s, c), c.nbytes
    # SMPI begins with rank 0; operators that do not commute must begin with the rank before.
    for peer in range(c.rank) if c.commutative else range(c.rank - 1, -1, -1):
        s.reduce(n, got + peer * n, c.output, c.output)


@algorithm(
    "exscan",
    "default",
    "each rank to all higher ones at once; 1 step, P-1 messages of m",
    ordered=True,
)
def exscan_flat(s: Builder, c: Call) -> None:
    """As `scan`, without the own vector. SMPI has no other."""
    got, n = flat(s, c), c.nbytes
    for peer in range(1, c.rank):
        s.reduce(n, got, got + peer * n, got)
    if c.rank:
        s.move(n, got, c.output)


def flat(s: Builder, c: Call) -> int:
    """Receive from every lower rank, send to every higher one; return the places of the vectors."""
    first, got = s.slots, s.scratch()
    ranks = wheel(c.size)
    irecv_each(s, ranks[: c.rank], c.nbytes, got, c.nbytes)
    isend_each(s, ranks[c.rank + 1 : c.size], c.nbytes, c.output)
    s.waitall(first, s.slots)
    return got


@algorithm("scan", "linear", "chain 0, 1, 2...; P-1 steps of m", ordered=True)
def scan_chain(s: Builder, c: Call) -> None:
    """Each rank combines the vector of the previous rank. Open MPI coll/base."""
    if c.rank > 0:
        got = s.scratch()
        s.recv(c.rank - 1, c.nbytes, got)
        s.reduce(c.nbytes, got, c.output, c.output)
    if c.rank + 1 < c.size:
        s.send(c.rank + 1, c.nbytes, c.output)


@algorithm("exscan", "linear", "chain 0, 1, 2...; P-1 steps of m", ordered=True)
def exscan_chain(s: Builder, c: Call) -> None:
    """As `scan`; the own vector only joins the vector that is sent on. Open MPI coll/base."""
    if c.rank == 0:
        s.send(1, c.nbytes, c.output)
        return
    before = s.scratch()
    s.recv(c.rank - 1, c.nbytes, before)
    if c.rank + 1 < c.size:
        s.reduce(c.nbytes, before, c.output, c.output)
        s.send(c.rank + 1, c.nbytes, c.output)
    s.move(c.nbytes, before, c.output)


def doubling(s: Builder, c: Call, own: bool) -> None:
    """Exchange with rank XOR 2^k; vectors of lower ranks also count for the result.

    `own`: whether the own vector belongs to the result.
    """
    n, result, partial, got = c.nbytes, c.output, s.scratch(), s.scratch()
    s.move(n, c.output, partial)
    empty = not own
    mask = 1
    while mask < c.size:
        peer = c.rank ^ mask
        if peer < c.size:
            s.sendrecv(peer, n, peer, n, partial, got)
            if peer > c.rank:
                s.reduce(n, partial, got, partial)
            else:
                s.reduce(n, got, partial, partial)
                if empty:
                    # Time passes as for any other combination.
                    s.reduce(n, NOTHING, NOTHING, NOTHING)
                    s.move(n, got, result)
                    empty = False
                else:
                    s.reduce(n, got, result, result)
        mask <<= 1


@algorithm(
    "scan",
    "recursive_doubling",
    "exchange with rank XOR 2^k; ceil(log2 P) steps of m",
    ordered=True,
)
def scan_doubling(s: Builder, c: Call) -> None:
    """MPICH's."""
    doubling(s, c, own=True)


@algorithm(
    "exscan",
    "recursive_doubling",
    "exchange with rank XOR 2^k; ceil(log2 P) steps of m",
    ordered=True,
)
def exscan_doubling(s: Builder, c: Call) -> None:
    """MPICH's."""
    doubling(s, c, own=False)
