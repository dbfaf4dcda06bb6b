"""Prefix reductions."""

from __future__ import annotations

from pysmpi.collectives.call import Call
from pysmpi.collectives.patterns import irecv_each, isend_each, wheel
from pysmpi.collectives.registry import algorithm
from pysmpi.kernel.schedule import Schedule


@algorithm("scan", "default", "each rank to all higher ones at once; 1 step, P-1 messages of m")
def scan_flat(s: Schedule, c: Call) -> None:
    """Rank r gets the vectors of all lower ranks and combines them. SMPI has no other."""
    flat(s, c)
    for _ in range(c.rank):
        s.reduce(c.nbytes)


@algorithm("exscan", "default", "each rank to all higher ones at once; 1 step, P-1 messages of m")
def exscan_flat(s: Schedule, c: Call) -> None:
    """As `scan`, without the own vector. SMPI has no other."""
    flat(s, c)
    c.own_last(s)
    for _ in range(c.rank - 1):
        s.reduce(c.nbytes)


def flat(s: Schedule, c: Call) -> None:
    """Receive from every lower rank, send to every higher one."""
    first = s.slots
    ranks = wheel(c.size)
    irecv_each(s, ranks[: c.rank], c.nbytes)
    isend_each(s, ranks[c.rank + 1 : c.size], c.nbytes)
    s.waitall(first, s.slots)


@algorithm("scan", "linear", "chain 0, 1, 2...; P-1 steps of m")
def scan_chain(s: Schedule, c: Call) -> None:
    """Each rank combines what comes from the rank before. Open MPI coll/base."""
    if c.rank > 0:
        s.recv(c.rank - 1, c.nbytes)
        s.reduce(c.nbytes)
    if c.rank + 1 < c.size:
        s.send(c.rank + 1, c.nbytes)


@algorithm("exscan", "linear", "chain 0, 1, 2...; P-1 steps of m")
def exscan_chain(s: Schedule, c: Call) -> None:
    """As `scan`; the own vector joins only what is handed on. Open MPI coll/base."""
    c.result_apart(s, own=False)
    if c.rank > 0:
        s.recv(c.rank - 1, c.nbytes)
        c.also_result(s)
    if c.rank + 1 < c.size:
        if c.rank > 0:
            s.reduce(c.nbytes)
        s.send(c.rank + 1, c.nbytes)


def doubling(s: Schedule, c: Call, own: bool) -> None:
    """Exchange with rank XOR 2^k; what lower ranks send counts for the result too."""
    c.result_apart(s, own)
    mask = 1
    while mask < c.size:
        peer = c.rank ^ mask
        if peer < c.size:
            s.sendrecv(peer, c.nbytes, peer, c.nbytes)
            if peer < c.rank:
                c.also_result(s)
            s.reduce(c.nbytes)
            if peer < c.rank:
                s.reduce(c.nbytes)
        mask <<= 1


@algorithm("scan", "recursive_doubling", "exchange with rank XOR 2^k; ceil(log2 P) steps of m")
def scan_doubling(s: Schedule, c: Call) -> None:
    """MPICH's."""
    doubling(s, c, own=True)


@algorithm("exscan", "recursive_doubling", "exchange with rank XOR 2^k; ceil(log2 P) steps of m")
def exscan_doubling(s: Schedule, c: Call) -> None:
    """MPICH's."""
    doubling(s, c, own=False)
