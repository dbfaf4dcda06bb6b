"""Allreduce: recursive doubling, Rabenseifner's halving and doubling, rings."""

from __future__ import annotations

from pysmpi.collectives.building import Builder
from pysmpi.collectives.call import Call
from pysmpi.collectives.patterns import blocks_of, byte_ends, fold, segment_count, unfold
from pysmpi.collectives.registry import algorithm


@algorithm(
    "allreduce", "default", "flat reduce to rank 0, binomial bcast; (P-1) m at rank 0", ordered=True
)
def reduce_then_bcast(s: Builder, c: Call) -> None:
    """SMPI's `default` reduce, then its `default` bcast."""
    s.call("reduce", "default", root=0)
    s.call("bcast", "default", root=0)


@algorithm("allreduce", "redbcast", "the selection's reduce to rank 0, then its bcast")
def redbcast(s: Builder, c: Call) -> None:
    """Reduce and bcast as the selection has them."""
    s.call("reduce", root=0)
    s.call("bcast", root=0)


@algorithm("allreduce", "rdb", "exchange with rank XOR 2^k; log2 P (+ 2) steps of m", ordered=True)
def recursive_doubling(s: Builder, c: Call) -> None:
    """MPICH's short-message allreduce (Thakur, Rabenseifner, Gropp 2005).

    Of the first ranks beyond a power of two, even ones send their vector to the next rank and get
    the result at the end.
    """
    rem, inner, me = fold(c.rank, c.size)
    hand_over(s, c, rem)
    if me >= 0:
        n, own, got = c.nbytes, c.output, s.scratch()
        mask = 1
        while mask < inner:
            peer = unfold(me ^ mask, rem)
            s.sendrecv(peer, n, peer, n, own, got)
            if peer < c.rank:
                s.reduce(n, got, own, own)
            else:
                s.reduce(n, own, got, own)
            mask <<= 1
    hand_back(s, c, rem)


def hand_over(s: Builder, c: Call, rem: int) -> None:
    """Fold the first 2 * rem ranks in pairs: even ones send their vector and do not take part."""
    if c.rank < 2 * rem:
        if c.rank % 2:
            got = s.scratch()
            s.recv(c.rank - 1, c.nbytes, got)
            s.reduce(c.nbytes, got, c.output, c.output)
        else:
            s.send(c.rank + 1, c.nbytes, c.output)


def hand_back(s: Builder, c: Call, rem: int) -> None:
    """Give the result to the ranks that dropped out."""
    if c.rank < 2 * rem:
        if c.rank % 2:
            s.send(c.rank - 1, c.nbytes, c.output)
        else:
            s.recv(c.rank + 1, c.nbytes, c.output)


@algorithm(
    "allreduce",
    "rab_rdb",
    "recursive-halving reduce-scatter, recursive-doubling allgather; 2 log2 P steps, 2 m (P-1)/P",
)
def rabenseifner(s: Builder, c: Call) -> None:
    """MPICH's long-message allreduce (Rabenseifner 2004).

    The number of pieces is the number of ranks that remain after folding; the last piece takes the
    remainder. Halving begins with the nearest partner.
    """
    rem, inner, me = fold(c.rank, c.size)
    hand_over(s, c, rem)
    if me >= 0:
        piece = c.count // inner
        ends = [i * piece for i in range(inner)] + [c.count]
        halve_and_double(s, c, me, rem, inner, [end * c.type_size for end in ends])
    hand_back(s, c, rem)


def halve_and_double(s: Builder, c: Call, me: int, rem: int, inner: int, ends: list[int]) -> None:
    """Reduce-scatter by halving with distance 1, 2, 4..., then allgather back.

    `ends[i]` is the byte at which piece i of the `inner` ones begins.
    """
    own, got = c.output, s.scratch()
    first, last = 0, inner
    history = []
    mask = 1
    while mask < inner:
        peer = unfold(me ^ mask, rem)
        middle = first + inner // (mask * 2)
        kept, given = ((first, middle), (middle, last))
        if me & mask:
            kept, given = given, kept
        theirs, mine = ends[given[0]], ends[kept[0]]
        sent, taken = ends[given[1]] - theirs, ends[kept[1]] - mine
        s.sendrecv(peer, sent, peer, taken, own + theirs, got + mine)
        left, right = (got, own) if me & mask else (own, got)
        s.reduce(taken, left + mine, right + mine, own + mine)
        history.append((peer, sent, taken, own + theirs, own + mine))
        first, last = kept
        mask <<= 1
    for peer, sent, taken, theirs, mine in reversed(history):
        s.sendrecv(peer, taken, peer, sent, mine, theirs)


@algorithm("allreduce", "lr", "ring reduce-scatter, ring allgather; 2 (P-1) steps of m/P")
def ring(s: Builder, c: Call) -> None:
    """Patarasuk and Yuan 2009. Fewer elements than ranks: `redbcast`.

    The remainder of count / P goes through the selection's allreduce.
    """
    if c.count < c.size:
        redbcast(s, c)
        return
    piece, rest = divmod(c.count, c.size)
    size = piece * c.type_size
    right, left = (c.rank + 1) % c.size, (c.rank - 1) % c.size
    own, got = c.output, s.scratch()
    for i in range(c.size - 1):
        sent, mine = own + (left - i) % c.size * size, own + (left - 1 - i) % c.size * size
        s.sendrecv(right, size, left, size, sent, got)
        s.reduce(size, got, mine, mine)
    for i in range(c.size - 1):
        sent, taken = own + (c.rank - i) % c.size * size, own + (left - i) % c.size * size
        s.sendrecv(right, size, left, size, sent, taken)
    if rest:
        s.call("allreduce", count=rest, output=own + c.size * size)


@algorithm(
    "allreduce",
    "ompi_ring_segmented",
    "ring in phases of 1 MiB segments, ring allgather; else lr",
)
def ring_segmented(s: Builder, c: Call) -> None:
    """Open MPI's ring for vectors of at least P segments; shorter ones take `lr`."""
    size = c.size
    per_segment = segment_count(1 << 20, c.type_size, c.count)
    if c.count < max(1, size * per_segment):
        ring(s, c)
        return
    phases, beyond = divmod(c.count, size * per_segment)
    if beyond >= size and beyond > size * per_segment // 2:
        phases += 1
    blocks = blocks_of(c.count, size)
    parts = [[n * c.type_size for n in blocks_of(block, phases)] for block in blocks]
    begin = [c.output + at for at in byte_ends(blocks, c.type_size)]
    starts = [[begin[i] + at for at in byte_ends(part, 1)] for i, part in enumerate(parts)]
    right, left = (c.rank + 1) % size, (c.rank - 1) % size
    for phase in range(phases):
        sizes = [part[phase] for part in parts]
        ring_combine(s, c, sizes, [start[phase] for start in starts])
    for k in range(size - 1):
        sent, got = (c.rank + 1 - k) % size, (c.rank - k) % size
        out, taken = blocks[sent] * c.type_size, blocks[got] * c.type_size
        s.sendrecv(right, out, left, taken, begin[sent], begin[got])


def ring_combine(s: Builder, c: Call, sizes: list[int], places: list[int]) -> None:
    """Each block travels round the ring and ends, combined, at the rank before its owner.

    `sizes` and `places` are those of all blocks. Two receives are in flight (Open MPI).
    """
    size = c.size
    right, left = (c.rank + 1) % size, (c.rank - 1) % size
    arrived, arriving = s.scratch(), s.scratch()
    waiting = s.irecv(left, sizes[left], arrived)
    s.send(right, sizes[c.rank], places[c.rank])
    for k in range(2, size):
        block = (c.rank - k + 1) % size
        posted = s.irecv(left, sizes[(block - 1) % size], arriving)
        s.wait(waiting)
        s.reduce(sizes[block], arrived, places[block], places[block])
        s.send(right, sizes[block], places[block])
        waiting = posted
        arrived, arriving = arriving, arrived
    s.wait(waiting)
    s.reduce(sizes[right], arrived, places[right], places[right])
