"""Zones with shortest ways computed a source at a time (SimGrid's ``routing="Dijkstra"``)."""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heappop, heappush

from pysmpi.platform.definition import NOTHING
from pysmpi.platform.model import Link
from pysmpi.platform.zones.base import zone_kind
from pysmpi.platform.zones.shortest import ShortestPathZone

# Number of cached sources; the cache of a source has one number for each member.
_REMEMBERED = 1024


@zone_kind(
    "dijkstra",
    "shortest routes over declared routes, one source at a time (Dijkstra)",
    "Dijkstra",
    "DijkstraCache",
)
class DijkstraZone(ShortestPathZone):
    """Takes the way with the fewest links; of equal ones, that of earlier members."""

    __slots__ = ("_out", "_order", "_before")

    def __init__(self, name: str, properties: Mapping[str, str] = NOTHING) -> None:
        super().__init__(name, properties)
        self._out: dict[int, list[tuple[int, int]]] = {}
        self._order: dict[int, int] = {}
        self._before: dict[int, dict[int, int]] = {}

    def seal(self, loopback: Link) -> None:
        super().seal(loopback)
        for (a, b), edge in self._edges.items():
            self._order.setdefault(a, len(self._order))
            self._order.setdefault(b, len(self._order))
            self._out.setdefault(a, []).append((b, len(edge.links)))

    def predecessor(self, src: int, dst: int) -> int:
        before = self._before.get(src)
        if before is None:
            if len(self._before) >= _REMEMBERED:
                del self._before[next(iter(self._before))]
            before = self._before[src] = self._solve(src)
        return before.get(dst, -1)

    def _solve(self, src: int) -> dict[int, int]:
        cost = {src: 0}
        before: dict[int, int] = {}
        queue = [(0, self._order.get(src, 0), src)]
        while queue:
            paid, _, at = heappop(queue)
            if paid > cost[at]:
                continue
            for to, length in self._out.get(at, ()):
                if to not in cost or paid + length < cost[to]:
                    cost[to] = paid + length
                    before[to] = at
                    heappush(queue, (paid + length, self._order[to], to))
        return before
