"""Tori of any number of dimensions (SimGrid's ``topology="TORUS"``), routed dimension by dimension.

Host number x + X (y + Y (z + ...)). Every host has one link in each dimension, to its neighbour in
the positive direction; going the other way takes the neighbour's link downwards.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from pysmpi.errors import UsageError
from pysmpi.platform.definition import NOTHING
from pysmpi.platform.model import Link
from pysmpi.platform.numbers import read_counts
from pysmpi.platform.zones.base import Makers, zone_kind
from pysmpi.platform.zones.leaves import LeafZone

if TYPE_CHECKING:
    from pysmpi.platform.definition import ClusterDef


@dataclass(frozen=True)
class TorusShape:
    """The size of each dimension, the fastest first."""

    dimensions: tuple[int, ...]

    @classmethod
    def from_text(cls, text: str) -> TorusShape:
        """Read "X,Y,Z"."""
        return cls(read_counts(text))

    def to_text(self) -> str:
        """The text that `from_text` reads as this shape."""
        return ",".join(map(str, self.dimensions))

    def check(self) -> None:
        """Raise UsageError if there is no dimension."""
        if not self.dimensions:
            raise UsageError("expected at least one dimension, got none")

    def size(self) -> int:
        """The number of hosts."""
        return prod(self.dimensions)


@zone_kind(
    "torus", "a grid of any dimensions whose ends meet, routed dimension by dimension", "TORUS"
)
class Torus(LeafZone):
    """A torus. The link from host i to its neighbour j is NAME_link_from_i_to_j."""

    __slots__ = ("_dimensions", "_links")

    shape = TorusShape

    def __init__(self, name: str, properties: Mapping[str, str] = NOTHING) -> None:
        super().__init__(name, properties)
        self._dimensions: tuple[int, ...] = ()
        # (up, down) of each host in each dimension; None in a dimension of size 1.
        self._links: list[list[tuple[Link, Link] | None]] = []

    def populate(self, cluster: ClusterDef, make: Makers) -> None:
        self._dimensions = cluster.shape.dimensions
        self.make_hosts(cluster, make)
        for host in range(cluster.shape.size()):
            row: list[tuple[Link, Link] | None] = []
            stride = 1
            for size in self._dimensions:
                link = None
                if size > 1:
                    name = f"{cluster.name}_link_from_{host}_to_{_step(host, stride, size, 1)}"
                    link = make.cable(cluster, name)
                row.append(link)
                stride *= size
            self._links.append(row)

    def walk(self, src: int, dst: int, links: list[Link]) -> None:
        node, stride = src, 1
        for axis, size in enumerate(self._dimensions):
            mine, target = src // stride % size, dst // stride % size
            half = size // 2
            forward = mine < target <= mine + half or (
                mine > half and (mine + half) % size >= target
            )
            while node // stride % size != target:
                links.extend(self._limiters[node])
                after = _step(node, stride, size, 1 if forward else -1)
                link = self._links[node if forward else after][axis]
                assert link is not None, "a dimension that is crossed has more than one place"
                links.append(link[0] if forward else link[1])
                node = after
            stride *= size
        links.extend(self._limiters[dst])


def _step(host: int, stride: int, size: int, by: int) -> int:
    """The neighbour of `host` in the dimension of that stride and size."""
    place = host // stride % size
    return host + ((place + by) % size - place) * stride
