"""Alltoall with equal blocks."""

from __future__ import annotations

from collections.abc import Sequence

from pysmpi.collectives.building import NOTHING, Builder
from pysmpi.collectives.bulk import irecv_each, isend_each, sendrecv_each
from pysmpi.collectives.call import Call
from pysmpi.collectives.patterns import after, around, before, doubling_rounds, mesh2, mesh3
from pysmpi.collectives.registry import algorithm
from pysmpi.kernel.schedule import Place

THROTTLE = 4  # pairs of a batch in MVAPICH2


@algorithm("alltoall", "basic_linear", "all at once; 1 step, P-1 blocks each way")
def basic_linear(s: Builder, c: Call) -> None:
    """Receives from rank + 1 upward, then sends from rank - 1 downward. Open MPI coll/base."""
    first = s.slots
    irecv_each(s, after(c.rank, c.size), c.nbytes, c.output, c.nbytes)
    isend_each(s, before(c.rank, c.size), c.nbytes, c.input, c.nbytes)
    s.waitall(first, s.slots)


@algorithm("alltoall", "ring", "to rank + i, from rank - i; P-1 steps of one block")
def spread(s: Builder, c: Call) -> None:
    """Pairwise exchange for any number of ranks (STAR-MPI; Open MPI's pairwise)."""
    dests, sources = after(c.rank, c.size), before(c.rank, c.size)
    sendrecv_each(s, dests, sources, c.nbytes, c.input, c.output)


def partners(c: Call) -> list[int]:
    """rank XOR 1, 2, ... P-1."""
    return [c.rank ^ i for i in range(1, c.size)]


@algorithm("alltoall", "pair", "with rank XOR i; P-1 steps of one block; 2^k ranks",
           elsewhere="ring")  # fmt: skip
def pair(s: Builder, c: Call) -> None:
    """Pairwise exchange (STAR-MPI). SMPI aborts for other numbers of ranks."""
    peers = partners(c)
    sendrecv_each(s, peers, peers, c.nbytes, c.input, c.output)


@algorithm("alltoall", "ring_one_barrier", "a barrier, then ring")
def spread_after_barrier(s: Builder, c: Call) -> None:
    """The barrier is the selection's (STAR-MPI)."""
    s.call("barrier")
    spread(s, c)


@algorithm("alltoall", "ring_mpi_barrier", "ring with a barrier before each of P steps")
def spread_with_barriers(s: Builder, c: Call) -> None:
    """The first barrier stands before the copy of the own block (STAR-MPI)."""
    with_barriers(s, c, after(c.rank, c.size), before(c.rank, c.size))


@algorithm("alltoall", "ring_light_barrier", "ring, a byte to the next partner between steps")
def spread_with_signals(s: Builder, c: Call) -> None:
    """A rank signals to the next source that it is ready (STAR-MPI)."""
    with_signals(s, c, after(c.rank, c.size), before(c.rank, c.size))


@algorithm("alltoall", "pair_one_barrier", "a barrier, then pair; 2^k ranks",
           elsewhere="ring_one_barrier")  # fmt: skip
def pair_after_barrier(s: Builder, c: Call) -> None:
    """The barrier is the selection's (STAR-MPI)."""
    s.call("barrier")
    pair(s, c)


@algorithm("alltoall", "pair_mpi_barrier", "pair with a barrier before each of P steps; 2^k ranks",
           elsewhere="ring_mpi_barrier")  # fmt: skip
def pair_with_barriers(s: Builder, c: Call) -> None:
    """As `ring_mpi_barrier` (STAR-MPI)."""
    with_barriers(s, c, partners(c), partners(c))


@algorithm("alltoall", "pair_light_barrier", "pair, a byte to the next partner between steps; 2^k",
           elsewhere="ring_light_barrier")  # fmt: skip
def pair_with_signals(s: Builder, c: Call) -> None:
    """As `ring_light_barrier` (STAR-MPI)."""
    with_signals(s, c, partners(c), partners(c))


def with_barriers(s: Builder, c: Call, dests: list[int], sources: list[int]) -> None:
    """Exchange step by step, each after a barrier; one more stands before the own block."""
    s.call("barrier")
    for dest, source in zip(dests, sources, strict=True):
        s.call("barrier")
        swap_blocks(s, c, dest, source)


def swap_blocks(s: Builder, c: Call, dest: int, source: int) -> None:
    """Send `dest` its block and receive that of `source`."""
    n = c.nbytes
    s.sendrecv(dest, n, source, n, c.input + dest * n, c.output + source * n)


def with_signals(s: Builder, c: Call, dests: list[int], sources: list[int]) -> None:
    """Exchange step by step; between steps a byte to the next source from the next destination."""
    for i, (dest, source) in enumerate(zip(dests, sources, strict=True)):
        swap_blocks(s, c, dest, source)
        if i + 1 < len(dests):
            s.sendrecv(sources[i + 1], 1, dests[i + 1], 1, NOTHING, NOTHING)


@algorithm("alltoall", "bruck", "to rank + 2^k the blocks with bit k; ceil(log2 P) steps of m P/2")
def bruck(s: Builder, c: Call) -> None:
    """Bruck et al. 1997: rotation, log P exchanges of half the blocks, inverse rotation."""
    n, size = c.nbytes, c.size
    work, got = s.scratch(), s.scratch()
    s.copy(size * n, around(c.input, c.rank, size, size, n), work)
    distance = 1
    while distance < size:
        # Of the blocks 1 .. P-1, those with this bit set.
        full, rest = divmod(size, 2 * distance)
        blocks = full * distance + max(0, rest - distance)
        places = _with_bit(work, distance, size, n)
        to, source = (c.rank + distance) % size, (c.rank - distance) % size
        s.pack(2 * blocks)
        s.sendrecv(to, blocks * n, source, blocks * n, places, got)
        s.move(blocks * n, got, places)
        distance *= 2
    s.copy(size * n, work, lambda: [(c.output + (c.rank - i) % size * n, n) for i in range(size)])


def _with_bit(base: int, bit: int, size: int, nbytes: int) -> Place:
    return lambda: [(base + i * nbytes, nbytes) for i in range(size) if i & bit]


@algorithm("alltoall", "rdb", "recursive-doubling allgather of all vectors; traffic P m P")
def recursive_doubling(s: Builder, c: Call) -> None:
    """Every rank receives everything and selects its part (STAR-MPI)."""
    n, vector, work = c.nbytes, c.nbytes * c.size, s.scratch()
    s.move(vector, c.input, work + c.rank * vector)
    for what, peer, mine, theirs in doubling_rounds(c.rank, c.size):
        sent, got = (mine[1] - mine[0]) * vector, (theirs[1] - theirs[0]) * vector
        out, into = work + mine[0] * vector, work + theirs[0] * vector
        if what == "both":
            s.sendrecv(peer, sent, peer, got, out, into)
        elif what == "send":
            s.send(peer, sent, out)
        else:
            s.recv(peer, got, into)
    s.move(vector, blocks_for(work, vector, range(c.size), c.rank, n), c.output)


def blocks_for(work: int, vector: int, ranks: Sequence[int], dest: int, nbytes: int) -> Place:
    """The places of the blocks of `ranks` for one rank in their whole vectors."""
    return lambda: [(work + rank * vector + dest * nbytes, nbytes) for rank in ranks]


@algorithm("alltoall", "2dmesh", "P = X Y: vectors along rows, then blocks along columns")
def mesh_2d(s: Builder, c: Call) -> None:
    """Whole vectors to the row, then Y blocks to each rank of the column (STAR-MPI).

    Numbers of ranks without two factors are one row; SMPI returns an error there.
    """
    rows, width = mesh2(c.size)
    base, column = c.rank // width * width, c.rank % width
    vector, work = c.nbytes * c.size, s.scratch()
    s.move(vector, c.input, work + c.rank * vector)
    line(s, c, [base + i for i in range(width)], 1, vector, work)
    last_line(s, c, [i * width + column for i in range(rows)], width, work)


@algorithm("alltoall", "3dmesh", "P = X X Z: vectors along rows and columns, blocks in depth")
def mesh_3d(s: Builder, c: Call) -> None:
    """Whole vectors within squares, then X X blocks to the other squares (STAR-MPI)."""
    side, depth = mesh3(c.size)
    plane = side * side
    row, base = c.rank // side * side, c.rank // plane * plane
    vector, work = c.nbytes * c.size, s.scratch()
    s.move(vector, c.input, work + c.rank * vector)
    line(s, c, [row + i for i in range(side)], 1, vector, work)
    column = c.rank % side + base
    line(s, c, [i * side + column for i in range(side)], side, vector, work)
    last_line(s, c, [(c.rank + i * plane) % c.size for i in range(depth)], plane, work)


def line(s: Builder, c: Call, ranks: list[int], group: int, vector: int, work: int) -> None:
    """Exchange the vectors of the own group of `group` ranks with the others of a line."""
    first, size = s.slots, group * vector
    peers = [peer for peer in ranks if peer != c.rank]
    for peer in peers:
        s.irecv(peer, size, work + peer // group * size)
    for peer in peers:
        s.send(peer, size, work + c.rank // group * size)
    s.waitall(first, s.slots)


def last_line(s: Builder, c: Call, ranks: list[int], group: int, work: int) -> None:
    """Send the ranks of a line their blocks from the own group of ranks; receive theirs."""
    n, vector = c.nbytes, c.nbytes * c.size
    first, size = s.slots, group * n
    own = range(c.rank // group * group, c.rank // group * group + group)
    peers = [peer for peer in ranks if peer != c.rank]
    for peer in peers:
        s.irecv(peer, size, c.output + peer // group * size)
    for peer in peers:
        s.send(peer, size, blocks_for(work, vector, own, peer, n))
    s.waitall(first, s.slots)
    s.move(size, blocks_for(work, vector, own, c.rank, n), c.output + own[0] * n)


@algorithm("alltoall", "mvapich2_scatter_dest", "batches of 4 receives and 4 sends; P/4 steps")
def throttled(s: Builder, c: Call) -> None:
    """Spread order, the own block included as a message to oneself (MVAPICH2, MPICH)."""
    if c.nbytes > 0:
        in_batches(s, c, THROTTLE)


@algorithm("alltoall", "scattered", "batches of 32 receives and 32 sends; P/32 steps")
def scattered(s: Builder, c: Call) -> None:
    """As `mvapich2_scatter_dest`, with the batches of MPICH 4."""
    in_batches(s, c, 32)


def in_batches(s: Builder, c: Call, length: int) -> None:
    """Receives from rank + i, sends to rank - i, for `length` values of i at a time."""
    for start in range(0, c.size, length):
        batch = range(start, min(start + length, c.size))
        first = s.slots
        for i in batch:
            peer = (c.rank + i) % c.size
            s.irecv(peer, c.nbytes, c.output + peer * c.nbytes)
        for i in batch:
            peer = (c.rank - i) % c.size
            s.isend(peer, c.nbytes, c.input + peer * c.nbytes)
        s.waitall(first, s.slots)


POINTER = 8  # bytes of the address of a window
PUT = 1  # tag that distinguishes puts from the messages of barriers


@algorithm("alltoall", "pair_rma", "puts to rank XOR i between fences of a window; 2^k ranks",
           elsewhere="ring")  # fmt: skip
def pair_rma(s: Builder, c: Call) -> None:
    """A window is made, filled between two fences of two barriers each, and freed (STAR-MPI).

    Puts are messages with receives that are already posted, so they start at once.
    """
    s.call("allgather", count=POINTER, type_size=1, output=s.scratch())
    s.call("barrier")
    first = s.slots
    irecv_each(s, partners(c), c.nbytes, c.output, c.nbytes, PUT)
    s.call("barrier")
    isend_each(s, partners(c), c.nbytes, c.input, c.nbytes, PUT)
    s.call("barrier")
    s.waitall(first, s.slots)
    for _ in range(3):
        s.call("barrier")
