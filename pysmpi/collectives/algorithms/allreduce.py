"""Allreduce: recursive doubling, Rabenseifner's halving and doubling, rings."""

from __future__ import annotations

from pysmpi.collectives.call import Call
from pysmpi.collectives.patterns import blocks_of, byte_ends, fold, segment_count, unfold
from pysmpi.collectives.registry import algorithm
from pysmpi.kernel.schedule import Schedule


@algorithm("allreduce", "default", "flat reduce to rank 0, binomial bcast; (P-1) m at rank 0")
def reduce_then_bcast(s: Schedule, c: Call) -> None:
    """SMPI's `default` reduce, then its `default` bcast."""
    c.call(s, "reduce", "default", root=0)
    c.call(s, "bcast", "default", root=0)


@algorithm("allreduce", "redbcast", "the selection's reduce to rank 0, then its bcast")
def redbcast(s: Schedule, c: Call) -> None:
    """Reduce and bcast as the selection has them."""
    c.call(s, "reduce", root=0)
    c.call(s, "bcast", root=0)


@algorithm("allreduce", "rdb", "exchange with rank XOR 2^k; log2 P (+ 2) steps of m")
def recursive_doubling(s: Schedule, c: Call) -> None:
    """MPICH's short-message allreduce (Thakur, Rabenseifner, Gropp 2005).

    Of the first ranks beyond a power of two, even ones hand their vector to the next rank and
    get the result back at the end.
    """
    rem, inner, me = fold(c.rank, c.size)
    hand_over(s, c, rem)
    if me >= 0:
        mask = 1
        while mask < inner:
            peer = unfold(me ^ mask, rem)
            s.sendrecv(peer, c.nbytes, peer, c.nbytes)
            s.reduce(c.nbytes)
            mask <<= 1
    hand_back(s, c, rem)


def hand_over(s: Schedule, c: Call, rem: int) -> None:
    """Fold the first 2 * rem ranks in pairs: even ones hand their vector over and drop out."""
    if c.rank < 2 * rem:
        if c.rank % 2:
            s.recv(c.rank - 1, c.nbytes)
            s.reduce(c.nbytes)
        else:
            s.send(c.rank + 1, c.nbytes)


def hand_back(s: Schedule, c: Call, rem: int) -> None:
    """Give the result to the ranks that dropped out."""
    if c.rank < 2 * rem:
        if c.rank % 2:
            s.send(c.rank - 1, c.nbytes)
        else:
            s.recv(c.rank + 1, c.nbytes)


@algorithm(
    "allreduce",
    "rab_rdb",
    "recursive-halving reduce-scatter, recursive-doubling allgather; 2 log2 P steps, 2 m (P-1)/P",
)
def rabenseifner(s: Schedule, c: Call) -> None:
    """MPICH's long-message allreduce (Rabenseifner 2004).

    The vector is cut into as many pieces as ranks remain after folding, the last one taking
    what is left over; halving begins with the nearest partner.
    """
    rem, inner, me = fold(c.rank, c.size)
    hand_over(s, c, rem)
    if me >= 0:
        piece = c.count // inner
        ends = [i * piece for i in range(inner)] + [c.count]
        halve_and_double(s, c, me, rem, inner, [end * c.type_size for end in ends])
    hand_back(s, c, rem)


def halve_and_double(s: Schedule, c: Call, me: int, rem: int, inner: int, ends: list[int]) -> None:
    """Reduce-scatter by halving with distance 1, 2, 4..., then allgather back.

    `ends[i]` is the byte at which piece i of the `inner` ones begins.
    """
    first, last = 0, inner
    history = []
    mask = 1
    while mask < inner:
        peer = unfold(me ^ mask, rem)
        middle = first + inner // (mask * 2)
        kept, given = ((first, middle), (middle, last))
        if me & mask:
            kept, given = given, kept
        sent, got = ends[given[1]] - ends[given[0]], ends[kept[1]] - ends[kept[0]]
        s.sendrecv(peer, sent, peer, got)
        s.reduce(got)
        history.append((peer, sent, got))
        first, last = kept
        mask <<= 1
    for peer, sent, got in reversed(history):
        s.sendrecv(peer, got, peer, sent)


@algorithm("allreduce", "lr", "ring reduce-scatter, ring allgather; 2 (P-1) steps of m/P")
def ring(s: Schedule, c: Call) -> None:
    """Patarasuk and Yuan 2009. Fewer elements than ranks: `redbcast`.

    The remainder of count / P goes through the selection's allreduce.
    """
    if c.count < c.size:
        redbcast(s, c)
        return
    piece, rest = divmod(c.count, c.size)
    size = piece * c.type_size
    right, left = (c.rank + 1) % c.size, (c.rank - 1) % c.size
    for i in range(c.size - 1):
        sent, got = (c.rank - 1 - i) % c.size, (c.rank - 2 - i) % c.size
        c.carries(s, sent * size, got * size)
        s.sendrecv(right, size, left, size)
        s.reduce(size)
    for i in range(c.size - 1):
        sent, got = (c.rank - i) % c.size, (c.rank - 1 - i) % c.size
        c.carries(s, sent * size, got * size)
        s.sendrecv(right, size, left, size)
    if rest:
        c.call(s, "allreduce", count=rest, start=c.start + c.size * size)


@algorithm(
    "allreduce",
    "ompi_ring_segmented",
    "ring in phases of 1 MiB segments, ring allgather; else lr",
)
def ring_segmented(s: Schedule, c: Call) -> None:
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
    begin = byte_ends(blocks, c.type_size)
    starts = [[begin[i] + at for at in byte_ends(part, 1)] for i, part in enumerate(parts)]
    right, left = (c.rank + 1) % size, (c.rank - 1) % size
    for phase in range(phases):
        c.carries(s, starts[c.rank][phase], starts[left][phase])
        waiting = s.irecv(left, parts[left][phase])
        s.send(right, parts[c.rank][phase])
        for k in range(2, size):
            block = (c.rank - k + 1) % size
            c.carries(s, starts[block][phase], starts[(block - 1) % size][phase])
            posted = s.irecv(left, parts[(block - 1) % size][phase])
            s.wait(waiting)
            s.reduce(parts[block][phase])
            s.send(right, parts[block][phase])
            waiting = posted
        s.wait(waiting)
        s.reduce(parts[right][phase])
    for k in range(size - 1):
        sent, got = (c.rank + 1 - k) % size, (c.rank - k) % size
        c.carries(s, begin[sent], begin[got])
        s.sendrecv(right, blocks[sent] * c.type_size, left, blocks[got] * c.type_size)
