"""Hypercubes: routers whose numbers differ in one bit are joined, routed bit by bit.

Source of the routing (e-cube): Sullivan and Bashkow, A Large Scale, Homogeneous, Fully Distributed
Parallel Machine (ISCA 1977).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pysmpi.errors import UsageError
from pysmpi.platform.zones.base import Counts, zone_kind
from pysmpi.platform.zones.direct import DirectTopology

MOST = 24


@dataclass(frozen=True)
class HypercubeShape(Counts):
    """2^dimensions routers, with `nodes` hosts each."""

    dimensions: int
    nodes: int

    def check(self) -> None:
        """Raise UsageError for more dimensions than any machine has."""
        if self.dimensions > MOST:
            raise UsageError(f"expected at most {MOST} dimensions, got {self.dimensions}")

    def size(self) -> int:
        """The number of hosts."""
        return self.nodes << self.dimensions


@zone_kind("hypercube", "routers whose numbers differ in one bit are joined, routed bit by bit")
class Hypercube(DirectTopology):
    """A hypercube, the lowest bit first."""

    __slots__ = ()

    shape = HypercubeShape

    def _pairs(self) -> Iterator[tuple[int, int]]:
        for router in range(1 << self._shape.dimensions):
            for bit in range(self._shape.dimensions):
                if not router >> bit & 1:
                    yield router, router | 1 << bit

    def _routers(self, src: int, dst: int) -> Iterator[int]:
        for bit in range(self._shape.dimensions):
            if (src ^ dst) >> bit & 1:
                src ^= 1 << bit
                yield src
