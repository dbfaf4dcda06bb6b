"""The parts of a platform: hosts, routers and zones, which are points of its network, and links."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pysmpi.errors import UsageError
from pysmpi.platform.definition import NOTHING, DiskDef, RailsDef
from pysmpi.platform.node_description import NodeDescription


class NetPoint:
    """Anything a route can begin or end at. `position` numbers the members of a zone."""

    __slots__ = ("name", "zone", "position")

    def __init__(self, name: str) -> None:
        self.name = name
        self.zone: ZonePoint | None = None
        self.position = -1

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"


class Host(NetPoint):
    """A computer: `cores` cores of `speed` flop/s each, spread evenly over `sockets` sockets.

    `index` is its position in `Platform.hosts`. `speeds` lists the flop/s of every pstate, and
    `speed` is the current one. `speed` is None if the platform gives no speed; compute then takes
    the same time as on this computer. `node` describes its inside, or is None. `disks` are the
    disks of the host in the platform. `rails` are its network cards if it has several.
    """

    __slots__ = ("index", "speed", "speeds", "cores", "sockets", "properties", "node", "disks") + (
        "rails",
    )

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
        self.rails: Rails | None = None  # set when all links are there
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


class Rails:
    """The rails of a host: see `RailsDef`.

    `swaps` maps, for each rail, links in routes to those that the rail has in their place.
    """

    __slots__ = ("definition", "swaps")

    def __init__(self, definition: RailsDef, swaps: Sequence[Mapping[Link, Link]]) -> None:
        self.definition = definition
        self.swaps = swaps

    def __repr__(self) -> str:
        return f"<Rails: {len(self.swaps)}, {self.definition.choice}>"


class Route(NamedTuple):
    """The links from one host to another, in order, and the sum of their latencies in seconds.

    A link that a route crosses twice in different zones is listed twice, as in SimGrid.
    """

    links: tuple[Link, ...]
    latency: float


class LocalRoute(NamedTuple):
    """The route between two members of a zone, and its gateways into members that are zones."""

    links: tuple[Link, ...]
    gateway_src: NetPoint | None = None
    gateway_dst: NetPoint | None = None


class ZonePoint(NetPoint):
    """A part of a platform, as a member of a larger one.

    `gateway` is the member through which routes enter if they name no other. `bypasses` are routes
    that take precedence over those of the zone.
    """

    __slots__ = ("members", "gateway", "bypasses", "properties")

    def __init__(self, name: str, properties: Mapping[str, str] = NOTHING) -> None:
        super().__init__(name)
        self.members: list[NetPoint] = []
        self.gateway: NetPoint | None = None
        self.bypasses: dict[tuple[NetPoint, NetPoint], LocalRoute] = {}
        self.properties = properties

    def add(self, member: NetPoint) -> None:
        """Take in a host, a router or a zone."""
        member.zone = self
        member.position = len(self.members)
        self.members.append(member)

    def is_leaf(self) -> bool:
        """Whether no member is itself a zone."""
        return not any(isinstance(member, ZonePoint) for member in self.members)

    def contains(self, point: NetPoint) -> bool:
        """Whether `point` is in this zone, at any depth."""
        zone = point.zone
        while zone is not None:
            if zone is self:
                return True
            zone = zone.zone
        return False

    def halves(self, member: NetPoint) -> tuple[Sequence[Link], Sequence[Link]] | None:
        """The links from a member up to the centre of the zone, and down from it.

        The routes between members then consist of two halves. None if the zone has no centre.
        """
        return None

    def local_route(self, src: NetPoint, dst: NetPoint) -> LocalRoute | None:
        """The route between two members, which may be the same; None if there is none."""
        raise UsageError(f"zone {self.name} has no routes")
