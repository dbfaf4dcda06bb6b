"""Zones with all members connected to a centre, SimGrid's ``<zone routing="Cluster">``.

A route from a to b goes up from a and then down to b. It crosses a link that is in both parts, such
as a backbone, once.
"""

from __future__ import annotations

from collections.abc import Mapping

from pysmpi.errors import UsageError
from pysmpi.platform.definition import NOTHING
from pysmpi.platform.model import Link, NetPoint
from pysmpi.platform.points import LocalRoute
from pysmpi.platform.zones.base import Zone, zone_kind

_Links = tuple[Link, ...]


@zone_kind(
    "star", "every member has a route up to a common centre and a route down from it", "Cluster"
)
class StarZone(Zone):
    """Members around a centre. A member without an attachment reaches the centre at no cost."""

    __slots__ = ("_up", "_down", "_gateways", "_loopbacks")

    def __init__(self, name: str, properties: Mapping[str, str] = NOTHING) -> None:
        super().__init__(name, properties)
        self._up: list[_Links] = []
        self._down: list[_Links] = []
        self._gateways: dict[NetPoint, NetPoint | None] = {}
        self._loopbacks: dict[NetPoint, _Links] = {}

    def add(self, member: NetPoint) -> None:
        super().add(member)
        self._up.append(())
        self._down.append(())

    def attach(self, node: NetPoint, up: _Links, down: _Links, gateway: NetPoint | None) -> None:
        if node in self._gateways:
            raise UsageError(f"expected {node.name} to be attached once, got it a second time")
        self._up[node.position] = up
        self._down[node.position] = down
        self._gateways[node] = gateway

    def add_route(self, src: NetPoint, dst: NetPoint, route: LocalRoute) -> None:
        if src is not dst:
            raise UsageError(
                "expected in a star zone only routes of a member to itself, "
                f"got one from {src.name} to {dst.name}"
            )
        if src in self._loopbacks:
            raise UsageError(f"expected one route from {src.name} to itself, got a second one")
        self._loopbacks[src] = route.links

    def halves(self, member: NetPoint) -> tuple[_Links, _Links] | None:
        return self._up[member.position], self._down[member.position]

    def local_route(self, src: NetPoint, dst: NetPoint) -> LocalRoute | None:
        if src is dst:
            loopback = self._loopbacks.get(src)
            if loopback is not None:
                return LocalRoute(loopback)
        links = tuple(dict.fromkeys(self._up[src.position] + self._down[dst.position]))
        return LocalRoute(links, self._gateways.get(src), self._gateways.get(dst))
