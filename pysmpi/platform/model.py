"""The machine that programs run on: hosts, links, and the route between any two hosts.

Plain data with no notion of time: `pysmpi.network` turns a route into the cost of a message.
Units are seconds, bytes/s and flop/s throughout.
"""

from __future__ import annotations

from collections.abc import Sequence

from pysmpi.errors import UsageError
from pysmpi.platform.definition import PlatformDef
from pysmpi.platform.points import Host, Link, NetPoint, Route, Router, ZonePoint
from pysmpi.platform.routing import resolve
from pysmpi.platform.zones.base import Zone
from pysmpi.text import did_you_mean

__all__ = ["Host", "Link", "NetPoint", "Platform", "Route", "Router"]

# The number of routes that a platform remembers. A route is a few hundred bytes, so this bounds the
# memory to some tens of megabytes however many pairs of hosts talk; then all are computed again.
ROUTE_CACHE = 1 << 16


class Platform:
    """A machine, returned by `load`.

    `hosts` and `links` are in the order of the file. The last link is `loopback`, the implicit link
    of messages of a host to itself; a loopback in the file takes precedence. `config` maps names of
    SimGrid options to the values in the file; `models` holds such options for single models.
    `preset` names the factors of model hybrid. `simgrid` is true for SimGrid's own files. `source`
    is the file's name. `profiles` are changes of hosts and links during a run.
    """

    def __init__(
        self,
        definition: PlatformDef,
        root: Zone,
        hosts: list[Host],
        links: list[Link],
        loopback: Link,
        points: dict[str, NetPoint],
    ) -> None:
        self.definition = definition
        self.name = definition.name
        self.description = definition.description
        self.sources = definition.sources
        self.source = definition.source
        self.config = definition.config
        self.preset = definition.preset
        self.models = definition.models
        self.simgrid = definition.simgrid
        self.profiles = definition.profiles
        self.root = root
        self.hosts = hosts
        self.links = links
        self.loopback = loopback
        self._points = points
        self._routes: dict[int, Route] = {}

    def __repr__(self) -> str:
        return f"<Platform {self.name}: {len(self.hosts)} hosts>"

    def host(self, name: str) -> Host:
        """The host called `name`. Raises UsageError, with the closest name, if there is none."""
        found = self._points.get(name)
        if isinstance(found, Host):
            return found
        hint = did_you_mean(name, [h.name for h in self.hosts], '"{}"')
        if not hint:
            hint = f' among {len(self.hosts)}, such as "{self.hosts[0].name}"' if self.hosts else ""
        raise UsageError(f'{self.source}: there is no host "{name}"{hint}')

    def route(self, src: Host, dst: Host) -> Route:
        """The route from `src` to `dst`, which may be the same host.

        Raises UsageError if the platform declares no route between them. A bounded number of routes
        is cached.
        """
        key = src.index * len(self.hosts) + dst.index
        cached = self._routes.get(key)
        if cached is not None:
            return cached
        links = self.way(src, dst)
        latency = 0.0
        for link in links:
            latency += link.latency
        route = Route(links, latency)
        if len(self._routes) >= ROUTE_CACHE:
            self._routes.clear()
        self._routes[key] = route
        return route

    def way(self, src: Host, dst: Host) -> tuple[Link, ...]:
        """The links of the route from `src` to `dst`, found anew."""
        links = resolve(src, dst)
        if links:
            return links
        if src is not dst:
            raise UsageError(f"{self.source}: there is no route from {src.name} to {dst.name}")
        return (self.loopback,)

    def halves(self, host: Host) -> tuple[ZonePoint, Sequence[Link], Sequence[Link]] | None:
        """The zone of a host, the links up to the centre of the zone, and those down from it.

        The route from a host to another one of the zone goes up and then down; it crosses a link
        that is in both parts once. None if the routes of the host do not have this form.
        """
        zone = host.zone
        if zone is None or zone.bypasses:
            return None
        found = zone.halves(host)
        return None if found is None else (zone, *found)

    def links_of(self, name: str) -> list[Link]:
        """The link called `name`, or the two of a split-duplex link; none if there is no such."""
        both = (f"{name}_UP", f"{name}_DOWN")
        return [
            link for link in self.links
            if link.name == name or (link.opposite is not None and link.name in both)
        ]  # fmt: skip

    def forget_routes(self) -> None:
        """Free the cached routes; they are computed again at the next request."""
        self._routes.clear()
