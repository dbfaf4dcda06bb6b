"""Reduce-scatter: rank r ends with the r-th block of the combined vectors."""

from __future__ import annotations

from pysmpi.collectives.call import Call
from pysmpi.collectives.notes import RECEIVED
from pysmpi.collectives.patterns import byte_ends, doubling_rounds, fold, unfold
from pysmpi.collectives.registry import algorithm
from pysmpi.kernel.schedule import Schedule


def counts_of(c: Call) -> list[int]:
    """The elements of every rank's block."""
    return list(c.recv_counts or ())


@algorithm(
    "reduce_scatter", "default", "flat reduce to rank 0, flat scatterv; unequal blocks: mpich"
)
def reduce_then_scatter(s: Schedule, c: Call) -> None:
    """SMPI's `default`."""
    counts = counts_of(c)
    if any(n != counts[0] for n in counts):
        c.call(s, "reduce_scatter", "mpich")
        return
    c.call(s, "reduce", "default", root=0, count=sum(counts))
    c.call(s, "scatterv", "default", root=0, count=counts[c.rank], send_counts=c.recv_counts)


@algorithm("reduce_scatter_block", "default", "reduce_scatter with equal blocks")
def equal_blocks(s: Schedule, c: Call) -> None:
    """As the selection's reduce_scatter."""
    c.call(s, "reduce_scatter", recv_counts=(c.count,) * c.size)


@algorithm("reduce_scatter", "ompi_ring", "ring, two receives in flight; P-1 steps of one block")
def ring(s: Schedule, c: Call) -> None:
    """Each block travels once round the ring and ends at its owner. Open MPI coll/base."""
    sizes = [n * c.type_size for n in counts_of(c)]
    begin = byte_ends(sizes, 1)
    right, left = (c.rank + 1) % c.size, (c.rank - 1) % c.size
    c.carries(s, begin[left], begin[(c.rank - 2) % c.size])
    waiting = s.irecv(left, sizes[(c.rank - 2) % c.size])
    s.send(right, sizes[left])
    for k in range(2, c.size):
        block = (c.rank - k) % c.size
        c.carries(s, begin[block], begin[(block - 1) % c.size])
        posted = s.irecv(left, sizes[(block - 1) % c.size])
        s.wait(waiting)
        s.reduce(sizes[block])
        s.send(right, sizes[block])
        waiting = posted
    s.wait(waiting)
    s.reduce(sizes[c.rank])


def fold_vectors(s: Schedule, c: Call, rem: int, total: int) -> None:
    """The even ones of the first 2 * rem ranks hand their whole vector to the next rank."""
    if c.rank < 2 * rem:
        if c.rank % 2 == 0:
            s.send(c.rank + 1, total)
        else:
            s.recv(c.rank - 1, total)
            s.reduce(total)


def folded_counts(counts: list[int], rem: int) -> list[int]:
    """Blocks of the ranks that remain: pairs of the first ranks share one."""
    pairs = [counts[2 * i] + counts[2 * i + 1] for i in range(rem)]
    return pairs + counts[2 * rem :]


@algorithm(
    "reduce_scatter",
    "ompi_basic_recursivehalving",
    "halves with the farthest partner first; log2 P (+ 2) steps, m (P-1)/P; commutative",
)
def recursive_halving(s: Schedule, c: Call) -> None:
    """Open MPI coll/base. Operators that do not commute take `mpich_rdb`; SMPI aborts."""
    if not c.commutative:
        c.call(s, "reduce_scatter", "mpich_rdb")
        return
    counts = counts_of(c)
    if sum(counts) == 0:
        return
    rem, inner, me = fold(c.rank, c.size)
    fold_vectors(s, c, rem, sum(counts) * c.type_size)
    if me >= 0:
        ends = byte_ends(folded_counts(counts, rem), c.type_size)
        first, last = 0, inner
        mask = inner >> 1
        while mask:
            peer = unfold(me ^ mask, rem)
            middle = first + mask
            kept, given = (first, middle), (middle, last)
            if me & mask:
                kept, given = given, kept
            sent, got = ends[given[1]] - ends[given[0]], ends[kept[1]] - ends[kept[0]]
            if sent and got:
                arriving = s.irecv(peer, got)
                s.send(peer, sent)
                s.wait(arriving)
            elif sent:
                s.send(peer, sent)
            elif got:
                s.recv(peer, got)
            if got:
                s.reduce(got)
            first, last = kept
            mask >>= 1
    if c.rank < 2 * rem:
        if c.rank % 2 == 0:
            if counts[c.rank]:
                s.recv(c.rank + 1, counts[c.rank] * c.type_size)
        elif counts[c.rank - 1]:
            s.send(c.rank - 1, counts[c.rank - 1] * c.type_size)


def mirror(x: int, bits: int) -> int:
    """`x` with its `bits` bits in reverse order."""
    return int(f"{x:0{bits}b}"[::-1], 2) if bits else 0


@algorithm(
    "reduce_scatter",
    "ompi_butterfly",
    "halves with the nearest partner first, then blocks to their owners; log2 P + 1 (+ 2) steps",
)
def butterfly(s: Schedule, c: Call) -> None:
    """Traeff 2005, for any operator. Open MPI coll/base."""
    counts = counts_of(c)
    total = sum(counts) * c.type_size
    rem, inner, me = fold(c.rank, c.size)
    bits = inner.bit_length() - 1
    fold_vectors(s, c, rem, total)
    own = counts[c.rank] * c.type_size
    if me < 0:
        # The pair's block is with the rank that the bit reversal maps the partner to.
        s.recv(unfold(mirror((c.rank + 1) // 2, bits), rem), own)
        return
    ends = byte_ends(folded_counts(counts, rem), c.type_size)
    first, blocks, mask = 0, inner, 1
    while mask < inner:
        blocks //= 2
        peer = unfold(me ^ mask, rem)
        kept, given = first, first + blocks
        if me & mask:
            kept, given = given, kept
        sent = ends[given + blocks] - ends[given]
        got = ends[kept + blocks] - ends[kept]
        s.sendrecv(peer, sent, peer, got)
        s.reduce(got)
        first = kept
        mask <<= 1
    owner = mirror(me, bits)
    peer = unfold(owner, rem)
    block = 2 * owner if owner < rem else rem + owner
    if owner < rem:
        s.send(peer - 1, counts[block] * c.type_size)
        block += 1
    if owner != me:
        s.sendrecv(peer, counts[block] * c.type_size, peer, own)


@algorithm("reduce_scatter", "mpich_pair", "each block to its owner, rank + i; P-1 steps")
def pairwise(s: Schedule, c: Call) -> None:
    """MPICH's choice for long vectors and commutative operators."""
    sizes = [n * c.type_size for n in counts_of(c)]
    if sum(sizes) == 0:
        return
    own = sizes[c.rank]
    begin = byte_ends(sizes, 1)
    for i in range(1, c.size):
        dest = (c.rank + i) % c.size
        c.carries(s, begin[dest], begin[c.rank])
        s.sendrecv(dest, sizes[dest], (c.rank - i) % c.size, own)
        s.reduce(own)


@algorithm(
    "reduce_scatter", "mpich_rdb", "recursive doubling of all blocks but the subtree's; log2 P (+)"
)
def recursive_doubling(s: Schedule, c: Call) -> None:
    """MPICH's, for short vectors and for operators that do not commute."""
    begin = byte_ends(counts_of(c), c.type_size)
    total = begin[-1]
    for what, peer, mine, theirs in doubling_rounds(c.rank, c.size):
        # A rank needs what its own subtree will keep, so each sends all the rest.
        sent = total - (begin[mine[1]] - begin[mine[0]])
        got = total - (begin[theirs[1]] - begin[theirs[0]])
        if what == "both":
            s.sendrecv(peer, sent, peer, got)
            s.reduce(got)
        elif what == "send":
            # The data of the other subtree, which the peer has not got, and nothing else.
            c.carries(s, RECEIVED)
            s.send(peer, sent)
            c.carries(s)
        else:
            s.recv(peer, got)
            s.reduce(got)


@algorithm(
    "reduce_scatter",
    "mpich_noncomm",
    "halves with the nearest partner first, blocks permuted; log2 P steps; 2^k, equal blocks",
    elsewhere="mpich_rdb",
)
def non_commutative(s: Schedule, c: Call) -> None:
    """MPICH, after Traeff 2005. Unequal blocks take `mpich_rdb` too; SMPI aborts there."""
    counts = counts_of(c)
    if any(n != counts[0] for n in counts):
        recursive_doubling(s, c)
        return
    size, mask = sum(counts) * c.type_size, 1
    while mask < c.size:
        size //= 2
        s.sendrecv(c.rank ^ mask, size, c.rank ^ mask, size)
        s.reduce(size)
        mask <<= 1
