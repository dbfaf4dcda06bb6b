"""Zones that list every route (SimGrid's ``routing="Full"``)."""

from __future__ import annotations

from collections.abc import Mapping

from pysmpi.errors import UsageError
from pysmpi.platform.definition import NOTHING
from pysmpi.platform.model import Link, NetPoint
from pysmpi.platform.points import LocalRoute
from pysmpi.platform.zones.base import Zone, zone_kind


@zone_kind("full", "every route between two members is declared", "Full")
class FullZone(Zone):
    """A table of declared routes. A host's way to itself is the implicit loopback by default."""

    __slots__ = ("_table", "_loopback")

    def __init__(self, name: str, properties: Mapping[str, str] = NOTHING) -> None:
        super().__init__(name, properties)
        self._table: dict[tuple[NetPoint, NetPoint], LocalRoute] = {}
        self._loopback: LocalRoute | None = None

    def add_route(self, src: NetPoint, dst: NetPoint, route: LocalRoute) -> None:
        if (src, dst) in self._table:
            raise UsageError(
                f"expected one route from {src.name} to {dst.name}, got a second one "
                "(a route also declares the way back unless it is not symmetric)"
            )
        self._table[src, dst] = route

    def seal(self, loopback: Link) -> None:
        if self.is_leaf():
            self._loopback = LocalRoute((loopback,))

    def local_route(self, src: NetPoint, dst: NetPoint) -> LocalRoute | None:
        route = self._table.get((src, dst))
        if route is None and src is dst:
            return self._loopback
        return route
