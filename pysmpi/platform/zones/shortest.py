"""The base of Floyd, Dijkstra and spread zones: declared routes joined to the shortest route.

The length of a declared route is its number of links. If members are zones, two routes that meet in
a zone at different gateways are joined by the route between these gateways.
"""

from __future__ import annotations

from collections.abc import Mapping

from pysmpi.errors import UsageError
from pysmpi.platform.definition import NOTHING
from pysmpi.platform.model import Link, NetPoint
from pysmpi.platform.points import LocalRoute
from pysmpi.platform.routing import resolve
from pysmpi.platform.zones.base import Zone


class ShortestPathZone(Zone):
    """A graph with declared routes as edges. A kind defines the predecessors on a route."""

    __slots__ = ("_edges", "_loopback")

    def __init__(self, name: str, properties: Mapping[str, str] = NOTHING) -> None:
        super().__init__(name, properties)
        self._edges: dict[tuple[int, int], LocalRoute] = {}
        self._loopback: LocalRoute | None = None

    def add_route(self, src: NetPoint, dst: NetPoint, route: LocalRoute) -> None:
        key = src.position, dst.position
        if key in self._edges:
            raise UsageError(
                f"expected one route from {src.name} to {dst.name}, got a second one "
                "(a route also declares the way back unless it is not symmetric)"
            )
        self._edges[key] = route

    def seal(self, loopback: Link) -> None:
        if self.is_leaf():
            self._loopback = LocalRoute((loopback,))

    def predecessor(self, src: int, dst: int) -> int:
        """The member before `dst` on the way from `src`, both positions; -1 without a way."""
        raise UsageError(f"zone {self.name} of kind {self.kind} has no routes")

    def steps(self, src: NetPoint, dst: NetPoint) -> list[LocalRoute] | None:
        """The declared routes that lead from `src` to another member, in order."""
        edges: list[LocalRoute] = []
        at = dst.position
        while at != src.position:
            before = self.predecessor(src.position, at)
            if before < 0:
                return None
            edges.append(self._edges[before, at])
            at = before
        edges.reverse()
        return edges

    def local_route(self, src: NetPoint, dst: NetPoint) -> LocalRoute | None:
        if src is dst:
            return self._edges.get((src.position, src.position), self._loopback)
        edges = self.steps(src, dst)
        if not edges:
            return None
        links: list[Link] = []
        reached: NetPoint | None = None
        for edge in edges:
            leaving = edge.gateway_src
            if reached is not None and leaving is not None and reached is not leaving:
                across = resolve(reached, leaving)
                if across is None:
                    return None
                links.extend(across)
            links.extend(edge.links)
            reached = edge.gateway_dst
        return LocalRoute(tuple(links), edges[0].gateway_src, edges[-1].gateway_dst)
