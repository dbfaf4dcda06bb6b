"""Reduce-scatter: rank r ends with the r-th block of the combined vectors."""

from __future__ import annotations

from pysmpi.collectives.building import Builder
from pysmpi.collectives.call import Call
from pysmpi.collectives.patterns import byte_ends, doubling_rounds, fold, unfold
from pysmpi.collectives.registry import algorithm
from pysmpi.kernel.schedule import Place


def counts_of(c: Call) -> list[int]:
    """The elements of every rank's block."""
    return list(c.recv_counts or ())


@algorithm(
    "reduce_scatter",
    "default",
    "flat reduce to rank 0, flat scatterv; unequal blocks: mpich",
    ordered=True,
)
def reduce_then_scatter(s: Builder, c: Call) -> None:
    """SMPI's `default`."""
    counts = counts_of(c)
    if any(n != counts[0] for n in counts):
        s.call("reduce_scatter", "mpich")
        return
    s.call("reduce", "default", root=0, count=sum(counts), output=c.input)
    scatter_result(s, c, "default")


def scatter_result(s: Builder, c: Call, algorithm: str | None = None) -> None:
    """Send each rank its block of the combined vector, which rank 0 has instead of its own."""
    count = counts_of(c)[c.rank]
    if c.rank == 0:
        s.move(count * c.type_size, c.input, c.output)
    s.call("scatterv", algorithm, root=0, count=count, send_counts=c.recv_counts)


@algorithm("reduce_scatter_block", "default", "reduce_scatter with equal blocks")
def equal_blocks(s: Builder, c: Call) -> None:
    """As the selection's reduce_scatter."""
    s.call("reduce_scatter", recv_counts=(c.count,) * c.size)


@algorithm("reduce_scatter", "ompi_ring", "ring, two receives in flight; P-1 steps of one block")
def ring(s: Builder, c: Call) -> None:
    """Each block travels once round the ring and ends at its owner. Open MPI coll/base."""
    sizes = [n * c.type_size for n in counts_of(c)]
    begin = [c.input + at for at in byte_ends(sizes, 1)]
    right, left = (c.rank + 1) % c.size, (c.rank - 1) % c.size
    arrived, arriving = s.scratch(), s.scratch()
    waiting = s.irecv(left, sizes[(c.rank - 2) % c.size], arrived)
    s.send(right, sizes[left], begin[left])
    for k in range(2, c.size):
        block = (c.rank - k) % c.size
        posted = s.irecv(left, sizes[(block - 1) % c.size], arriving)
        s.wait(waiting)
        s.reduce(sizes[block], arrived, begin[block], begin[block])
        s.send(right, sizes[block], begin[block])
        waiting = posted
        arrived, arriving = arriving, arrived
    s.wait(waiting)
    s.reduce(sizes[c.rank], arrived, begin[c.rank], c.output)


def fold_vectors(s: Builder, c: Call, rem: int, total: int) -> None:
    """The even ones of the first 2 * rem ranks send their whole vector to the next rank."""
    if c.rank < 2 * rem:
        if c.rank % 2 == 0:
            s.send(c.rank + 1, total, c.input)
        else:
            got = s.scratch()
            s.recv(c.rank - 1, total, got)
            s.reduce(total, got, c.input, c.input)


def folded_counts(counts: list[int], rem: int) -> list[int]:
    """Blocks of the ranks that remain: pairs of the first ranks share one."""
    pairs = [counts[2 * i] + counts[2 * i + 1] for i in range(rem)]
    return pairs + counts[2 * rem :]


@algorithm(
    "reduce_scatter",
    "ompi_basic_recursivehalving",
    "halves with the farthest partner first; log2 P (+ 2) steps, m (P-1)/P; commutative",
)
def recursive_halving(s: Builder, c: Call) -> None:
    """Open MPI coll/base. Operators that do not commute take `mpich_rdb`; SMPI aborts."""
    if not c.commutative:
        s.call("reduce_scatter", "mpich_rdb")
        return
    counts = counts_of(c)
    if sum(counts) == 0:
        return
    rem, inner, me = fold(c.rank, c.size)
    fold_vectors(s, c, rem, sum(counts) * c.type_size)
    begin = byte_ends(counts, c.type_size)
    own_size, own_place = counts[c.rank] * c.type_size, c.input + begin[c.rank]
    if me >= 0:
        vector, arrived = c.input, s.scratch()
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
            theirs, mine = ends[given[0]], ends[kept[0]]
            if sent and got:
                arriving = s.irecv(peer, got, arrived + mine)
                s.send(peer, sent, vector + theirs)
                s.wait(arriving)
            elif sent:
                s.send(peer, sent, vector + theirs)
            elif got:
                s.recv(peer, got, arrived + mine)
            if got:
                left, right = (arrived, vector) if me & mask else (vector, arrived)
                s.reduce(got, left + mine, right + mine, vector + mine)
            first, last = kept
            mask >>= 1
    if c.rank < 2 * rem:
        if c.rank % 2 == 0:
            if counts[c.rank]:
                s.recv(c.rank + 1, own_size, own_place)
        elif counts[c.rank - 1]:
            s.send(c.rank - 1, counts[c.rank - 1] * c.type_size, c.input + begin[c.rank - 1])
    s.move(own_size, own_place, c.output)


def mirror(x: int, bits: int) -> int:
    """`x` with its `bits` bits in reverse order."""
    return int(f"{x:0{bits}b}"[::-1], 2) if bits else 0


@algorithm(
    "reduce_scatter",
    "ompi_butterfly",
    "halves with the nearest partner first, then blocks to their owners; log2 P + 1 (+ 2) steps",
    ordered=True,
)
def butterfly(s: Builder, c: Call) -> None:
    """Traeff 2005, for any operator. Open MPI coll/base."""
    counts = counts_of(c)
    total = sum(counts) * c.type_size
    rem, inner, me = fold(c.rank, c.size)
    bits = inner.bit_length() - 1
    fold_vectors(s, c, rem, total)
    own = counts[c.rank] * c.type_size
    if me < 0:
        # The pair's block is with the rank that the bit reversal maps the partner to.
        s.recv(unfold(mirror((c.rank + 1) // 2, bits), rem), own, c.output)
        return
    vector, arrived = c.input, s.scratch()
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
        mine = ends[kept]
        s.sendrecv(peer, sent, peer, got, vector + ends[given], arrived + mine)
        left, right = (arrived, vector) if me & mask else (vector, arrived)
        s.reduce(got, left + mine, right + mine, vector + mine)
        first = kept
        mask <<= 1
    owner = mirror(me, bits)
    peer = unfold(owner, rem)
    block = 2 * owner if owner < rem else rem + owner
    place = vector + ends[owner]
    if owner < rem:
        size = counts[block] * c.type_size
        s.send(peer - 1, size, place)
        block += 1
        place += size
    if owner != me:
        s.sendrecv(peer, counts[block] * c.type_size, peer, own, place, c.output)
    else:
        s.move(own, place, c.output)


@algorithm("reduce_scatter", "mpich_pair", "each block to its owner, rank + i; P-1 steps")
def pairwise(s: Builder, c: Call) -> None:
    """MPICH's choice for long vectors and commutative operators."""
    sizes = [n * c.type_size for n in counts_of(c)]
    if sum(sizes) == 0:
        return
    own = sizes[c.rank]
    begin, got = byte_ends(sizes, 1), s.scratch()
    s.move(own, c.input + begin[c.rank], c.output)
    for i in range(1, c.size):
        dest = (c.rank + i) % c.size
        s.sendrecv(dest, sizes[dest], (c.rank - i) % c.size, own, c.input + begin[dest], got)
        s.reduce(own, c.output, got, c.output)


@algorithm(
    "reduce_scatter",
    "mpich_rdb",
    "recursive doubling of all blocks but the subtree's; log2 P (+)",
    ordered=True,
)
def recursive_doubling(s: Builder, c: Call) -> None:
    """MPICH's, for short vectors and for operators that do not commute."""
    counts = counts_of(c)
    begin = byte_ends(counts, c.type_size)
    total, arrived = begin[-1], s.scratch()

    def but(vector: int, blocks: tuple[int, int]) -> Place:
        first, last = begin[blocks[0]], begin[blocks[1]]
        return ((vector, first), (vector + last, total - last))

    for what, peer, mine, theirs in doubling_rounds(c.rank, c.size):
        # A rank needs the blocks of its own subtree, so each sends all others.
        sent = total - (begin[mine[1]] - begin[mine[0]])
        got = total - (begin[theirs[1]] - begin[theirs[0]])
        if what == "send":
            # The received data of the other subtree.
            s.send(peer, sent, but(arrived, mine))
            continue
        into, own = but(arrived, theirs), but(c.input, theirs)
        if what == "both":
            s.sendrecv(peer, sent, peer, got, but(c.input, mine), into)
        else:
            s.recv(peer, got, into)
        left, right = (into, own) if theirs[0] < c.rank else (own, into)
        s.reduce(got, left, right, own)
    s.move(counts[c.rank] * c.type_size, c.input + begin[c.rank], c.output)


@algorithm(
    "reduce_scatter",
    "mpich_noncomm",
    "halves with the nearest partner first, blocks permuted; log2 P steps; 2^k, equal blocks",
    elsewhere="mpich_rdb",
    ordered=True,
)
def non_commutative(s: Builder, c: Call) -> None:
    """MPICH, after Traeff 2005. Unequal blocks take `mpich_rdb` too; SMPI aborts there."""
    counts = counts_of(c)
    if any(n != counts[0] for n in counts):
        recursive_doubling(s, c)
        return
    block, size, mask = counts[0] * c.type_size, sum(counts) * c.type_size, 1
    bits = c.size.bit_length() - 1
    permuted, got = s.scratch(), s.scratch()
    s.move(size, lambda: [(c.input + mirror(i, bits) * block, block) for i in range(c.size)],
           permuted)  # fmt: skip
    kept = permuted
    while mask < c.size:
        size //= 2
        peer = c.rank ^ mask
        if peer < c.rank:
            s.sendrecv(peer, size, peer, size, kept, got)
            kept += size
            s.reduce(size, got, kept, kept)
        else:
            s.sendrecv(peer, size, peer, size, kept + size, got)
            s.reduce(size, kept, got, kept)
        mask <<= 1
    s.move(block, kept, c.output)
