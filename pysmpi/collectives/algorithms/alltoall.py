"""Alltoall with equal blocks."""

from __future__ import annotations

from pysmpi.collectives.call import Call
from pysmpi.collectives.patterns import (
    after,
    before,
    doubling_rounds,
    irecv_each,
    isend_each,
    mesh2,
    mesh3,
    sendrecv_each,
)
from pysmpi.collectives.registry import algorithm
from pysmpi.kernel.schedule import Schedule

THROTTLE = 4  # pairs of a batch in MVAPICH2


@algorithm("alltoall", "basic_linear", "all at once; 1 step, P-1 blocks each way")
def basic_linear(s: Schedule, c: Call) -> None:
    """Receives from rank + 1 upward, then sends from rank - 1 downward. Open MPI coll/base."""
    first = s.slots
    irecv_each(s, after(c.rank, c.size), c.nbytes)
    isend_each(s, before(c.rank, c.size), c.nbytes)
    s.waitall(first, s.slots)


@algorithm("alltoall", "ring", "to rank + i, from rank - i; P-1 steps of one block")
def spread(s: Schedule, c: Call) -> None:
    """Pairwise exchange for any number of ranks (STAR-MPI; Open MPI's pairwise)."""
    sendrecv_each(s, after(c.rank, c.size), before(c.rank, c.size), c.nbytes)


def partners(c: Call) -> list[int]:
    """rank XOR 1, 2, ... P-1."""
    return [c.rank ^ i for i in range(1, c.size)]


@algorithm("alltoall", "pair", "with rank XOR i; P-1 steps of one block; 2^k ranks",
           elsewhere="ring")  # fmt: skip
def pair(s: Schedule, c: Call) -> None:
    """Pairwise exchange (STAR-MPI). SMPI aborts for other numbers of ranks."""
    peers = partners(c)
    sendrecv_each(s, peers, peers, c.nbytes)


@algorithm("alltoall", "ring_one_barrier", "a barrier, then ring")
def spread_after_barrier(s: Schedule, c: Call) -> None:
    """The barrier is the selection's (STAR-MPI)."""
    c.call(s, "barrier")
    spread(s, c)


@algorithm("alltoall", "ring_mpi_barrier", "ring with a barrier before each of P steps")
def spread_with_barriers(s: Schedule, c: Call) -> None:
    """The first barrier stands before the copy of the own block (STAR-MPI)."""
    with_barriers(s, c, after(c.rank, c.size), before(c.rank, c.size))


@algorithm("alltoall", "ring_light_barrier", "ring, a byte to the next partner between steps")
def spread_with_signals(s: Schedule, c: Call) -> None:
    """A rank tells the next source that it is ready (STAR-MPI)."""
    with_signals(s, c, after(c.rank, c.size), before(c.rank, c.size))


@algorithm("alltoall", "pair_one_barrier", "a barrier, then pair; 2^k ranks",
           elsewhere="ring_one_barrier")  # fmt: skip
def pair_after_barrier(s: Schedule, c: Call) -> None:
    """The barrier is the selection's (STAR-MPI)."""
    c.call(s, "barrier")
    pair(s, c)


@algorithm("alltoall", "pair_mpi_barrier", "pair with a barrier before each of P steps; 2^k ranks",
           elsewhere="ring_mpi_barrier")  # fmt: skip
def pair_with_barriers(s: Schedule, c: Call) -> None:
    """As `ring_mpi_barrier` (STAR-MPI)."""
    with_barriers(s, c, partners(c), partners(c))


@algorithm("alltoall", "pair_light_barrier", "pair, a byte to the next partner between steps; 2^k",
           elsewhere="ring_light_barrier")  # fmt: skip
def pair_with_signals(s: Schedule, c: Call) -> None:
    """As `ring_light_barrier` (STAR-MPI)."""
    with_signals(s, c, partners(c), partners(c))


def with_barriers(s: Schedule, c: Call, dests: list[int], sources: list[int]) -> None:
    """Exchange step by step, each after a barrier; one more stands before the own block."""
    c.call(s, "barrier")
    for dest, source in zip(dests, sources, strict=True):
        c.call(s, "barrier")
        s.sendrecv(dest, c.nbytes, source, c.nbytes)


def with_signals(s: Schedule, c: Call, dests: list[int], sources: list[int]) -> None:
    """Exchange step by step; between steps a byte to the next source from the next destination."""
    for i, (dest, source) in enumerate(zip(dests, sources, strict=True)):
        s.sendrecv(dest, c.nbytes, source, c.nbytes)
        if i + 1 < len(dests):
            s.sendrecv(sources[i + 1], 1, dests[i + 1], 1)


@algorithm("alltoall", "bruck", "to rank + 2^k the blocks with bit k; ceil(log2 P) steps of m P/2")
def bruck(s: Schedule, c: Call) -> None:
    """Bruck et al. 1997: rotation, log P exchanges of half the blocks, inverse rotation."""
    s.copy(c.size * c.nbytes)
    distance = 1
    while distance < c.size:
        # Of the blocks 1 .. P-1, those with this bit set.
        full, rest = divmod(c.size, 2 * distance)
        blocks = full * distance + max(0, rest - distance)
        size = blocks * c.nbytes
        s.sendrecv((c.rank + distance) % c.size, size, (c.rank - distance) % c.size, size)
        distance *= 2
    s.copy(c.size * c.nbytes)


@algorithm("alltoall", "rdb", "recursive-doubling allgather of all vectors; traffic P m P")
def recursive_doubling(s: Schedule, c: Call) -> None:
    """Everybody gets everything and picks its part (STAR-MPI)."""
    vector = c.nbytes * c.size
    for what, peer, mine, theirs in doubling_rounds(c.rank, c.size):
        sent, got = (mine[1] - mine[0]) * vector, (theirs[1] - theirs[0]) * vector
        if what == "both":
            s.sendrecv(peer, sent, peer, got)
        elif what == "send":
            s.send(peer, sent)
        else:
            s.recv(peer, got)


@algorithm("alltoall", "2dmesh", "P = X Y: vectors along rows, then blocks along columns")
def mesh_2d(s: Schedule, c: Call) -> None:
    """Whole vectors to the row, then Y blocks to each rank of the column (STAR-MPI).

    Numbers of ranks without two factors are one row; SMPI returns an error there.
    """
    rows, width = mesh2(c.size)
    base, column = c.rank // width * width, c.rank % width
    line(s, c, [base + i for i in range(width)], c.nbytes * c.size)
    line(s, c, [i * width + column for i in range(rows)], c.nbytes * width)


@algorithm("alltoall", "3dmesh", "P = X X Z: vectors along rows and columns, blocks in depth")
def mesh_3d(s: Schedule, c: Call) -> None:
    """Whole vectors within squares, then X X blocks to the other squares (STAR-MPI)."""
    side, depth = mesh3(c.size)
    plane = side * side
    row, base = c.rank // side * side, c.rank // plane * plane
    vector = c.nbytes * c.size
    line(s, c, [row + i for i in range(side)], vector)
    column = c.rank % side + base
    line(s, c, [i * side + column for i in range(side)], vector * side)
    line(s, c, [(c.rank + i * plane) % c.size for i in range(depth)], c.nbytes * plane)


def line(s: Schedule, c: Call, ranks: list[int], size: int) -> None:
    """Give `size` bytes to every other rank of a line and take theirs; sends block."""
    first = s.slots
    peers = [peer for peer in ranks if peer != c.rank]
    irecv_each(s, peers, size)
    for peer in peers:
        s.send(peer, size)
    s.waitall(first, s.slots)


@algorithm("alltoall", "mvapich2_scatter_dest", "batches of 4 receives and 4 sends; P/4 steps")
def throttled(s: Schedule, c: Call) -> None:
    """Spread order, the own block included as a message to oneself (MVAPICH2, MPICH)."""
    if c.nbytes > 0:
        in_batches(s, c, THROTTLE)


@algorithm("alltoall", "scattered", "batches of 32 receives and 32 sends; P/32 steps")
def scattered(s: Schedule, c: Call) -> None:
    """As `mvapich2_scatter_dest`, with the batches of MPICH 4."""
    in_batches(s, c, 32)


def in_batches(s: Schedule, c: Call, length: int) -> None:
    """Receives from rank + i, sends to rank - i, for `length` values of i at a time."""
    for start in range(0, c.size, length):
        batch = range(start, min(start + length, c.size))
        first = s.slots
        for i in batch:
            s.irecv((c.rank + i) % c.size, c.nbytes)
        for i in batch:
            s.isend((c.rank - i) % c.size, c.nbytes)
        s.waitall(first, s.slots)


POINTER = 8  # bytes of the address of a window
PUT = 1  # tag that keeps puts apart from the messages of barriers


@algorithm("alltoall", "pair_rma", "puts to rank XOR i between fences of a window; 2^k ranks",
           elsewhere="ring")  # fmt: skip
def pair_rma(s: Schedule, c: Call) -> None:
    """A window is made, filled between two fences of two barriers each, and freed (STAR-MPI).

    Puts are messages that their targets have already asked for, so they flow at once.
    """
    c.call(s, "allgather", count=POINTER, type_size=1)
    c.call(s, "barrier")
    first = s.slots
    irecv_each(s, partners(c), c.nbytes, PUT)
    c.call(s, "barrier")
    isend_each(s, partners(c), c.nbytes, PUT)
    c.call(s, "barrier")
    s.waitall(first, s.slots)
    for _ in range(3):
        c.call(s, "barrier")
