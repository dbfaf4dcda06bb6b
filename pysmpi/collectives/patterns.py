"""Numbers and places that many algorithms share."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import accumulate

from pysmpi.kernel.numbers import shared
from pysmpi.kernel.schedule import Place


def around(base: int, first: int, blocks: int, size: int, nbytes: int) -> Place:
    """The place of blocks of `nbytes` from block `first` on, wrapping around at `size`."""
    first %= size
    beyond = first + blocks - size
    if beyond <= 0:
        return base + first * nbytes
    return ((base + first * nbytes, (blocks - beyond) * nbytes), (base, beyond * nbytes))


def of_ranks(base: int, ranks: Sequence[int], nbytes: int) -> Place:
    """The place of the blocks of `ranks`, one behind the other."""
    if ranks[-1] - ranks[0] == len(ranks) - 1:
        return base + ranks[0] * nbytes
    return lambda: [(base + rank * nbytes, nbytes) for rank in ranks]


@lru_cache(maxsize=16)
def wheel(size: int) -> list[int]:
    """The ranks 0 to P-1, three times: slices of it are rings around any rank.

    The list is shared: its numbers are the same objects in every schedule, which keeps large
    schedules small. Do not change it.
    """
    return [shared(rank) for rank in range(size)] * 3


def after(rank: int, size: int) -> list[int]:
    """The other ranks from `rank + 1` upward, around the ring."""
    return wheel(size)[rank + 1 : rank + size]


def before(rank: int, size: int) -> list[int]:
    """The other ranks from `rank - 1` downward, around the ring."""
    return wheel(size)[rank + size - 1 : rank : -1]


def others(rank: int, size: int) -> list[int]:
    """The other ranks from 0 upward."""
    ranks = wheel(size)
    return ranks[:rank] + ranks[rank + 1 : size]


def is_power_of_two(n: int) -> bool:
    """Whether `n` is 2^k."""
    return n & (n - 1) == 0


def floor_power_of_two(n: int) -> int:
    """The greatest 2^k up to `n` (n at least 1)."""
    return 1 << (n.bit_length() - 1)


def fold(rank: int, size: int) -> tuple[int, int, int]:
    """Fold `size` ranks onto the greatest power of two, pairing the first ones.

    Returns (number of ranks folded away, remaining ranks, new rank or -1): of the first 2 * rem
    ranks the even ones send their data to the odd ones.
    """
    remaining = floor_power_of_two(size)
    rem = size - remaining
    if rank >= 2 * rem:
        return rem, remaining, rank - rem
    return rem, remaining, rank // 2 if rank % 2 else -1


def unfold(new_rank: int, rem: int) -> int:
    """The rank that `fold` renumbered to `new_rank`."""
    return new_rank * 2 + 1 if new_rank < rem else new_rank + rem


def mesh2(size: int) -> tuple[int, int]:
    """(rows, ranks of a row) of the squarest mesh, rows no more than columns; (1, P) for primes."""
    x = math.isqrt(size)
    while x > 1 and size % x:
        # Factors are tried upwards from the root, as STAR-MPI does, and then exchanged.
        x += 1
        if x > size // 2:
            return 1, size
    return min(x, size // x), max(x, size // x)


def mesh3(size: int) -> tuple[int, int]:
    """(side X, depth Z) with P = X X Z, X tried upwards from the cube root; (1, P) if none."""
    x = int(size ** (1 / 3) + 1e-9)
    while x <= size // 3:
        if x and size % (x * x) == 0:
            return x, size // (x * x)
        x += 1
    return 1, size


def blocks_of(count: int, parts: int) -> list[int]:
    """Split `count` into `parts` with sizes that differ by at most one, larger ones first."""
    small, larger = divmod(count, parts)
    return [small + 1] * larger + [small] * (parts - larger)


def byte_ends(counts: list[int], type_size: int) -> list[int]:
    """The byte at which each piece begins, and at last the total."""
    return [0, *accumulate(n * type_size for n in counts)]


def segment_count(segment: int, type_size: int, count: int) -> int:
    """Elements of a segment of `segment` bytes, as Open MPI rounds them.

    `count` (no segments) if the segment is 0, smaller than an element, or not smaller than the
    message.
    """
    if not type_size <= segment < type_size * count:
        return count
    elements, residual = divmod(segment, type_size)
    return elements + (residual > type_size // 2)


def segments(count: int, per_segment: int) -> list[int]:
    """Element counts of the segments of a message; the last one may be shorter."""
    if count <= 0:
        return []
    full, rest = divmod(count, per_segment)
    return [per_segment] * full + ([rest] if rest else [])


def doubling_rounds(
    rank: int, size: int
) -> Iterator[tuple[str, int, tuple[int, int], tuple[int, int]]]:
    """Recursive doubling for any number of ranks, as in MPICH.

    Yields (what, peer, (first, last) blocks to send, (first, last) blocks to receive) with
    what = "both", "send" or "recv". Block i starts at rank i; ranges exclude their last. If a half
    of a subtree is incomplete, ranks without a partner get its blocks along a tree.
    """
    mask, level = 1, 0
    while mask < size:
        peer = rank ^ mask
        mine = rank >> level << level
        theirs = peer >> level << level
        my_blocks = (mine, min(mine + mask, size))
        their_blocks = (theirs, min(theirs + mask, size))
        if peer < size:
            yield "both", peer, my_blocks, their_blocks
        if theirs + mask > size:
            # The subtree of the partners is incomplete: ranks that have its blocks send them on.
            missing = size - mine - mask
            step, k = mask >> 1, level
            while step:
                peer = rank ^ step
                root = rank >> k << k
                if rank < peer and rank < root + missing <= peer:
                    yield "send", peer, their_blocks, (0, 0)
                elif peer < rank and peer < root + missing <= rank:
                    yield "recv", peer, (0, 0), their_blocks
                step >>= 1
                k -= 1
        mask <<= 1
        level += 1
