"""The placement of the ranks of a communicator on nodes."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache


class Nodes(tuple[int, ...]):
    """The node of each rank, as a tuple that hashes only once.

    A communicator stores one and passes it with every call, so that the cost of finding a schedule
    does not depend on the number of ranks.
    """

    _hash: int

    def __new__(cls, nodes: Iterable[int]) -> Nodes:
        """Number the nodes as the iterable does."""
        self = super().__new__(cls, nodes)
        self._hash = hash(tuple(self))
        return self

    def __hash__(self) -> int:
        return self._hash


class NodeLayout:
    """The two-level structure of a communicator.

    `local[r]` are the ranks on the node of rank r, in order; `leaders` the lowest rank of each
    node, in order; `leader_index[r]` the position of the leader of rank r in `leaders`.
    """

    def __init__(self, nodes: Iterable[int]) -> None:
        groups: dict[int, list[int]] = {}
        nodes = tuple(nodes)
        for rank, node in enumerate(nodes):
            groups.setdefault(node, []).append(rank)
        members = {node: tuple(ranks) for node, ranks in groups.items()}
        self.local: tuple[tuple[int, ...], ...] = tuple(members[node] for node in nodes)
        self.leaders: tuple[int, ...] = tuple(ranks[0] for ranks in members.values())
        position = {node: i for i, node in enumerate(members)}
        self.leader_index: tuple[int, ...] = tuple(position[node] for node in nodes)
        sizes = {len(ranks) for ranks in members.values()}
        self.uniform: bool = len(sizes) == 1
        self.blocked: bool = all(
            ranks[-1] - ranks[0] == len(ranks) - 1 for ranks in members.values()
        )
        self.per_node: int = sizes.pop() if len(sizes) == 1 else 1

    @staticmethod
    @lru_cache(maxsize=256)
    def of(nodes: Nodes) -> NodeLayout:
        """The layout of `nodes`, cached for the next call."""
        return NodeLayout(nodes)

    @staticmethod
    @lru_cache(maxsize=64)
    def spread(size: int) -> NodeLayout:
        """The layout of `size` ranks with a node each."""
        return NodeLayout(range(size))
