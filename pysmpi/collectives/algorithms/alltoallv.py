"""Alltoall with a block size for each pair of ranks."""

from __future__ import annotations

from itertools import accumulate

from pysmpi.collectives.building import NOTHING, Builder
from pysmpi.collectives.bulk import irecv_blocks, isend_blocks
from pysmpi.collectives.call import Call
from pysmpi.collectives.patterns import after, before, is_power_of_two, others
from pysmpi.collectives.registry import algorithm

THROTTLE = 4  # pairs of a batch in MPICH


def sizes(c: Call) -> tuple[list[int], list[int]]:
    """The bytes for each rank and from each rank."""
    out = [n * c.type_size for n in c.send_counts or ()]
    return out, [n * c.type_size for n in c.recv_counts or ()]


def places(c: Call, to: list[int], source: list[int]) -> tuple[list[int], list[int]]:
    """The offsets of the blocks for each rank and from each rank, from their sizes."""
    return list(accumulate(to, initial=c.input)), list(accumulate(source, initial=c.output))


@algorithm("alltoallv", "ompi_basic_linear", "all at once in rank order; 1 step")
def linear(s: Builder, c: Call) -> None:
    """All receives, then all sends, from rank 0 upward. Open MPI coll/basic."""
    to, source = sizes(c)
    out, into = places(c, to, source)
    first = s.slots
    irecv_blocks(s, others(c.rank, c.size), source, into)
    isend_blocks(s, others(c.rank, c.size), to, out)
    s.waitall(first, s.slots)


@algorithm("alltoallv", "default", "all at once in rank order; 1 step")
def flat(s: Builder, c: Call) -> None:
    """SMPI's `default`: the same messages as `ompi_basic_linear`."""
    linear(s, c)


@algorithm("alltoallw", "default", "all at once in rank order; 1 step")
def flat_w(s: Builder, c: Call) -> None:
    """Counts are bytes. SMPI has no other."""
    linear(s, c)


@algorithm("alltoallv", "bruck", "batches of 4 receives and 4 sends; P/4 steps")
def throttled(s: Builder, c: Call) -> None:
    """In spread order. SMPI's name for MPICH's throttled exchange; it is not Bruck's."""
    in_batches(s, c, THROTTLE, False)


def in_batches(s: Builder, c: Call, length: int, skip_empty: bool) -> None:
    """Receives from rank + i, sends to rank - i, for `length` values of i at a time."""
    to, source = sizes(c)
    out, into = places(c, to, source)
    for start in range(0, c.size, length):
        batch = range(max(start, 1), min(start + length, c.size))
        first = s.slots
        for peer in [(c.rank + i) % c.size for i in batch]:
            if source[peer] or not skip_empty:
                s.irecv(peer, source[peer], into[peer])
        for peer in [(c.rank - i) % c.size for i in batch]:
            if to[peer] or not skip_empty:
                s.isend(peer, to[peer], out[peer])
        s.waitall(first, s.slots)


@algorithm("alltoallv", "scattered", "batches of 32 receives and 32 sends; P/32 steps")
def scattered(s: Builder, c: Call) -> None:
    """As `bruck`, with the batches of MPICH 4, which leaves empty messages out."""
    in_batches(s, c, 32, True)


@algorithm("alltoallw", "scattered", "batches of 32 receives and 32 sends; P/32 steps")
def scattered_w(s: Builder, c: Call) -> None:
    """As alltoallv's."""
    in_batches(s, c, 32, True)


@algorithm("alltoallv", "pairwise", "to rank + i, from rank - i; P-1 steps")
def pairwise(s: Builder, c: Call) -> None:
    """Open MPI's pairwise exchange, for any number of ranks."""
    step_by_step(s, c, spread_order(c))


def spread_order(c: Call) -> list[tuple[int, int]]:
    """(destination, source) of each step: rank + i and rank - i."""
    return list(zip(after(c.rank, c.size), before(c.rank, c.size), strict=True))


def pair_order(c: Call) -> list[tuple[int, int]]:
    """Partners rank XOR i, for a power of two of ranks."""
    return [(c.rank ^ i, c.rank ^ i) for i in range(1, c.size)]


def step_by_step(s: Builder, c: Call, order: list[tuple[int, int]], between: str = "") -> None:
    """Exchange in order; between steps optionally a `barrier`, or a `signal` to the next source."""
    to, source = sizes(c)
    out, into = places(c, to, source)
    if between == "barrier":
        s.call("barrier")  # before the step with oneself, a copy
    for i, (dest, src) in enumerate(order):
        if between == "barrier":
            s.call("barrier")
        s.sendrecv(dest, to[dest], src, source[src], out[dest], into[src])
        if between == "signal" and i + 1 < len(order):
            s.sendrecv(order[i + 1][1], 1, order[i + 1][0], 1, NOTHING, NOTHING)


@algorithm("alltoallv", "ring", "P-1 exchanges: with rank XOR i for 2^k ranks, else rank + i")
def ring(s: Builder, c: Call) -> None:
    """STAR-MPI."""
    step_by_step(s, c, pair_order(c) if is_power_of_two(c.size) else spread_order(c))


@algorithm("alltoallv", "ring_light_barrier", "to rank + i, a byte to the next partner between")
def ring_signals(s: Builder, c: Call) -> None:
    """A rank signals to the next source that it is ready (STAR-MPI)."""
    step_by_step(s, c, spread_order(c), "signal")


@algorithm("alltoallv", "ring_mpi_barrier", "to rank + i, a barrier before each of P steps")
def ring_barriers(s: Builder, c: Call) -> None:
    """The selection's barrier (STAR-MPI)."""
    step_by_step(s, c, spread_order(c), "barrier")


@algorithm("alltoallv", "ring_one_barrier", "a barrier, then to rank + i; P-1 steps")
def ring_one_barrier(s: Builder, c: Call) -> None:
    """The selection's barrier (STAR-MPI)."""
    s.call("barrier")
    step_by_step(s, c, spread_order(c))


@algorithm("alltoallv", "pair", "with rank XOR i; P-1 steps; 2^k ranks", elsewhere="ring")
def pair(s: Builder, c: Call) -> None:
    """Pairwise exchange (STAR-MPI). SMPI aborts for other numbers of ranks."""
    step_by_step(s, c, pair_order(c))


@algorithm("alltoallv", "pair_light_barrier", "pair, a byte to the next partner between; 2^k",
           elsewhere="ring_light_barrier")  # fmt: skip
def pair_signals(s: Builder, c: Call) -> None:
    """As `ring_light_barrier` with partners rank XOR i (STAR-MPI)."""
    step_by_step(s, c, pair_order(c), "signal")


@algorithm("alltoallv", "pair_mpi_barrier", "pair with a barrier before each of P steps; 2^k",
           elsewhere="ring_mpi_barrier")  # fmt: skip
def pair_barriers(s: Builder, c: Call) -> None:
    """As `ring_mpi_barrier` with partners rank XOR i (STAR-MPI)."""
    step_by_step(s, c, pair_order(c), "barrier")


@algorithm("alltoallv", "pair_one_barrier", "a barrier, then pair; 2^k ranks",
           elsewhere="ring_one_barrier")  # fmt: skip
def pair_one_barrier(s: Builder, c: Call) -> None:
    """The selection's barrier (STAR-MPI)."""
    s.call("barrier")
    step_by_step(s, c, pair_order(c))
