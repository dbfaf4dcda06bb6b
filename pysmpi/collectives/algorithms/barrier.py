"""Barriers. All messages are empty."""

from __future__ import annotations

from pysmpi.collectives.building import Builder
from pysmpi.collectives.bulk import irecv_each, isend_each
from pysmpi.collectives.call import Call
from pysmpi.collectives.patterns import floor_power_of_two, wheel
from pysmpi.collectives.registry import algorithm


@algorithm("barrier", "ompi_basic_linear", "all to rank 0, rank 0 to all; 2 steps")
def basic_linear(s: Builder, c: Call) -> None:
    """Rank 0 receives from all ranks, then releases all. Open MPI coll/base."""
    if c.rank > 0:
        s.send(0, 0)
        s.recv(0, 0)
        return
    everybody = wheel(c.size)[1 : c.size]
    heard = s.slots
    irecv_each(s, everybody, 0)
    s.waitall(heard, s.slots)
    told = s.slots
    isend_each(s, everybody, 0)
    s.waitall(told, s.slots)


@algorithm("barrier", "ompi_two_procs", "one exchange; 2 ranks only, else recursive doubling")
def two_procs(s: Builder, c: Call) -> None:
    """One exchange between two ranks. Open MPI coll/base.

    More than two ranks take `ompi_recursivedoubling`, which is the same for two; SMPI runs the
    exchange with rank 0 or 1 anyway and deadlocks.
    """
    recursive_doubling(s, c)


@algorithm("barrier", "ompi_tree", "binomial tree up and down; 2 log2 P steps")
def tree(s: Builder, c: Call) -> None:
    """A fan-in and a fan-out on the binomial tree under rank 0. Open MPI coll/base."""
    depth = 1
    while depth < c.size:
        depth <<= 1
    # A rank has partners at distances up to that of its parent: its lowest bit.
    furthest = c.rank & -c.rank or depth >> 1
    jump = 1
    while jump <= furthest:
        partner = c.rank ^ jump
        if partner < c.size:
            if partner > c.rank:
                s.recv(partner, 0)
            else:
                s.send(partner, 0)
        jump <<= 1
    jump = furthest
    while jump:
        partner = c.rank ^ jump
        if partner < c.size:
            if partner > c.rank:
                s.send(partner, 0)
            else:
                s.recv(partner, 0)
        jump >>= 1


@algorithm("barrier", "ompi_bruck", "dissemination to rank + 2^k; ceil(log2 P) steps")
def bruck(s: Builder, c: Call) -> None:
    """Signal rank + 2^k, hear from rank - 2^k (Hensgen, Finkel, Manber 1988)."""
    distance = 1
    while distance < c.size:
        to, source = (c.rank + distance) % c.size, (c.rank - distance) % c.size
        s.sendrecv(to, 0, source, 0)
        distance <<= 1


@algorithm("barrier", "ompi_recursivedoubling", "exchange with rank XOR 2^k; log2 P (+ 2) steps")
def recursive_doubling(s: Builder, c: Call) -> None:
    """Ranks beyond the greatest power of two report to a partner and are released at the end.

    Open MPI coll/base.
    """
    inner = floor_power_of_two(c.size)
    if c.rank >= inner:
        s.sendrecv(c.rank - inner, 0, c.rank - inner, 0)
        return
    outer = c.rank + inner
    if outer < c.size:
        s.recv(outer, 0)
    mask = 1
    while mask < inner:
        s.sendrecv(c.rank ^ mask, 0, c.rank ^ mask, 0)
        mask <<= 1
    if outer < c.size:
        s.send(outer, 0)


@algorithm("barrier", "ompi_doublering", "a token goes round the ring twice; 2 P steps")
def double_ring(s: Builder, c: Call) -> None:
    """The second round signals to all ranks that the first one is complete. Open MPI."""
    left, right = (c.rank - 1) % c.size, (c.rank + 1) % c.size
    for _ in range(2):
        if c.rank > 0:
            s.recv(left, 0)
        s.send(right, 0)
        if c.rank == 0:
            s.recv(left, 0)


@algorithm("barrier", "mvapich2_pair", "pairwise exchange, folded onto 2^k; log2 P (+ 2) steps")
def pairwise(s: Builder, c: Call) -> None:
    """As recursive doubling, for MVAPICH2: the ranks beyond 2^k pair with the first ones."""
    recursive_doubling(s, c)


@algorithm("barrier", "mpich_smp", "inside nodes, among leaders, release inside nodes")
def smp(s: Builder, c: Call) -> None:
    """MPICH's barrier inside each node, then among the leaders, then a bcast of one byte."""
    s.prepare_nodes()
    s.on_node("barrier", "mpich")
    s.on_leaders("barrier", "mpich")
    s.on_node("bcast", "mpich", count=1, type_size=1, output=s.scratch())
