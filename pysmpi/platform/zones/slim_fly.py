"""Slim Flies: 2 q^2 routers of which any two are at most two cables apart, routed minimally.

Routers (0, x, y) and (1, m, c), numbers modulo a prime q. (0, x, y) and (0, x, y') are joined where
y - y' is in X, (1, m, c) and (1, m, c') where c - c' is in X', (0, x, y) and (1, m, c) where
y = m x + c. X and X' are powers of a primitive element: the graphs of McKay, Miller and Siran.

Source: Besta and Hoefler, Slim Fly: A Cost Effective Low-Diameter Network Topology (SC 2014).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pysmpi.errors import UsageError
from pysmpi.platform.definition import NOTHING
from pysmpi.platform.zones.base import Counts, zone_kind
from pysmpi.platform.zones.direct import DirectTopology


@dataclass(frozen=True)
class SlimFlyShape(Counts):
    """2 q^2 routers for a prime q, with `nodes` hosts each."""

    q: int
    nodes: int

    def check(self) -> None:
        """Raise UsageError if q is not an odd prime."""
        q = self.q
        if q < 3 or q > 1000 or any(q % d == 0 for d in range(2, int(q**0.5) + 1)):
            raise UsageError(f"expected as q an odd prime below 1000, got {q}")

    def size(self) -> int:
        """The number of hosts."""
        return 2 * self.q**2 * self.nodes


def generators(q: int) -> tuple[set[int], set[int]]:
    """X and X' (section II-B of the paper)."""
    primitive = next(
        g for g in range(2, q + 1) if len({pow(g, i, q) for i in range(q - 1)}) == q - 1
    )
    power = [pow(primitive, i, q) for i in range(q - 1)]
    if q % 4 == 1:
        return set(power[0::2]), set(power[1::2])
    w = (q + 1) // 4
    even = [2 * i for i in range(w)]
    odd = [2 * i + 1 for i in range(w)]
    first = even + [2 * w - 1 + 2 * i for i in range(w)]
    second = odd + [2 * w + 2 * i for i in range(w)]
    return ({power[i % (q - 1)] for i in first}, {power[i % (q - 1)] for i in second})


@zone_kind("slim_fly", "2 q^2 routers, any two at most two cables apart, routed minimally")
class SlimFly(DirectTopology):
    """A Slim Fly. A pair of routers always uses the same one of several shortest routes."""

    __slots__ = ("_neighbours", "_sets")

    shape = SlimFlyShape

    def __init__(self, name: str, properties: Mapping[str, str] = NOTHING) -> None:
        super().__init__(name, properties)
        self._neighbours: list[list[int]] = []
        self._sets: list[set[int]] = []

    def _prepare(self) -> None:
        q = self._shape.q
        inside = generators(q)
        self._neighbours = [[] for _ in range(2 * q * q)]
        for a, b in self._joined(q, inside):
            self._neighbours[a].append(b)
            self._neighbours[b].append(a)
        for row in self._neighbours:
            row.sort()
        self._sets = [set(row) for row in self._neighbours]

    @staticmethod
    def _joined(q: int, inside: tuple[set[int], set[int]]) -> Iterator[tuple[int, int]]:
        for half in (0, 1):
            for group in range(q):
                first = half * q * q + group * q
                for a in range(q):
                    for b in range(a + 1, q):
                        if (b - a) % q in inside[half] or (a - b) % q in inside[half]:
                            yield first + a, first + b
        for x in range(q):
            for m in range(q):
                for c in range(q):
                    yield x * q + (m * x + c) % q, q * q + m * q + c

    def _pairs(self) -> Iterator[tuple[int, int]]:
        for a, row in enumerate(self._neighbours):
            for b in row:
                if a < b:
                    yield a, b

    def _routers(self, src: int, dst: int) -> list[int]:
        if dst in self._sets[src]:
            return [dst]
        common = [router for router in self._neighbours[src] if router in self._sets[dst]]
        return [common[(src + dst) % len(common)], dst]
