"""Trees, given by the number of children of the nodes of each level.

A tree is the tuple of its fan-outs, root's first. Nodes are numbered from the root, level by level.
The nodes of a level divide the nodes of the next level evenly. If a tree has room for more nodes,
only its last level is incomplete.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache

Fanouts = tuple[int, ...]


def room(fanouts: Fanouts) -> int:
    """Nodes that a tree has room for (equation 8)."""
    nodes = level = 1
    for k in fanouts:
        level *= k
        nodes += level
    return nodes


@lru_cache(maxsize=256)
def candidates(nodes: int) -> tuple[Fanouts, ...]:
    """The trees for this number of nodes in which no fan-out can be smaller.

    Fan-outs do not grow from the root downwards; of all orders of the same fan-outs this one has
    the most room. (The condition printed with equation 11 states the opposite; the printed results
    and the text agree with this one.)
    """
    return tuple(_grow((), nodes, 1, 1, nodes - 1)) if nodes > 1 else ((),)


def _grow(prefix: Fanouts, nodes: int, level: int, have: int, largest: int) -> Iterator[Fanouts]:
    last = -(-(nodes - have) // level)  # the fan-out with which this level is the last
    if last <= largest:
        yield (*prefix, last)
    if last > 1:
        yield (*prefix, *(1,) * last)  # below a node with one child all nodes form chains
    for k in range(min(largest, last - 1), 1, -1):
        yield from _grow((*prefix, k), nodes, level * k, have + level * k, k)


def best(nodes: int, seconds: Callable[[Fanouts], float]) -> Fanouts:
    """The cheapest tree; of equals, the one with the smallest fan-outs near the root."""
    return min(candidates(nodes), key=lambda tree: (float(f"{seconds(tree):.12g}"), tree))


def actual(fanouts: Fanouts, nodes: int) -> Fanouts:
    """The largest number of children at each level when the tree holds just `nodes`."""
    result = []
    level, left = 1, nodes - 1
    for k in fanouts:
        below = min(level * k, left)
        result.append(-(-below // level))
        left -= below
        level = below
    return tuple(result)


def family(fanouts: Fanouts, nodes: int, node: int) -> tuple[int, list[int], int]:
    """(parent, children, level) of a node; the root is 0, of level 0, and its parent -1.

    Node j of a level of w has the children j, j + w, j + 2 w... of the next level.
    """
    first, width, depth = 0, 1, 0
    parent = -1
    for depth, k in enumerate((*fanouts, 0)):
        below = min(width * k, nodes - first - width)
        if node < first + width:
            start = first + width
            children = [start + i for i in range(node - first, below, width)]
            return parent, children, depth
        parent = first + (node - first - width) % width
        first, width = first + width, below
    raise ValueError(f"node {node}: the tree {fanouts} of {nodes} nodes does not hold it")
