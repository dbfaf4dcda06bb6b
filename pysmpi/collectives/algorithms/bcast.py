"""Broadcasts along trees, and by scatter and allgather."""

from __future__ import annotations

from pysmpi.collectives.building import Builder
from pysmpi.collectives.bulk import isend_each
from pysmpi.collectives.call import Call
from pysmpi.collectives.patterns import doubling_rounds, others
from pysmpi.collectives.registry import algorithm


@algorithm("bcast", "binomial_tree", "binomial tree, whole message; ceil(log2 P) steps of m")
def binomial_tree(s: Builder, c: Call) -> None:
    """Each rank that has the message sends it to the rank half the remaining distance away.

    MPICH's short-message broadcast.
    """
    me, size, nbytes = c.relative, c.size, c.nbytes
    mask = 1
    while mask < size and not me & mask:
        mask <<= 1
    if me:
        s.recv(c.actual(me - mask), nbytes, c.output)
    mask >>= 1
    while mask:
        if me + mask < size:
            s.send(c.actual(me + mask), nbytes, c.output)
        mask >>= 1


@algorithm("bcast", "flattree", "root to all at once; 1 step, (P-1) m leave the root")
def flat_tree(s: Builder, c: Call) -> None:
    """The root starts all sends in rank order and waits for them (STAR-MPI)."""
    if c.rank != c.root:
        s.recv(c.root, c.nbytes, c.output)
        return
    first = s.slots
    isend_each(s, others(c.rank, c.size), c.nbytes, c.output)
    s.waitall(first, s.slots)


@algorithm("bcast", "mvapich2_knomial_intra_node", "4-nomial tree; ceil(log4 P) steps of m")
def knomial(s: Builder, c: Call) -> None:
    """Each rank starts the sends to up to three children of a level together (MVAPICH2)."""
    s.prepare_nodes()
    knomial_tree(s, c, 4)


def knomial_tree(s: Builder, c: Call, k: int) -> None:
    """The k-nomial tree from the root, for every number of ranks."""
    me = c.relative
    mask = 1
    while mask < c.size:
        if me % (k * mask):
            s.recv(c.actual(me // (k * mask) * (k * mask)), c.nbytes, c.output)
            break
        mask *= k
    mask //= k
    while mask:
        first = s.slots
        for i in range(1, k):
            if me + mask * i < c.size:
                s.isend(c.actual(me + mask * i), c.nbytes, c.output)
        s.waitall(first, s.slots)
        mask //= k


def scatter_pieces(s: Builder, c: Call) -> int:
    """Scatter the bytes along the binomial tree; return the size of a piece.

    Piece i belongs to the i-th rank from the root; the last pieces may be short or empty, and
    empty ones are not sent. The first phase of MPICH's long-message broadcasts.
    """
    me, total = c.relative, c.nbytes
    piece = -(-total // c.size)
    have = total if me == 0 else 0
    mask = 1
    while mask < c.size and not me & mask:
        mask <<= 1
    if me:
        # The sender holds the pieces of its subtree and keeps the first `mask` of them.
        have = max(0, min(total - me * piece, mask * piece))
        if have:
            s.recv(c.actual(me - mask), have, c.output + me * piece)
    mask >>= 1
    while mask:
        if me + mask < c.size:
            given = have - piece * mask
            if given > 0:
                s.send(c.actual(me + mask), given, c.output + (me + mask) * piece)
                have -= given
        mask >>= 1
    return piece


@algorithm(
    "bcast",
    "scatter_LR_allgather",
    "binomial scatter, ring allgather; log2 P + P-1 steps, 2 m (P-1)/P",
)
def scatter_ring(s: Builder, c: Call) -> None:
    """MPICH's broadcast of very long messages (Thakur, Rabenseifner, Gropp 2005)."""
    piece = scatter_pieces(s, c)
    left, right = (c.rank - 1) % c.size, (c.rank + 1) % c.size
    sizes = [max(0, min(piece, c.nbytes - i * piece)) for i in range(c.size)]
    me = c.relative
    for i in range(c.size - 1):
        sent, got = (me - i) % c.size, (me - i - 1) % c.size
        out, into = c.output + sent * piece, c.output + got * piece
        s.sendrecv(right, sizes[sent], left, sizes[got], out, into)


@algorithm(
    "bcast",
    "scatter_rdb_allgather",
    "binomial scatter, recursive-doubling allgather; 2 log2 P steps, 2 m (P-1)/P",
)
def scatter_doubling(s: Builder, c: Call) -> None:
    """MPICH's broadcast of medium messages (Thakur, Rabenseifner, Gropp 2005)."""
    if c.nbytes == 0:
        return
    piece = scatter_pieces(s, c)

    def size_of(blocks: tuple[int, int]) -> int:
        return min(c.nbytes, blocks[1] * piece) - min(c.nbytes, blocks[0] * piece)

    for what, peer, mine, theirs in doubling_rounds(c.relative, c.size):
        out = c.output + min(c.nbytes, mine[0] * piece)
        into = c.output + min(c.nbytes, theirs[0] * piece)
        if what == "both":
            s.sendrecv(c.actual(peer), size_of(mine), c.actual(peer), size_of(theirs), out, into)
        elif what == "send":
            s.send(c.actual(peer), size_of(mine), out)
        else:
            s.recv(c.actual(peer), size_of(theirs), into)
