"""Zones without routes (SimGrid's ``routing="None"``): bypasses of outer zones connect them."""

from __future__ import annotations

from pysmpi.platform.model import NetPoint
from pysmpi.platform.points import LocalRoute
from pysmpi.platform.zones.base import Zone, zone_kind


@zone_kind("empty", "no routes: only bypasses declared around it lead anywhere", "None", "Empty")
class EmptyZone(Zone):
    """Members that reach each other through bypass routes only."""

    __slots__ = ()

    def local_route(self, src: NetPoint, dst: NetPoint) -> LocalRoute | None:
        return None
