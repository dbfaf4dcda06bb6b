"""Algorithms that follow the order in which ranks arrive (Patarasuk and Yuan 2008, STAR-MPI).

Every rank sends a sign to rank 0 when it arrives. Rank 0 looks for these messages and serves the
ranks that have arrived as one group; they get a list (the header) of the members. Then it looks
again. Late ranks therefore do not delay the others.
"""

from __future__ import annotations

from collections.abc import Iterator

from pysmpi.collectives.algorithms.bcast_pipelined import SEGMENT, to_rank_zero
from pysmpi.collectives.building import LOOK, NOTHING, Builder
from pysmpi.collectives.call import Call
from pysmpi.collectives.registry import algorithm
from pysmpi.collectives.running import Lookout

INT = 4  # bytes
LIST = 1024  # numbers of a list of ranks
SHORT_LIST = 128

Parts = Iterator[Builder]


def header(c: Call, numbers: int) -> int:
    """Bytes of the list of ranks, longer where more ranks need it."""
    return INT * max(numbers, c.size)


def look_patiently(c: Call, look: Lookout, waiting: list[int], times: int) -> Parts:
    """Look for the sign of each waiting rank `times` times; receive the signs that have arrived.

    After each success the round begins again. Ranks that have arrived are removed from `waiting`.
    """
    for _ in range(times):
        i = 0
        while i < len(waiting):
            yield look.pause()
            if not look.seen(waiting[i]):
                i += 1
                continue
            s = look.begin(c)
            s.recv(waiting.pop(i), 1, NOTHING)
            yield s
            i = 0


def take_header(c: Call, look: Lookout, s: Builder, numbers: int = LIST) -> None:
    """A rank other than 0 signs and receives the list, from any sender."""
    s.send(0, 1, NOTHING)
    s.recv(look.before(c.rank), header(c, numbers), NOTHING)


def neighbours(c: Call, look: Lookout) -> tuple[int, int]:
    """The ranks before and after this one on its list; -1 after the last."""
    group = look.published(c.rank)
    assert group is not None
    place = group.index(c.rank)
    following = group[place + 1] if place + 1 < len(group) else -1
    return look.before(c.rank), following


def chain_down(s: Builder, source: int, to: int, size: int, pieces: int, at: int) -> None:
    """Receive pieces from the previous rank and send each on when it arrives."""
    received = s.slots
    for i in range(pieces):
        s.irecv(source, size, at + i * size)
    if to < 0:
        s.waitall(received, s.slots)
        return
    sent = s.slots
    for i in range(pieces):
        s.wait(received + i)
        s.isend(to, size, at + i * size)
    s.waitall(sent, s.slots)


def segments_of(c: Call) -> tuple[int, int, int]:
    """(elements of a segment, full segments, remainder)."""
    per_segment = max(1, SEGMENT // c.type_size) if c.type_size else 1
    full, rest = divmod(c.count, per_segment)
    return per_segment, full, rest


@algorithm("bcast", "arrival_pattern_aware", "chain of arrived ranks behind a list; 8 KiB segments")
def bcast_aware(c: Call, look: Lookout) -> Parts:
    """Messages up to a segment go whole; a remainder through the selection's broadcast.

    If no rank has arrived since the last look, the next rank is served alone.
    """
    per_segment, full, rest = segments_of(c)
    whole = c.count <= per_segment
    size = per_segment * c.type_size
    pieces = [c.nbytes] if whole else [size] * full
    s = look.begin(c)
    to_rank_zero(s, c)
    if c.rank == 0:
        yield s
        yield from serve_chains(c, look, pieces)
    else:
        take_header(c, look, s)
        yield s
        source, following = neighbours(c, look)
        s = look.begin(c)
        if whole:
            s.recv(source, c.nbytes, c.output)
        if following >= 0:
            s.send(following, header(c, LIST), NOTHING)
            if whole:
                s.send(following, c.nbytes, c.output)
        if not whole:
            chain_down(s, source, following, size, full, c.output)
        yield s
    if rest and not whole:
        yield from look.call(c, "bcast", count=rest, output=c.output + full * size)


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
        s = look.begin(c)
        for rank in arrived:
            s.recv(rank, 1, NOTHING)
        group = arrived or waiting[:1]
        if not arrived:
            unsigned += group
        waiting = [rank for rank in waiting if rank not in group]
        look.publish(group)
        s.send(group[0], header(c, LIST), NOTHING)
        place = c.output
        for piece in pieces:
            s.send(group[0], piece, place)
            place += piece
        yield s
    s = look.begin(c)
    for rank in unsigned:
        s.recv(rank, 1, NOTHING)
    yield s


@algorithm("bcast", "arrival_pattern_aware_wait", "as arrival_pattern_aware, three looks a group")
def bcast_aware_wait(c: Call, look: Lookout) -> Parts:
    """Rank 0 waits a little for more ranks before it sends; its segments are non-blocking."""
    per_segment, full, rest = segments_of(c)
    size, pieces = per_segment * c.type_size, full
    if c.count <= per_segment:
        size, pieces, rest = c.nbytes, 1, 0
    s = look.begin(c)
    to_rank_zero(s, c)
    if c.rank == 0:
        yield s
        waiting = list(range(1, c.size))
        while waiting:
            before = list(waiting)
            yield from look_patiently(c, look, waiting, 3)
            group = [rank for rank in before if rank not in waiting]
            if group:
                look.publish(group)
                s = look.begin(c)
                s.send(group[0], header(c, LIST), NOTHING)
                for i in range(pieces):
                    s.isend(group[0], size, c.output + i * size)
                s.waitall(0, s.slots)
                yield s
    else:
        take_header(c, look, s)
        yield s
        source, following = neighbours(c, look)
        s = look.begin(c)
        if following >= 0:
            s.send(following, header(c, LIST), NOTHING)
        chain_down(s, source, following, size, pieces, c.output)
        yield s
    if rest:
        yield from look.call(c, "bcast", count=rest, output=c.output + pieces * size)


@algorithm("bcast", "arrival_scatter", "pieces to arrived ranks, which send them round a ring")
def bcast_scatter(c: Call, look: Lookout) -> Parts:
    """Rank 0 sends each arrived rank the list and its piece, then these ranks form a ring.

    Messages of fewer elements than ranks take `default`; SMPI calls itself there without end.
    """
    if c.count < c.size:
        yield from look.call(c, "bcast", "default")
        return
    s = look.begin(c)
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
            look.publish(group)
            s = look.begin(c)
            for rank in group:
                s.send(rank, header(c, SHORT_LIST), NOTHING)
            place = c.output
            for rank, size in zip(group, ring_pieces(c, len(group))):
                s.send(rank, size, place)
                place += size
            yield s
        return
    s.send(0, 1, NOTHING)
    s.recv(0, header(c, SHORT_LIST), NOTHING)
    yield s
    found = look.published(c.rank)
    assert found is not None
    n, me = len(found), found.index(c.rank)
    sizes = ring_pieces(c, n)
    s = look.begin(c)
    places = [c.output + i * sizes[0] for i in range(n)]
    s.recv(0, sizes[me], places[me])
    right, left = found[(me + 1) % n], found[(me - 1) % n]
    for i in range(n - 1):
        sent, got = (me - i) % n, (me - i - 1) % n
        s.sendrecv(right, sizes[sent], left, sizes[got], places[sent], places[got])
    yield s


def ring_pieces(c: Call, ranks: int) -> list[int]:
    """The bytes of each piece of the message; the last one takes the remainder."""
    piece = c.count // ranks * c.type_size
    return [piece] * (ranks - 1) + [c.nbytes - piece * (ranks - 1)]


@algorithm("reduce", "arrival_pattern_aware", "chain of arrived ranks to rank 0; 8 KiB segments")
def reduce_aware(c: Call, look: Lookout) -> Parts:
    """The last rank of each chain reports to rank 0; a remainder goes through `default`."""
    per_segment, full, rest = segments_of(c)
    whole = c.count <= per_segment
    size, pieces = (c.nbytes, 1) if whole else (per_segment * c.type_size, full)
    got = look.begin(c).scratch()
    if c.rank == 0:
        waiting = list(range(1, c.size))
        while waiting:
            before = list(waiting)
            yield from (look_slowly if whole else look_once)(c, look, waiting)
            group = [rank for rank in before if rank not in waiting]
            if group:
                look.publish(group)
                s = look.begin(c)
                s.send(group[0], header(c, LIST), NOTHING)
                for i in range(pieces):
                    place = c.output + i * size
                    s.recv(group[-1], size, got)
                    s.reduce(size, place, got, place)
                yield s
    else:
        s = look.begin(c)
        take_header(c, look, s)
        yield s
        source, following = neighbours(c, look)
        s = look.begin(c)
        if following >= 0:
            s.send(following, header(c, LIST), NOTHING)
        chain_up(s, c, source if source else -1, max(following, 0), size, pieces, whole, got)
        yield s
    s = look.begin(c)
    if c.root != 0:
        if c.rank == 0:
            s.send(c.root, c.nbytes, c.output)
        elif c.rank == c.root:
            # The part of the remainder that is sent along does not count.
            s.recv(0, c.nbytes, got)
            s.move(pieces * size, got, c.output)
    yield s
    if rest and not whole:
        yield from look.call(c, "reduce", "default", count=rest, output=c.output + full * size)


def look_slowly(c: Call, look: Lookout, waiting: list[int]) -> Parts:
    """One look at each waiting rank with a sleep behind it, then take all signs."""
    arrived = []
    for rank in waiting:
        yield look.pause()
        if look.seen(rank):
            arrived.append(rank)
        s = look.begin(c)
        s.sleep(LOOK)
        yield s
    s = look.begin(c)
    for rank in arrived:
        waiting.remove(rank)
        s.recv(rank, 1, NOTHING)
    yield s


def look_once(c: Call, look: Lookout, waiting: list[int]) -> Parts:
    """One look at each waiting rank; after a success the round begins at rank 2."""
    i = 0
    while i < len(waiting):
        yield look.pause()
        if not look.seen(waiting[i]):
            i += 1
            continue
        s = look.begin(c)
        s.recv(waiting.pop(i), 1, NOTHING)
        yield s
        i = 1 if waiting and waiting[0] == 1 else 0


def chain_up(
    s: Builder, c: Call, source: int, to: int, size: int, pieces: int, whole: bool, got: int
) -> None:
    """Combine pieces from the previous rank (-1: none) with the own ones and send them on."""
    own = c.output
    if whole:
        if source >= 0:
            s.recv(source, size, got)
            s.reduce(size, got, own, own)
        s.send(to, size, own)
        return
    received = s.slots
    if source >= 0:
        for i in range(pieces):
            s.irecv(source, size, got + i * size)
    sent = s.slots
    for i in range(pieces):
        at = i * size
        if source >= 0:
            s.wait(received + i)
            s.reduce(size, got + at, own + at, own + at)
        s.isend(to, size, own + at)
    s.waitall(sent, s.slots)
