"""Allgather with a block size for each rank."""

from __future__ import annotations

from itertools import accumulate

from pysmpi.collectives.building import Builder
from pysmpi.collectives.bulk import trade_each
from pysmpi.collectives.call import Call
from pysmpi.collectives.patterns import doubling_rounds, others
from pysmpi.collectives.registry import algorithm
from pysmpi.kernel.schedule import Place


def block_bytes(c: Call) -> list[int]:
    """The bytes of every rank's block."""
    return [n * c.type_size for n in c.recv_counts or ()]


def block_places(c: Call) -> list[int]:
    """Return the offset of each rank's block, and the end of the last block."""
    return list(accumulate(block_bytes(c), initial=c.output))


@algorithm("allgatherv", "default", "all to all at once; 1 step")
def flat(s: Builder, c: Call) -> None:
    """For each other rank in turn a send and a receive are started. SMPI's `default`."""
    sizes, begin = block_bytes(c), block_places(c)
    first = s.slots
    trade_each(s, c.rank, others(c.rank, c.size), sizes, begin)
    s.waitall(first, s.slots)


@algorithm("allgatherv", "ring", "to rank + i, from rank - i; P-1 steps of the own block")
def spread(s: Builder, c: Call) -> None:
    """Every step sends the rank's own block, so it is not a neighbour ring (STAR-MPI)."""
    sizes, begin = block_bytes(c), block_places(c)
    own = begin[c.rank]
    for i in range(1, c.size):
        source = (c.rank - i) % c.size
        to = (c.rank + i) % c.size
        s.sendrecv(to, sizes[c.rank], source, sizes[source], own, begin[source])


@algorithm(
    "allgatherv", "pair", "with rank XOR i; P-1 steps of the own block; 2^k ranks",
    elsewhere="ring",
)  # fmt: skip
def pair(s: Builder, c: Call) -> None:
    """Pairwise exchange (STAR-MPI). SMPI aborts for other numbers of ranks."""
    sizes, begin = block_bytes(c), block_places(c)
    own = begin[c.rank]
    for i in range(1, c.size):
        peer = c.rank ^ i
        s.sendrecv(peer, sizes[c.rank], peer, sizes[peer], own, begin[peer])


@algorithm("allgatherv", "GB", "flat gatherv to rank 0, then the selection's bcast of everything")
def gather_bcast(s: Builder, c: Call) -> None:
    """Gather, then broadcast (STAR-MPI)."""
    counts = c.recv_counts or ()
    own = block_places(c)[c.rank]
    s.call("gatherv", root=0, count=counts[c.rank], input=own)
    s.call("bcast", root=0, count=sum(counts))


@algorithm("allgatherv", "ompi_bruck", "to rank - 2^k, blocks 1, 2, 4...; ceil(log2 P) steps")
def bruck(s: Builder, c: Call) -> None:
    """Bruck et al. 1997 with the blocks in place, as indexed types. Open MPI coll/base."""
    sizes, begin = block_bytes(c) * 2, block_places(c)

    def place(first: int, blocks: int) -> Place:
        beyond = first + blocks - c.size
        if beyond <= 0:
            return begin[first]
        return (
            (begin[first], begin[c.size] - begin[first]),
            (c.output, begin[beyond] - c.output),
        )

    distance = 1
    while distance < c.size:
        blocks = distance if distance <= c.size >> 1 else c.size - distance
        source = (c.rank + distance) % c.size
        s.sendrecv(
            (c.rank - distance) % c.size, sum(sizes[c.rank : c.rank + blocks]),
            source, sum(sizes[source : source + blocks]),
            place(c.rank, blocks), place(source, blocks),
        )  # fmt: skip
        distance <<= 1


@algorithm(
    "allgatherv",
    "ompi_neighborexchange",
    "left and right neighbour in turn, two blocks; P/2 steps; odd P: ring",
)
def neighbour_exchange(s: Builder, c: Call) -> None:
    """Chen, Sun, Wang, Sun 2005, for even P. Open MPI coll/base."""
    size = c.size
    if size % 2:
        spread(s, c)
        return
    sizes, begin = block_bytes(c), block_places(c)
    even = c.rank % 2 == 0
    towards = (1, -1) if even else (-1, 1)
    neighbour = [(c.rank + step) % size for step in towards]
    newest = c.rank if even else neighbour[0]
    came_from = [newest, newest]
    peer = neighbour[0]
    s.sendrecv(peer, sizes[c.rank], peer, sizes[peer], begin[c.rank], begin[peer])
    for i in range(1, size // 2):
        side = i % 2
        # Pairs of blocks (even rank, next rank) travel; each side's move on by one pair a turn.
        came_from[side] = (came_from[side] + 2 * towards[side]) % size
        start = came_from[side]
        s.sendrecv(
            neighbour[side], sizes[newest] + sizes[newest + 1],
            neighbour[side], sizes[start] + sizes[start + 1],
            begin[newest], begin[start],
        )  # fmt: skip
        newest = start


@algorithm("allgatherv", "mpich_rdb", "recursive doubling; ceil(log2 P) steps (+)")
def recursive_doubling(s: Builder, c: Call) -> None:
    """MPICH's, with extra rounds inside subtrees where P is not a power of two."""
    begin = block_places(c)
    if begin[-1] == begin[0]:
        return
    for what, peer, mine, theirs in doubling_rounds(c.rank, c.size):
        sent, got = begin[mine[1]] - begin[mine[0]], begin[theirs[1]] - begin[theirs[0]]
        out, into = begin[mine[0]], begin[theirs[0]]
        if what == "both":
            s.sendrecv(peer, sent, peer, got, out, into)
        elif what == "send":
            s.send(peer, sent, out)
        else:
            s.recv(peer, got, into)


PIPELINE = 32768 * 8  # bytes below which MPICH does not cut a block


@algorithm("allgatherv", "mpich_ring", "neighbour ring, blocks cut into pieces; P-1 steps or more")
def pipelined_ring(s: Builder, c: Call) -> None:
    """Pieces of the smallest block, at least 256 KiB, travel round the ring. MPICH."""
    size, counts, begin = c.size, c.recv_counts or (), block_places(c)
    left, right = (c.rank - 1) % size, (c.rank + 1) % size
    total = sum(counts)
    to_receive, to_send = total - counts[c.rank], total - counts[right]
    piece = min(counts)
    if piece * c.type_size < PIPELINE:
        piece = PIPELINE // c.type_size if c.type_size else total
    piece = max(piece, 1)
    sending, receiving = c.rank, left
    sent = received = 0
    while to_send or to_receive:
        now_out = min(piece, counts[sending] - sent) if to_send else 0
        now_in = min(piece, counts[receiving] - received) if to_receive else 0
        out_bytes, in_bytes = now_out * c.type_size, now_in * c.type_size
        out, into = begin[sending] + sent * c.type_size, begin[receiving] + received * c.type_size
        if now_out and now_in:
            s.sendrecv(right, out_bytes, left, in_bytes, out, into)
        elif now_in:
            s.recv(left, in_bytes, into)
        elif now_out:
            s.send(right, out_bytes, out)
        to_send -= now_out
        to_receive -= now_in
        sent += now_out
        received += now_in
        if sent == counts[sending]:
            sent, sending = 0, (sending - 1) % size
        if received == counts[receiving]:
            received, receiving = 0, (receiving - 1) % size
