"""Allgather with equal blocks."""

from __future__ import annotations

from pysmpi.collectives.building import Builder
from pysmpi.collectives.bulk import irecv_each, isend_each, trade_each
from pysmpi.collectives.call import Call
from pysmpi.collectives.patterns import after, around, doubling_rounds, mesh2, mesh3, others
from pysmpi.collectives.registry import algorithm


@algorithm("allgather", "default", "all to all at once; 1 step, P-1 blocks each way")
def flat(s: Builder, c: Call) -> None:
    """For each other rank in turn a send and a receive are started. SMPI's `default`."""
    first, n, at = s.slots, c.nbytes, c.output
    places = [at + rank * n for rank in range(c.size)]
    trade_each(s, c.rank, others(c.rank, c.size), [n] * c.size, places)
    s.waitall(first, s.slots)


@algorithm("allgather", "ring", "to rank + i, from rank - i; P-1 steps of one block")
def spread(s: Builder, c: Call) -> None:
    """Every step sends the rank's own block, so it is not a neighbour ring (STAR-MPI)."""
    n, own = c.nbytes, c.output + c.rank * c.nbytes
    for i in range(1, c.size):
        source = (c.rank - i) % c.size
        s.sendrecv((c.rank + i) % c.size, n, source, n, own, c.output + source * n)


@algorithm(
    "allgather", "pair", "with rank XOR i; P-1 steps of one block; 2^k ranks", elsewhere="ring"
)
def pair(s: Builder, c: Call) -> None:
    """Pairwise exchange (STAR-MPI). SMPI aborts for other numbers of ranks."""
    n, own = c.nbytes, c.output + c.rank * c.nbytes
    for i in range(1, c.size):
        peer = c.rank ^ i
        s.sendrecv(peer, n, peer, n, own, c.output + peer * n)


@algorithm("allgather", "NTSLR", "neighbour ring, forwards the last block; P-1 steps")
def neighbour_ring(s: Builder, c: Call) -> None:
    """The logical ring, independent of the topology (STAR-MPI; Thakur et al. 2005)."""
    right, left = (c.rank + 1) % c.size, (c.rank - 1) % c.size
    n, at = c.nbytes, c.output
    for i in range(c.size - 1):
        sent, got = (c.rank - i) % c.size, (left - i) % c.size
        s.sendrecv(right, n, left, n, at + sent * n, at + got * n)


@algorithm("allgather", "NTSLR_NB", "neighbour ring, all receives posted first; P-1 steps")
def neighbour_ring_posted(s: Builder, c: Call) -> None:
    """Each step starts a send, then waits for the receive and for the send (STAR-MPI)."""
    right, left = (c.rank + 1) % c.size, (c.rank - 1) % c.size
    first, n = s.slots, c.nbytes
    for i in range(c.size - 1):
        s.irecv(left, n, c.output + (left - i) % c.size * n)
    for i in range(c.size - 1):
        sent = s.isend(right, n, c.output + (c.rank - i) % c.size * n)
        s.wait(first + i)
        s.wait(sent)


@algorithm("allgather", "rdb", "recursive doubling, blocks 1, 2, 4...; ceil(log2 P) steps (+)")
def recursive_doubling(s: Builder, c: Call) -> None:
    """MPICH's, with extra rounds inside subtrees where P is not a power of two."""
    for what, peer, mine, theirs in doubling_rounds(c.rank, c.size):
        sent, got = (mine[1] - mine[0]) * c.nbytes, (theirs[1] - theirs[0]) * c.nbytes
        out, into = c.output + mine[0] * c.nbytes, c.output + theirs[0] * c.nbytes
        if what == "both":
            s.sendrecv(peer, sent, peer, got, out, into)
        elif what == "send":
            s.send(peer, sent, out)
        else:
            s.recv(peer, got, into)


@algorithm("allgather", "bruck", "to rank - 2^k, blocks 1, 2, 4...; ceil(log2 P) steps")
def bruck(s: Builder, c: Call) -> None:
    """Bruck et al. 1997: doubling for any P, with a local rotation at the end."""
    n, work = c.nbytes, s.scratch()
    s.move(n, c.output + c.rank * n, work)
    distance = 1
    while distance < c.size:
        size = min(distance, c.size - distance) * n
        to, source = (c.rank - distance) % c.size, (c.rank + distance) % c.size
        s.sendrecv(to, size, source, size, work, work + distance * n)
        distance *= 2
    s.copy(c.size * n, work, around(c.output, c.rank, c.size, c.size, n))


@algorithm(
    "allgather",
    "ompi_neighborexchange",
    "left and right neighbour in turn, two blocks; P/2 steps; odd P: ring",
)
def neighbour_exchange(s: Builder, c: Call) -> None:
    """Chen, Sun, Wang, Sun 2005, for even P."""
    if c.size % 2:
        spread(s, c)
        return
    n, at = c.nbytes, c.output
    even = c.rank - c.rank % 2
    right, left = (c.rank + 1) % c.size, (c.rank - 1) % c.size
    near, far, step = (right, left, 2) if c.rank == even else (left, right, -2)
    s.sendrecv(near, n, near, n, at + c.rank * n, at + near * n)
    # Pairs of blocks (even rank, next rank) travel; each side's move on by one pair a turn.
    newest, from_near, from_far = even, even, even
    for i in range(1, c.size // 2):
        if i % 2:
            peer, start = far, (from_far - step) % c.size
            from_far = start
        else:
            peer, start = near, (from_near + step) % c.size
            from_near = start
        s.sendrecv(peer, 2 * n, peer, 2 * n, at + newest * n, at + start * n)
        newest = start


@algorithm("allgather", "GB", "the selection's gather to rank 0, then its bcast of all blocks")
def gather_bcast(s: Builder, c: Call) -> None:
    """Gather, then broadcast (STAR-MPI)."""
    s.call("gather", root=0, input=c.output + c.rank * c.nbytes)
    s.call("bcast", root=0, count=c.count * c.size)


@algorithm("allgather", "spreading_simple", "all to all at once, nearest ranks first; 1 step")
def spreading(s: Builder, c: Call) -> None:
    """All receives, then all sends, from rank + 1 upward (STAR-MPI)."""
    first = s.slots
    peers = after(c.rank, c.size)
    irecv_each(s, peers, c.nbytes, c.output, c.nbytes)
    isend_each(s, peers, c.nbytes, c.output + c.rank * c.nbytes)
    s.waitall(first, s.slots)


@algorithm(
    "allgather",
    "rhv",
    "own block to the bit-reversed rank, then halving distances; 1 + log2 P steps; 2^k ranks",
    elsewhere="rdb",
)
def recursive_halving(s: Builder, c: Call) -> None:
    """Recursive halving (STAR-MPI). SMPI aborts for other numbers of ranks."""
    bits = c.size.bit_length() - 1
    mirror = int(f"{c.rank:0{bits}b}"[::-1], 2)
    n, at = c.nbytes, c.output
    if mirror == c.rank:
        s.copy(n, at + c.rank * n, at + c.rank * n)
    else:
        s.sendrecv(mirror, n, mirror, n, at + c.rank * n, at + mirror * n)
    mask, have, blocks = c.size >> 1, mirror, 1
    while mask:
        peer, other = c.rank ^ mask, have ^ blocks
        s.sendrecv(peer, blocks * n, peer, blocks * n, at + have * n, at + other * n)
        mask >>= 1
        have = min(have, other)
        blocks *= 2


@algorithm("allgather", "2dmesh", "P = X Y: along rows, then columns; (Y-1) + (X-1) messages")
def mesh_2d(s: Builder, c: Call) -> None:
    """Receives posted, then blocking sends, in each dimension (STAR-MPI).

    Numbers of ranks without two factors are one row; SMPI aborts there.
    """
    rows, width = mesh2(c.size)
    base, column = c.rank // width * width, c.rank % width
    gather_line(s, c, [base + i for i in range(width)], 1)
    gather_line(s, c, [i * width + column for i in range(rows)], width)


@algorithm("allgather", "3dmesh", "P = X X Z: rows, columns, depth; 2 (X-1) + (Z-1) messages")
def mesh_3d(s: Builder, c: Call) -> None:
    """As `2dmesh`, in squares of X by X (STAR-MPI); X = 1 where P has no square factor."""
    side, depth = mesh3(c.size)
    plane = side * side
    row, base = c.rank // side * side, c.rank // plane * plane
    gather_line(s, c, [row + i for i in range(side)], 1)
    column = c.rank % side + base
    gather_line(s, c, [i * side + column for i in range(side)], side)
    beside = [(c.rank + i * plane) % c.size for i in range(depth)]
    gather_line(s, c, beside, plane)


def gather_line(s: Builder, c: Call, line: list[int], blocks: int) -> None:
    """Exchange the blocks of the own group of `blocks` ranks with the others of a line."""
    first, size = s.slots, blocks * c.nbytes
    peers = [peer for peer in line if peer != c.rank]
    for peer in peers:
        s.irecv(peer, size, c.output + peer // blocks * size)
    for peer in peers:
        s.send(peer, size, c.output + c.rank // blocks * size)
    s.waitall(first, s.slots)
