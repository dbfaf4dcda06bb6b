"""Allgather with equal blocks."""

from __future__ import annotations

from pysmpi.collectives.call import Call
from pysmpi.collectives.patterns import (
    after,
    doubling_rounds,
    exchange,
    irecv_each,
    isend_each,
    mesh2,
    mesh3,
    others,
)
from pysmpi.collectives.registry import algorithm
from pysmpi.kernel.schedule import Schedule


@algorithm("allgather", "default", "all to all at once; 1 step, P-1 blocks each way")
def flat(s: Schedule, c: Call) -> None:
    """For each other rank in turn a send and a receive are started. SMPI's `default`."""
    first = s.slots
    for peer in others(c.rank, c.size):
        s.isend(peer, c.nbytes)
        s.irecv(peer, c.nbytes)
    s.waitall(first, s.slots)


@algorithm("allgather", "ring", "to rank + i, from rank - i; P-1 steps of one block")
def spread(s: Schedule, c: Call) -> None:
    """Every step sends the rank's own block, so it is not a neighbour ring (STAR-MPI)."""
    for i in range(1, c.size):
        s.sendrecv((c.rank + i) % c.size, c.nbytes, (c.rank - i) % c.size, c.nbytes)


@algorithm(
    "allgather", "pair", "with rank XOR i; P-1 steps of one block; 2^k ranks", elsewhere="ring"
)
def pair(s: Schedule, c: Call) -> None:
    """Pairwise exchange (STAR-MPI). SMPI aborts for other numbers of ranks."""
    for i in range(1, c.size):
        s.sendrecv(c.rank ^ i, c.nbytes, c.rank ^ i, c.nbytes)


@algorithm("allgather", "NTSLR", "neighbour ring, forwards what came last; P-1 steps")
def neighbour_ring(s: Schedule, c: Call) -> None:
    """The logical ring that knows nothing of the topology (STAR-MPI; Thakur et al. 2005)."""
    right, left = (c.rank + 1) % c.size, (c.rank - 1) % c.size
    for _ in range(c.size - 1):
        s.sendrecv(right, c.nbytes, left, c.nbytes)


@algorithm("allgather", "NTSLR_NB", "neighbour ring, all receives posted first; P-1 steps")
def neighbour_ring_posted(s: Schedule, c: Call) -> None:
    """Each step starts a send, then waits for the receive and for the send (STAR-MPI)."""
    right, left = (c.rank + 1) % c.size, (c.rank - 1) % c.size
    first = s.slots
    for _ in range(c.size - 1):
        s.irecv(left, c.nbytes)
    for i in range(c.size - 1):
        sent = s.isend(right, c.nbytes)
        s.wait(first + i)
        s.wait(sent)


@algorithm("allgather", "rdb", "recursive doubling, blocks 1, 2, 4...; ceil(log2 P) steps (+)")
def recursive_doubling(s: Schedule, c: Call) -> None:
    """MPICH's, with extra rounds inside subtrees where P is not a power of two."""
    for what, peer, mine, theirs in doubling_rounds(c.rank, c.size):
        sent, got = (mine[1] - mine[0]) * c.nbytes, (theirs[1] - theirs[0]) * c.nbytes
        if what == "both":
            s.sendrecv(peer, sent, peer, got)
        elif what == "send":
            s.send(peer, sent)
        else:
            s.recv(peer, got)


@algorithm("allgather", "bruck", "to rank - 2^k, blocks 1, 2, 4...; ceil(log2 P) steps")
def bruck(s: Schedule, c: Call) -> None:
    """Bruck et al. 1997: doubling for any P, with a local rotation at the end."""
    distance = 1
    while distance < c.size:
        size = min(distance, c.size - distance) * c.nbytes
        s.sendrecv((c.rank - distance) % c.size, size, (c.rank + distance) % c.size, size)
        distance *= 2
    s.copy(c.size * c.nbytes)


@algorithm(
    "allgather",
    "ompi_neighborexchange",
    "left and right neighbour in turn, two blocks; P/2 steps; odd P: ring",
)
def neighbour_exchange(s: Schedule, c: Call) -> None:
    """Chen, Sun, Wang, Sun 2005, for even P."""
    if c.size % 2:
        spread(s, c)
        return
    towards = 1 if c.rank % 2 == 0 else -1
    for i in range(c.size // 2):
        peer = (c.rank + towards) % c.size
        size = c.nbytes * (2 if i else 1)
        s.sendrecv(peer, size, peer, size)
        towards = -towards


@algorithm("allgather", "GB", "the selection's gather to rank 0, then its bcast of all blocks")
def gather_bcast(s: Schedule, c: Call) -> None:
    """Gather, then broadcast (STAR-MPI)."""
    c.call(s, "gather", root=0)
    c.call(s, "bcast", root=0, count=c.count * c.size)


@algorithm("allgather", "spreading_simple", "all to all at once, nearest ranks first; 1 step")
def spreading(s: Schedule, c: Call) -> None:
    """All receives, then all sends, from rank + 1 upward (STAR-MPI)."""
    first = s.slots
    peers = after(c.rank, c.size)
    irecv_each(s, peers, c.nbytes)
    isend_each(s, peers, c.nbytes)
    s.waitall(first, s.slots)


@algorithm(
    "allgather",
    "rhv",
    "own block to the bit-reversed rank, then halving distances; 1 + log2 P steps; 2^k ranks",
    elsewhere="rdb",
)
def recursive_halving(s: Schedule, c: Call) -> None:
    """Recursive halving (STAR-MPI). SMPI aborts for other numbers of ranks."""
    bits = c.size.bit_length() - 1
    mirror = int(f"{c.rank:0{bits}b}"[::-1], 2)
    exchange(s, c.rank, mirror, c.nbytes, mirror, c.nbytes)
    mask, size = c.size >> 1, c.nbytes
    while mask:
        s.sendrecv(c.rank ^ mask, size, c.rank ^ mask, size)
        mask >>= 1
        size *= 2


@algorithm("allgather", "2dmesh", "P = X Y: along rows, then columns; (Y-1) + (X-1) messages")
def mesh_2d(s: Schedule, c: Call) -> None:
    """Receives posted, then blocking sends, in each dimension (STAR-MPI).

    Numbers of ranks without two factors are one row; SMPI aborts there.
    """
    rows, width = mesh2(c.size)
    base, column = c.rank // width * width, c.rank % width
    gather_line(s, c, [base + i for i in range(width)], c.nbytes)
    gather_line(s, c, [i * width + column for i in range(rows)], c.nbytes * width)


@algorithm("allgather", "3dmesh", "P = X X Z: rows, columns, depth; 2 (X-1) + (Z-1) messages")
def mesh_3d(s: Schedule, c: Call) -> None:
    """As `2dmesh`, in squares of X by X (STAR-MPI); X = 1 where P has no square factor."""
    side, depth = mesh3(c.size)
    plane = side * side
    row, base = c.rank // side * side, c.rank // plane * plane
    gather_line(s, c, [row + i for i in range(side)], c.nbytes)
    column = c.rank % side + base
    gather_line(s, c, [i * side + column for i in range(side)], c.nbytes * side)
    around = [(c.rank + i * plane) % c.size for i in range(depth)]
    gather_line(s, c, around, c.nbytes * plane)


def gather_line(s: Schedule, c: Call, line: list[int], size: int) -> None:
    """Give `size` bytes to every other rank of a line and take theirs."""
    first = s.slots
    peers = [peer for peer in line if peer != c.rank]
    irecv_each(s, peers, size)
    for peer in peers:
        s.send(peer, size)
    s.waitall(first, s.slots)
