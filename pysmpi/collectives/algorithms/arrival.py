"""Algorithms that follow the order in which ranks arrive (Patarasuk and Yuan 2008, STAR-MPI).

Every rank tells rank 0 that it is there. Rank 0 looks for these messages and serves those who
have arrived as one group, which learns from a list (the header) who belongs to it; then it looks
again. So late ranks do not delay the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pysmpi.collectives.algorithms.bcast_pipelined import SEGMENT, to_rank_zero
from pysmpi.collectives.call import Call
from pysmpi.collectives.notes import NOTHING
from pysmpi.collectives.registry import algorithm
from pysmpi.collectives.running import LOOK, Lookout, call
from pysmpi.kernel.schedule import Schedule

INT = 4  # bytes
LIST = 1024  # numbers of a list of ranks
SHORT_LIST = 128

Parts = Iterator[Schedule]


def header(c: Call, numbers: int) -> int:
    """Bytes of the list of ranks, longer where more ranks need it."""
    return INT * max(numbers, c.size)


def look_patiently(c: Call, look: Lookout, waiting: list[int], times: int) -> Parts:
    """Look at each waiting rank `times` times; take the sign of those who have arrived.

    After each success the round begins anew. The arrived leave `waiting`.
    """
    for _ in range(times):
        i = 0
        while i < len(waiting):
            yield look.pause()
            if not look.seen(waiting[i]):
                i += 1
                continue
            s = Schedule()
            s.recv(waiting.pop(i), 1)
            yield s
            i = 0


def take_header(c: Call, look: Lookout, s: Schedule, numbers: int = LIST) -> None:
    """A rank but 0 signs and takes the list, from whoever sends it."""
    c.carries(s, NOTHING, NOTHING)
    s.send(0, 1)
    s.recv(look.before(c.rank), header(c, numbers))


def neighbours(c: Call, look: Lookout) -> tuple[int, int]:
    """The ranks before and after this one on its list; -1 after the last."""
    group = look.told(c.rank)
    assert group is not None
    place = group.index(c.rank)
    following = group[place + 1] if place + 1 < len(group) else -1
    return look.before(c.rank), following


def chain_down(s: Schedule, source: int, to: int, size: int, pieces: int) -> None:
    """Take pieces from the rank before and hand each on as it comes."""
    received = s.slots
    for _ in range(pieces):
        s.irecv(source, size)
    if to < 0:
        s.waitall(received, s.slots)
        return
    sent = s.slots
    for i in range(pieces):
        s.wait(received + i)
        s.isend(to, size)
    s.waitall(sent, s.slots)


def segments_of(c: Call) -> tuple[int, int, int]:
    """(elements of a segment, full segments, remainder)."""
    per_segment = max(1, SEGMENT // c.type_size) if c.type_size else 1
    full, rest = divmod(c.count, per_segment)
    return per_segment, full, rest


@algorithm("bcast", "arrival_pattern_aware", "chain of arrived ranks behind a list; 8 KiB segments")
def bcast_aware(c: Call, look: Lookout) -> Parts:
    """Messages up to a segment go whole; a remainder through the selection's broadcast.

    Where nobody has arrived since the last look, the next rank is served alone.
    """
    per_segment, full, rest = segments_of(c)
    whole = c.count <= per_segment
    size = per_segment * c.type_size
    pieces = [c.nbytes] if whole else [size] * full
    s = Schedule()
    to_rank_zero(s, c)
    if c.rank == 0:
        yield s
        yield from serve_chains(c, look, pieces)
    else:
        take_header(c, look, s)
        yield s
        source, following = neighbours(c, look)
        s = Schedule()
        if whole:
            s.recv(source, c.nbytes)
        if following >= 0:
            s.send(following, header(c, LIST))
            if whole:
                s.send(following, c.nbytes)
        if not whole:
            chain_down(s, source, following, size, full)
        yield s
    if rest and not whole:
        yield from call(c, look, "bcast", count=rest)


def serve_chains(c: Call, look: Lookout, pieces: list[int]) -> Parts:
    """Rank 0 of `bcast_aware`."""
    waiting = list(range(1, c.size))
    unsigned = []
    while waiting:
        arrived = []
        for rank in range(1, c.size):
            yield look.pause()
            if look.seen(rank) and rank in waiting:
                arrived.append(rank)
        s = Schedule()
        for rank in arrived:
            s.recv(rank, 1)
        group = arrived or waiting[:1]
        if not arrived:
            unsigned += group
        waiting = [rank for rank in waiting if rank not in group]
        look.tell(group)
        s.send(group[0], header(c, LIST))
        for piece in pieces:
            s.send(group[0], piece)
        yield s
    s = Schedule()
    for rank in unsigned:
        s.recv(rank, 1)
    yield s


@algorithm("bcast", "arrival_pattern_aware_wait", "as arrival_pattern_aware, three looks a group")
def bcast_aware_wait(c: Call, look: Lookout) -> Parts:
    """Rank 0 waits a little for more ranks before it sends; its segments are non-blocking."""
    per_segment, full, rest = segments_of(c)
    size, pieces = per_segment * c.type_size, full
    if c.count <= per_segment:
        size, pieces, rest = c.nbytes, 1, 0
    s = Schedule()
    to_rank_zero(s, c)
    if c.rank == 0:
        yield s
        waiting = list(range(1, c.size))
        while waiting:
            before = list(waiting)
            yield from look_patiently(c, look, waiting, 3)
            group = [rank for rank in before if rank not in waiting]
            if group:
                look.tell(group)
                s = Schedule()
                s.send(group[0], header(c, LIST))
                for _ in range(pieces):
                    s.isend(group[0], size)
                s.waitall(0, s.slots)
                yield s
    else:
        take_header(c, look, s)
        yield s
        source, following = neighbours(c, look)
        s = Schedule()
        if following >= 0:
            s.send(following, header(c, LIST))
        chain_down(s, source, following, size, pieces)
        yield s
    if rest:
        yield from call(c, look, "bcast", count=rest)


@algorithm("bcast", "arrival_scatter", "pieces to arrived ranks, who pass them round a ring")
def bcast_scatter(c: Call, look: Lookout) -> Parts:
    """Rank 0 sends each arrived rank the list and its piece, then these ranks form a ring.

    Messages of fewer elements than ranks take `default`; SMPI calls itself there without end.
    """
    if c.count < c.size:
        yield from call(c, look, "bcast", "default")
        return
    s = Schedule()
    to_rank_zero(s, c)
    if c.rank == 0:
        yield s
        waiting = list(range(1, c.size))
        while waiting:
            before = list(waiting)
            yield from look_patiently(c, look, waiting, 3)
            group = [rank for rank in before if rank not in waiting]
            if not group:
                continue
            look.tell(group)
            s = Schedule()
            for rank in group:
                s.send(rank, header(c, SHORT_LIST))
            for rank, size in zip(group, ring_pieces(c, len(group))):
                s.send(rank, size)
            yield s
        return
    s.send(0, 1)
    s.recv(0, header(c, SHORT_LIST))
    yield s
    found = look.told(c.rank)
    assert found is not None
    n, me = len(found), found.index(c.rank)
    sizes = ring_pieces(c, n)
    s = Schedule()
    s.recv(0, sizes[me])
    right, left = found[(me + 1) % n], found[(me - 1) % n]
    for i in range(n - 1):
        s.sendrecv(right, sizes[(me - i) % n], left, sizes[(me - i - 1) % n])
    yield s


def ring_pieces(c: Call, ranks: int) -> list[int]:
    """The bytes of each piece of the message; the last one takes what is left over."""
    piece = c.count // ranks * c.type_size
    return [piece] * (ranks - 1) + [c.nbytes - piece * (ranks - 1)]


@algorithm("reduce", "arrival_pattern_aware", "chain of arrived ranks to rank 0; 8 KiB segments")
def reduce_aware(c: Call, look: Lookout) -> Parts:
    """The last rank of each chain reports to rank 0; a remainder goes through `default`."""
    per_segment, full, rest = segments_of(c)
    whole = c.count <= per_segment
    size, pieces = (c.nbytes, 1) if whole else (per_segment * c.type_size, full)
    if c.rank == 0:
        waiting = list(range(1, c.size))
        while waiting:
            before = list(waiting)
            yield from (look_slowly if whole else look_once)(c, look, waiting)
            group = [rank for rank in before if rank not in waiting]
            if group:
                look.tell(group)
                s = Schedule()
                c.carries(s, NOTHING)
                s.send(group[0], header(c, LIST))
                for i in range(pieces):
                    c.carries(s, 0, i * size)
                    s.recv(group[-1], size)
                    s.reduce(size)
                yield s
    else:
        s = Schedule()
        take_header(c, look, s)
        yield s
        source, following = neighbours(c, look)
        s = Schedule()
        if following >= 0:
            s.send(following, header(c, LIST))
        chain_up(s, c, source if source else -1, max(following, 0), size, pieces, whole)
        yield s
    s = Schedule()
    # What of the remainder is sent along does not count.
    replace(c, count=c.count if whole else c.count - rest).carries(s)
    if c.root != 0:
        if c.rank == 0:
            s.send(c.root, c.nbytes)
        elif c.rank == c.root:
            s.recv(0, c.nbytes)
    yield s
    if rest and not whole:
        start = c.start + full * size
        yield from call(c, look, "reduce", "default", count=rest, start=start)


def look_slowly(c: Call, look: Lookout, waiting: list[int]) -> Parts:
    """One look at each waiting rank with a sleep behind it, then take all signs."""
    arrived = []
    for rank in waiting:
        yield look.pause()
        if look.seen(rank):
            arrived.append(rank)
        s = Schedule()
        s.sleep(LOOK)
        yield s
    s = Schedule()
    c.carries(s, NOTHING, NOTHING)
    for rank in arrived:
        waiting.remove(rank)
        s.recv(rank, 1)
    yield s


def look_once(c: Call, look: Lookout, waiting: list[int]) -> Parts:
    """One look at each waiting rank; after a success the round begins at rank 2."""
    i = 0
    while i < len(waiting):
        yield look.pause()
        if not look.seen(waiting[i]):
            i += 1
            continue
        s = Schedule()
        c.carries(s, NOTHING, NOTHING)
        s.recv(waiting.pop(i), 1)
        yield s
        i = 1 if waiting and waiting[0] == 1 else 0


def chain_up(
    s: Schedule, c: Call, source: int, to: int, size: int, pieces: int, whole: bool
) -> None:
    """Combine pieces from the rank before (-1: none) with one's own and hand them on."""
    if whole:
        c.carries(s)
        if source >= 0:
            s.recv(source, size)
            s.reduce(size)
        s.send(to, size)
        return
    received = s.slots
    if source >= 0:
        for i in range(pieces):
            c.carries(s, 0, i * size)
            s.irecv(source, size)
    sent = s.slots
    for i in range(pieces):
        c.carries(s, i * size)
        if source >= 0:
            s.wait(received + i)
            s.reduce(size)
        s.isend(to, size)
    s.waitall(sent, s.slots)
