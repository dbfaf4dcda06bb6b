"""Broadcasts that cut the message into segments and keep every link busy."""

from __future__ import annotations

from pysmpi.collectives import trees
from pysmpi.collectives.building import Builder
from pysmpi.collectives.call import Call
from pysmpi.collectives.patterns import others, segment_count, segments
from pysmpi.collectives.registry import algorithm

SEGMENT = 8192  # bytes of a segment in STAR-MPI's algorithms


def to_rank_zero(s: Builder, c: Call) -> None:
    """Send the whole message from the root to rank 0, where the fixed tree begins."""
    if c.root != 0:
        if c.rank == c.root:
            s.send(0, c.nbytes, c.output)
        elif c.rank == 0:
            s.recv(c.root, c.nbytes, c.output)


def fixed_tree(s: Builder, c: Call, parent: int, children: list[int]) -> None:
    """Pipeline the message in 8192-byte segments down a tree under rank 0 (STAR-MPI).

    Receives of all segments are posted first. A remainder smaller than a segment goes through
    the selection's broadcast.
    """
    to_rank_zero(s, c)
    per_segment = max(1, SEGMENT // c.type_size) if c.type_size else 1
    full, rest = divmod(c.count, per_segment)
    if c.count <= per_segment:
        if parent >= 0:
            s.recv(parent, c.nbytes, c.output)
        for child in children:
            s.send(child, c.nbytes, c.output)
        return
    size = per_segment * c.type_size
    received = s.slots
    if parent >= 0:
        for i in range(full):
            s.irecv(parent, size, c.output + i * size)
    if parent >= 0 and not children:
        s.waitall(received, s.slots)
    else:
        sent = s.slots
        for i in range(full):
            if parent >= 0:
                s.wait(received + i)
            for child in children:
                s.isend(child, size, c.output + i * size)
        s.waitall(sent, s.slots)
    if rest:
        s.call("bcast", count=rest, output=c.output + full * size)


@algorithm("bcast", "NTSL", "chain 0, 1, 2... in 8 KiB segments; root relocated to 0")
def chain(s: Builder, c: Call) -> None:
    """A pipeline along the ranks, independent of the topology (STAR-MPI)."""
    last = c.rank == c.size - 1
    fixed_tree(s, c, c.rank - 1, [] if last else [c.rank + 1])


@algorithm("bcast", "NTSL_Isend", "as NTSL: chain in 8 KiB segments, non-blocking sends")
def chain_isend(s: Builder, c: Call) -> None:
    """The same schedule as `NTSL`; both names exist in SMPI."""
    chain(s, c)


@algorithm("bcast", "NTSB", "binary tree 2r+1, 2r+2 in 8 KiB segments; root relocated to 0")
def binary(s: Builder, c: Call) -> None:
    """A pipeline down a binary tree, independent of the topology (STAR-MPI)."""
    children = [child for child in (2 * c.rank + 1, 2 * c.rank + 2) if child < c.size]
    fixed_tree(s, c, (c.rank - 1) // 2 if c.rank else -1, children)


@algorithm("bcast", "flattree_pipeline", "root to each rank in turn, in 8 KiB segments")
def flat_pipeline(s: Builder, c: Call) -> None:
    """The root sends all segments to the next rank before it turns to another (STAR-MPI).

    The last, shorter segment is sent too; SMPI leaves it out.
    """
    per_segment = max(1, SEGMENT // c.type_size) if c.type_size else 1
    if c.count < per_segment:
        s.call("bcast", "flattree")
        return
    parts = pieces_of(c.output, c.count, per_segment, c.type_size)
    if c.rank != c.root:
        first = s.slots
        for size, place in parts:
            s.irecv(c.root, size, place)
        s.waitall(first, s.slots)
        return
    for peer in others(c.rank, c.size):
        for size, place in parts:
            s.send(peer, size, place)


def pieces_of(base: int, count: int, per_segment: int, type_size: int) -> list[tuple[int, int]]:
    """(bytes, place) of each segment."""
    size = per_segment * type_size
    return [(n * type_size, base + i * size) for i, n in enumerate(segments(count, per_segment))]


def down_tree(s: Builder, c: Call, parent: int, children: list[int], per_segment: int) -> None:
    """Send segments down a tree with two receives in flight (Open MPI's generic broadcast).

    All sends of a segment are waited for before the next segment is taken.
    """
    parts = pieces_of(c.output, c.count, per_segment, c.type_size)

    def pass_on(size: int, place: int) -> None:
        first = s.slots
        for child in children:
            s.isend(child, size, place)
        s.waitall(first, s.slots)

    if c.rank == c.root:
        for size, place in parts:
            pass_on(size, place)
        return
    waiting = -1
    for i, (size, place) in enumerate(parts):
        posted = s.irecv(parent, size, place)
        if i:
            s.wait(waiting)
            if children:
                pass_on(*parts[i - 1])
        waiting = posted
    if parts:
        s.wait(waiting)
        if children:
            pass_on(*parts[-1])


@algorithm("bcast", "ompi_pipeline", "chain from the root in segments of 16, 64 or 128 KiB")
def pipeline(s: Builder, c: Call) -> None:
    """Open MPI's pipeline; the segment follows from lines fitted to P against the size."""
    m = c.nbytes
    segment = 128 << 10
    if c.size < 1.6134e-6 * m + 2.1102:
        segment = 128 << 10
    elif c.size < 2.3679e-6 * m + 1.1787:
        segment = 64 << 10
    elif c.size < 3.2118e-6 * m + 8.7936:
        segment = 16 << 10
    parent, children = trees.chains(c.rank, c.size, c.root, 1)
    down_tree(s, c, parent, children, segment_count(segment, c.type_size, c.count))


@algorithm(
    "bcast",
    "ompi_split_bintree",
    "halves down the two subtrees of a binary tree, then exchanged; 1 or 8 KiB segments",
)
def split_binary(s: Builder, c: Call) -> None:
    """Each half of the message goes down one subtree; partners of both swap their halves.

    Open MPI. Messages too short to split take `SMP_linear`.
    """
    size, root, me = c.size, c.root, c.relative
    segment = max(1024 if c.nbytes < 370728 else 8192, c.type_size)
    counts = ((c.count + 1) // 2, c.count // 2)
    bytes_of = [n * c.type_size for n in counts]
    if not counts[1] or segment > bytes_of[1] or c.type_size == 0:
        s.call("bcast", "SMP_linear")
        return
    starts = (c.output, c.output + bytes_of[0])
    parts = [
        pieces_of(start, k, segment // c.type_size, c.type_size)
        for start, k in zip(starts, counts, strict=True)
    ]
    parent, children = trees.kary(c.rank, size, root, 2)
    half = (me + 1) % 2
    if me == 0:
        for i in range(len(parts[0])):
            for which, child in enumerate(children):
                if i < len(parts[which]):
                    s.send(child, *parts[which][i])
    elif children:
        waiting = s.irecv(parent, *parts[half][0])
        for i in range(1, len(parts[half])):
            posted = s.irecv(parent, *parts[half][i])
            s.wait(waiting)
            for child in children:
                s.send(child, *parts[half][i - 1])
            waiting = posted
        s.wait(waiting)
        for child in children:
            s.send(child, *parts[half][-1])
    else:
        for part in parts[half]:
            s.recv(parent, *part)
    swap_halves(s, c, (bytes_of[0], bytes_of[1]), starts)


def swap_halves(s: Builder, c: Call, sizes: tuple[int, int], starts: tuple[int, int]) -> None:
    """Odd relative ranks hold the first half; a rank swaps with the next one of the other kind."""
    size, half = c.size, (c.relative + 1) % 2
    partner = (c.rank + 1) % size if half == 0 else (c.rank - 1) % size
    last = (c.root - 1) % size
    if size % 2 == 0 and c.rank == c.root:
        s.send(last, sizes[1], starts[1])
    elif size % 2 == 0 and c.rank == last:
        s.recv(c.root, sizes[1], starts[1])
    elif c.rank != c.root:
        other = 1 - half
        s.sendrecv(partner, sizes[half], partner, sizes[other], starts[half], starts[other])
