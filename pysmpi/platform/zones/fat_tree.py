"""Fat trees (SimGrid's ``topology="FAT_TREE"``): levels of switches, routed by destination.

The parallel-ports generalised fat tree of E. Zahavi (D-Mod-K routing providing non-blocking traffic
for shift permutations on real life fat trees, 2010). A node of level l has one label digit per
level; digit j counts parents for j < l and children for j >= l, digit 0 fastest. A node and a node
one level up are connected when their labels differ in that level's digit at most.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from pysmpi.errors import UsageError
from pysmpi.platform.definition import NOTHING, SPLIT
from pysmpi.platform.model import Link
from pysmpi.platform.numbers import read_count, read_counts
from pysmpi.platform.zones.base import Makers, zone_kind
from pysmpi.platform.zones.leaves import LeafZone

if TYPE_CHECKING:
    from pysmpi.platform.definition import ClusterDef


@dataclass(frozen=True)
class FatTreeShape:
    """Numbers of children, parents and parallel cables, each from the hosts' level upwards."""

    children: tuple[int, ...]
    parents: tuple[int, ...]
    cables: tuple[int, ...]

    @classmethod
    def from_text(cls, text: str) -> FatTreeShape:
        """Read "L;c1,..,cL;p1,..,pL;k1,..,kL"."""
        parts = text.split(";")
        if len(parts) != 4:
            raise UsageError(f'expected e.g. "2;4,4;1,2;1,1" for a fat tree, got "{text}"')
        levels = read_count(parts[0])
        shape = cls(*(read_counts(part) for part in parts[1:]))
        if len(shape.children) != levels:
            raise UsageError(f'expected {levels} numbers after each semicolon, got "{text}"')
        shape.check()
        return shape

    def to_text(self) -> str:
        """The text that `from_text` reads as this shape."""
        lists = (self.children, self.parents, self.cables)
        return ";".join([str(len(self.children)), *(",".join(map(str, x)) for x in lists)])

    def check(self) -> None:
        """Raise UsageError unless every level has its three numbers."""
        if not self.children or not len(self.children) == len(self.parents) == len(self.cables):
            raise UsageError(
                "expected as many children as parents and cables, one a level, got "
                f"{len(self.children)}, {len(self.parents)} and {len(self.cables)}"
            )

    def size(self) -> int:
        """The number of hosts."""
        return prod(self.children)

    def cables_in_all(self) -> int:
        """The number of cables of all levels."""
        return sum(
            prod(self.children[level:]) * prod(self.parents[: level + 1]) * cables
            for level, cables in enumerate(self.cables)
        )


@zone_kind(
    "fat_tree",
    "levels of switches with parallel cables, routed by destination (d-mod-k)",
    "FAT_TREE",
)
class FatTree(LeafZone):
    """A fat tree. The link from node a up to b is link_from_a_b_u, u running over the platform.

    Hosts are nodes 0, 1, ...; switches are numbered downwards to the number of hosts or below, the
    lowest level first. As in SimGrid, the positions that choose the cables run on from one fat tree
    of a platform to the next.
    """

    __slots__ = ("_shape", "_first", "_widths", "_up", "_down", "_switch_limiters")

    shape = FatTreeShape

    def __init__(self, name: str, properties: Mapping[str, str] = NOTHING) -> None:
        super().__init__(name, properties)
        self._shape: FatTreeShape
        self._first = 0
        self._widths: list[list[int]] = []
        self._up: list[list[Link]] = []
        self._down: list[list[Link]] = []
        self._switch_limiters: list[list[tuple[Link, ...]]] = []

    @classmethod
    def links_of(cls, cluster: ClusterDef) -> int:
        links: int = cluster.shape.cables_in_all() * (2 if cluster.sharing == SPLIT else 1)
        return links

    def populate(self, cluster: ClusterDef, make: Makers) -> None:
        shape = self._shape = cluster.shape
        levels, hosts = len(shape.children), shape.size()
        self._first = make.next_number("fat tree hosts", hosts)
        self.make_hosts(cluster, make)
        # The stride of each label digit among the nodes of each level.
        for level in range(levels + 1):
            radices = shape.parents[:level] + shape.children[level:]
            self._widths.append([prod(radices[:digit]) for digit in range(levels + 1)])
        switches = sum(width[levels] for width in self._widths[1:])
        # SimGrid counts down from 2 * hosts, and refuses limiters if it reaches the numbers of
        # hosts.
        clash = cluster.limiter is not None and switches > hosts
        number = 2 * hosts + switches if clash else 2 * hosts
        names = [list(range(hosts))]
        self._switch_limiters.append([])
        for level in range(1, levels + 1):
            count = self._widths[level][levels]
            numbers = list(range(number - 1, number - 1 - count, -1))
            number -= count
            names.append(numbers)
            self._switch_limiters.append([self.make_limiter(cluster, make, n) for n in numbers])
        for level in range(levels):
            self._make_links(cluster, make, level, names)

    def _make_links(
        self, cluster: ClusterDef, make: Makers, level: int, names: list[list[int]]
    ) -> None:
        """Every cable from the nodes of `level` upwards, a node's in the order of its parents."""
        parents, cables = self._shape.parents[level], self._shape.cables[level]
        ups: list[Link] = []
        downs: list[Link] = []
        for node, name in enumerate(names[level]):
            for digit in range(parents):
                parent = names[level + 1][self._parent(level, node, digit)]
                for _ in range(cables):
                    serial = make.next_number("fat tree links")
                    up, down = make.cable(
                        cluster,
                        f"link_from_{name}_{parent}_{serial}",
                        None if level else self.members[node],
                    )
                    ups.append(up)
                    downs.append(down)
        self._up.append(ups)
        self._down.append(downs)

    def _parent(self, level: int, node: int, digit: int) -> int:
        """The node above `node` of `level` whose label has `digit` in that level's place."""
        below, above = self._widths[level], self._widths[level + 1]
        low = node % below[level]
        return low + digit * above[level] + node // below[level + 1] * above[level + 1]

    def walk(self, src: int, dst: int, links: list[Link]) -> None:
        shape, widths = self._shape, self._widths
        level, node = 0, src
        rest = self._first + dst
        # Up, until the destination is below: all digits from this level on equal its own.
        while level == 0 or node // widths[level][level] != dst // widths[0][level]:
            parents, cables = shape.parents[level], shape.cables[level]
            port = rest % (parents * cables)
            cable, digit = divmod(port, parents)
            links.extend(self._switch_limiters[level][node] if level else self._limiters[node])
            links.append(self._up[level][(node * parents + digit) * cables + cable])
            node = self._parent(level, node, digit)
            rest //= parents
            level += 1
        # Down. The first cable is the source's cable at the switch where the route turns. Below it,
        # SimGrid continues from the port that it has reached, and starts again only when no port is
        # left.
        source = self._first + src
        while level:
            port = source % shape.cables[level - 1] * shape.children[level - 1]
            while level and port < shape.children[level - 1] * shape.cables[level - 1]:
                below = level - 1
                children = shape.children[below]
                if port % children == dst // widths[0][below] % children:
                    digit = node // widths[level][below] % shape.parents[below]
                    low = node % widths[level][below]
                    high = node // widths[level][level]
                    child = (
                        low + port % children * widths[below][below] + high * widths[below][level]
                    )
                    cable = port // children
                    ports = child * shape.parents[below] + digit
                    links.append(self._down[below][ports * shape.cables[below] + cable])
                    links.extend(self._switch_limiters[level][node])
                    level, node = below, child
                port += 1
        links.extend(self._limiters[dst])
