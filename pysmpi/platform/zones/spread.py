"""Zones with shortest ways in which messages to different members take different ones."""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heappop, heappush

from pysmpi.platform.definition import NOTHING
from pysmpi.platform.model import Host, Link, NetPoint
from pysmpi.platform.points import LocalRoute
from pysmpi.platform.zones.base import zone_kind
from pysmpi.platform.zones.shortest import ShortestPathZone

# Numbers that the caches of all sources have together; the cache of a source has one or more for
# each member.
_REMEMBERED = 8_000_000


@zone_kind(
    "spread",
    "shortest routes over declared routes; equal ones are spread by destination",
)
class SpreadZone(ShortestPathZone):
    """Takes the way with the fewest links; of equal ones, one that depends on the destination.

    So do the switches of InfiniBand, which have a table of ports by destination: the routes to the
    hosts of a fat tree use all its upper switches. Several routes may be declared between two
    members.
    """

    __slots__ = ("_parallel", "_out", "_before", "_held", "_numbers")

    def __init__(self, name: str, properties: Mapping[str, str] = NOTHING) -> None:
        super().__init__(name, properties)
        self._parallel: dict[tuple[int, int], list[LocalRoute]] = {}
        self._out: dict[int, list[tuple[int, int]]] = {}
        self._before: dict[int, dict[int, list[int]]] = {}
        self._held = 0
        self._numbers: dict[int, int] = {}  # of hosts

    def add_route(self, src: NetPoint, dst: NetPoint, route: LocalRoute) -> None:
        """Declare a route; several between two members are alternatives."""
        key = src.position, dst.position
        self._edges.setdefault(key, route)
        self._parallel.setdefault(key, []).append(route)

    def seal(self, loopback: Link) -> None:
        super().seal(loopback)
        for member in self.members:
            if isinstance(member, Host):
                self._numbers[member.position] = len(self._numbers)
        for (a, b), routes in self._parallel.items():
            if a != b:
                length = min(len(route.links) for route in routes)
                self._out.setdefault(a, []).append((b, length))

    def steps(self, src: NetPoint, dst: NetPoint) -> list[LocalRoute] | None:
        """See `ShortestPathZone.steps`."""
        root = src.position
        first: list[LocalRoute] = []
        out = self._out.get(root, ())
        if len(out) == 1:
            # All hosts of a switch share its ways.
            first = self._parallel[root, out[0][0]]
            root = out[0][0]
        before = self._ways(root)
        steps: list[LocalRoute] = []
        at = dst.position
        turn = self._numbers.get(at, at)
        while at != root:
            choices = [
                (origin, route)
                for origin in before.get(at, ())
                for route in self._parallel[origin, at]
            ]
            if not choices:
                return None
            at, route = choices[turn % len(choices)]
            turn //= len(choices)
            steps.append(route)
        if first:
            steps.append(first[turn % len(first)])
        steps.reverse()
        return steps

    def _ways(self, src: int) -> dict[int, list[int]]:
        """The members before each member, on all shortest ways from `src`."""
        before = self._before.get(src)
        if before is None:
            before = self._solve(src)
            self._held += len(before)
            while self._before and self._held > _REMEMBERED:
                self._held -= len(self._before.pop(next(iter(self._before))))
            self._before[src] = before
        return before

    def _solve(self, src: int) -> dict[int, list[int]]:
        cost = {src: 0}
        before: dict[int, list[int]] = {}
        queue = [(0, src)]
        while queue:
            paid, at = heappop(queue)
            if paid > cost[at]:
                continue
            for to, length in self._out.get(at, ()):
                there = paid + length
                if to not in cost or there < cost[to]:
                    cost[to] = there
                    before[to] = [at]
                    heappush(queue, (there, to))
                elif there == cost[to]:
                    before[to].append(at)
        for origins in before.values():
            origins.sort()
        return before
