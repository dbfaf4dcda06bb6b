"""Trees over the ranks of a communicator, as (parent, children) of one rank.

They are those of Open MPI's `coll/base/coll_base_topo.c`. The parent of the root is -1.
"""

from __future__ import annotations

MAX_FANOUT = 32


def kary(rank: int, size: int, root: int, fanout: int) -> tuple[int, list[int]]:
    """Each node of level l has its children `fanout^l` ranks apart, counted from the root."""
    if size < 2:
        return -1, []
    v = (rank - root) % size
    width, below = 1, 0  # ranks of the node's level; ranks above it
    while v >= below + width:
        below += width
        width *= fanout
    children = [
        (v + width * (i + 1) + root) % size for i in range(fanout) if v + width * (i + 1) < size
    ]
    if v == 0:
        return -1, children
    if v < fanout:
        return root, children
    parent, step = v, width // fanout
    while parent >= below:
        parent -= step
    return (parent + root) % size, children


def in_order_binary(rank: int, size: int) -> tuple[int, list[int]]:
    """A binary tree with the order of ranks as its post-order; rank P-1 is the root."""
    parent_of = {}
    shift, me, top = 0, rank, size - 1
    children: list[int] = []
    while True:
        right_size = size >> 1
        left = top - 1 if size > 1 else -1
        right = right_size - 1 if left > 0 else -1
        if me == top:
            children = [child + shift for child in (left, right) if child >= 0]
            break
        if me > right:
            if me == left:
                parent_of[rank] = top + shift
            size -= right_size + 1
            shift += right_size
            me -= right_size
            top = size - 1
        else:
            if me == right:
                parent_of[rank] = top + shift
            size = right_size
            top = right
    return parent_of.get(rank, -1), children


def binomial(rank: int, size: int, root: int) -> tuple[int, list[int]]:
    """The binomial tree by highest bit: children of v are v XOR 2^j above its highest bit."""
    v = (rank - root) % size
    mask = 1 << v.bit_length()
    parent = -1 if v == 0 else ((v ^ (mask >> 1)) + root) % size
    children = []
    while mask < size and v ^ mask < size:
        children.append(((v ^ mask) + root) % size)
        mask <<= 1
    return parent, children


def in_order_binomial(rank: int, size: int, root: int) -> tuple[int, list[int]]:
    """The binomial tree by lowest bit: every subtree is a range of ranks after its root."""
    v = (rank - root) % size
    children: list[int] = []
    mask = 1
    while mask < size:
        if v & mask:
            return ((v ^ mask) + root) % size, children
        if v | mask < size:
            children.append(((v | mask) + root) % size)
        mask <<= 1
    return -1, children


def chains(rank: int, size: int, root: int, fanout: int) -> tuple[int, list[int]]:
    """`fanout` chains hang under the root; the first ones are longer by one where needed."""
    if size < 2:
        return -1, []
    fanout = max(1, min(fanout, MAX_FANOUT, size - 1))
    short, longer = divmod(size - 1, fanout)
    v = (rank - root) % size
    if v == 0:
        heads = [1 + i * short + min(i, longer) for i in range(fanout)]
        return -1, [(head + root) % size for head in heads]
    if v - 1 < longer * (short + 1):
        place, length = (v - 1) % (short + 1), short + 1
    else:
        place, length = (v - 1 - longer * (short + 1)) % short, short
    parent = root if place == 0 else (rank - 1) % size
    return parent, [] if place == length - 1 else [(rank + 1) % size]
