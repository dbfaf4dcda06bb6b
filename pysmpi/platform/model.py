"""The machine that programs run on: hosts, links, and the route between any two hosts.

Plain data with no notion of time: `pysmpi.network` turns a route into the cost of a message.
Units are seconds, bytes/s and flop/s throughout.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, NamedTuple

from pysmpi.errors import UsageError
from pysmpi.platform.definition import NOTHING, DiskDef, PlatformDef
from pysmpi.platform.routing import resolve

if TYPE_CHECKING:
    from pysmpi.platform.node_description import NodeDescription
    from pysmpi.platform.zones import Zone

# How many routes a platform remembers. A route is a few hundred bytes, so this bounds the memory
# to some tens of megabytes however many pairs of hosts talk; then all are computed again.
ROUTE_CACHE = 1 << 16


class NetPoint:
    """Anything a route can begin or end at. `position` numbers the members of a zone."""

    __slots__ = ("name", "zone", "position")

    def __init__(self, name: str) -> None:
        self.name = name
        self.zone: Zone | None = None
        self.position = -1

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"


class Host(NetPoint):
    """A computer: `cores` cores of `speed` flop/s each, spread evenly over `sockets` sockets.

    `index` is its position in `Platform.hosts`. `speeds` lists the flop/s of every pstate, and
    `speed` is the current one. `speed` is None if the platform gives no speed; compute then takes
    the same time as on this computer. `node` describes its inside, or is None. `disks` are the
    disks of the host in the platform.
    """

    __slots__ = ("index", "speed", "speeds", "cores", "sockets", "properties", "node", "disks")

    def __init__(
        self,
        name: str,
        index: int,
        speeds: tuple[float, ...],
        cores: int = 1,
        sockets: int = 1,
        pstate: int = 0,
        properties: Mapping[str, str] = NOTHING,
        node: NodeDescription | None = None,
        disks: Sequence[DiskDef] = (),
    ) -> None:
        super().__init__(name)
        self.index = index
        self.node = node
        self.disks = disks
        self.speeds = speeds
        self.speed: float | None = speeds[pstate] if speeds else None
        self.cores = cores
        self.sockets = sockets
        self.properties = properties


class Router(NetPoint):
    """A point of the network that runs no rank."""

    __slots__ = ()


class Link:
    """A network resource: `bandwidth` bytes/s, `latency` seconds.

    `index` numbers the links of a platform from 0 without gaps. `sharing` is "shared" (flows share
    the bandwidth) or "fatpipe" (each flow can have the whole bandwidth). A split-duplex link is two
    links, NAME_UP and NAME_DOWN, each the `opposite` of the other; other links have no opposite. A
    link that only represents the distance of two points has index -1 and no bound, and is not a
    link of the platform.
    """

    __slots__ = ("name", "index", "bandwidth", "latency", "sharing", "opposite", "properties")

    def __init__(
        self,
        name: str,
        index: int,
        bandwidth: float,
        latency: float = 0.0,
        sharing: str = "shared",
        properties: Mapping[str, str] = NOTHING,
    ) -> None:
        self.name = name
        self.index = index
        self.bandwidth = bandwidth
        self.latency = latency
        self.sharing = sharing
        self.opposite: Link | None = None
        self.properties = properties

    def __repr__(self) -> str:
        return f"<Link {self.name}>"


class Route(NamedTuple):
    """The links from one host to another, in order, and the sum of their latencies in seconds.

    A link that a route crosses twice in different zones is listed twice, as in SimGrid.
    """

    links: tuple[Link, ...]
    latency: float


class Platform:
    """A machine, returned by `load`.

    `hosts` and `links` are in the order of the file. The last link is `loopback`, the implicit link
    of messages of a host to itself; a loopback in the file takes precedence. `config` maps names of
    SimGrid options to the values in the file; `models` holds such options for single models.
    `preset` names the factors of model hybrid. `simgrid` is true for SimGrid's own files. `source`
    is the file's name.
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
        close = get_close_matches(name, [h.name for h in self.hosts], 1)
        hint = f'; did you mean "{close[0]}"?' if close else f" among {len(self.hosts)}"
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

    def forget_routes(self) -> None:
        """Free the cached routes; they are computed again at the next request."""
        self._routes.clear()
