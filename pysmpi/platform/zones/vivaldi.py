"""Zones in which latency is a distance (SimGrid's ``routing="Vivaldi"``).

Each member has coordinates x, y and a height h, in milliseconds, and its own link to and from the
rest of the Internet. Between a and b the distance is that of their (x, y), plus both heights.

Source: Dabek, Cox, Kaashoek and Morris, Vivaldi: A Decentralized Network Coordinate System (SIGCOMM
2004).
"""

from __future__ import annotations

from collections.abc import Mapping
from math import hypot, inf

from pysmpi.platform.definition import FATPIPE, NOTHING, Coordinates
from pysmpi.platform.model import Link, NetPoint
from pysmpi.platform.points import LocalRoute
from pysmpi.platform.zones.base import zone_kind
from pysmpi.platform.zones.star import StarZone


@zone_kind(
    "vivaldi", "members with coordinates: latency is their distance, in milliseconds", "Vivaldi"
)
class VivaldiZone(StarZone):
    """Members with coordinates; their own links may be missing, as in SimGrid.

    There is no route to a member without coordinates, such as a zone.
    """

    __slots__ = ("_coordinates",)

    def __init__(self, name: str, properties: Mapping[str, str] = NOTHING) -> None:
        super().__init__(name, properties)
        self._coordinates: dict[NetPoint, Coordinates] = {}

    def place(self, member: NetPoint, coordinates: Coordinates | None) -> None:
        if coordinates is not None:
            self._coordinates[member] = coordinates

    def halves(self, member: NetPoint) -> None:
        """None: the distance of two members is a link of their own."""

    def local_route(self, src: NetPoint, dst: NetPoint) -> LocalRoute | None:
        here, there = self._coordinates.get(src), self._coordinates.get(dst)
        if here is None or there is None:
            return None
        route = super().local_route(src, dst)
        if route is None:
            return None
        milliseconds = hypot(here[0] - there[0], here[1] - there[1]) + abs(here[2]) + abs(there[2])
        name = f"distance of {src.name} and {dst.name}"
        distance = Link(name, -1, inf, milliseconds / 1000.0, FATPIPE)
        return route._replace(links=(*route.links, distance))
