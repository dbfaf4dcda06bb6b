"""From a file's definition to a machine: names resolved, clusters unfolded, everything checked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial

from pysmpi.errors import UsageError
from pysmpi.platform.definition import (
    FATPIPE,
    NOTHING,
    SHARED,
    SPLIT,
    AttachDef,
    ClusterDef,
    Hop,
    HostDef,
    LinkDef,
    PlatformDef,
    RailsDef,
    RouteDef,
    RouterDef,
    ZoneDef,
)
from pysmpi.platform.model import Host, Link, NetPoint, Platform, Router
from pysmpi.platform.numbers import MOST, read_count
from pysmpi.platform.points import Rails
from pysmpi.platform.profiles import OF_HOSTS
from pysmpi.platform.rails import named_swaps
from pysmpi.platform.units import parse_bandwidth, parse_time
from pysmpi.platform.zones import ZONE_KINDS, LocalRoute, Zone, load_kinds
from pysmpi.text import did_you_mean

LOOPBACK = "__loopback__"
# Defaults of network/loopback-bw (bytes/s) and network/loopback-lat (s, by preset): SimGrid's,
# except the latency under other presets, which is that of two copies through shared memory.
LOOPBACK_BANDWIDTH = 10e9
LOOPBACK_LATENCY = 300e-9
SMPI_LOOPBACK_LATENCY = 0.0


def construct(definition: PlatformDef, config: Mapping[str, str] = NOTHING) -> Platform:
    """The machine that `definition` describes; options in `config` outrank those of the file.

    Raises UsageError if a name is used twice, a reference has no target, or the kind of zone cannot
    take a route. The message is one line that begins with the place in the file.
    """
    return _Construction(definition, config).run()


class _Construction:
    """State of one construction. Implements `zones.Makers` for the topologies."""

    def __init__(self, definition: PlatformDef, config: Mapping[str, str]) -> None:
        self._definition = definition
        self._config = {**definition.config, **config}
        self._most = {what: _most(self._config, what) for what in MOST}
        self._hosts: list[Host] = []
        self._links: list[Link] = []
        self._points: dict[str, NetPoint] = {}
        self._by_link_name: dict[str, Link] = {}
        self._splits: dict[str, tuple[Link, Link]] = {}
        self._numbers: dict[str, int] = {}
        self._zones: list[tuple[Zone, ZoneDef]] = []
        self._zone: Zone
        self._where = ""
        # The rails of the cluster in construction: for each rail, links in the place of others; of
        # the whole cluster, or by host.
        self._plane: list[dict[Link, Link]] | None = None
        self._swaps: dict[NetPoint, list[dict[Link, Link]]] = {}
        self._railed: list[tuple[Host, RailsDef]] = []  # hosts that name the links of their rails

    def run(self) -> Platform:
        root = self._zone_tree(self._definition.root)
        loopback = self._implicit_loopback()
        for zone, definition in self._zones:
            self._connect(zone, definition)
        for host, rails in self._railed:
            host.rails = Rails(
                rails, named_swaps(rails, partial(self._named, f"{rails.where}: links"))
            )
        for zone, _ in self._zones:
            zone.seal(loopback)
        if not self._hosts:
            raise UsageError(f"{self._definition.source}: expected at least one host, got none")
        platform = Platform(
            self._definition, root, self._hosts, self._links, loopback, self._points
        )
        for one in self._definition.profiles:
            if one.kind in OF_HOSTS:
                if not isinstance(self._points.get(one.name), Host):
                    raise UsageError(f"{one.where}: expected the name of a host, got {one.name!r}")
            elif not platform.links_of(one.name):
                raise UsageError(f"{one.where}: expected the name of a link, got {one.name!r}")
        return platform

    # Members

    def _zone_tree(self, definition: ZoneDef) -> Zone:
        kind = self._kind(definition.routing, "routing", False, definition.where)
        zone = kind(definition.name, definition.properties)
        self._register(zone, definition.where)
        for member in definition.members:
            self._where = member.where
            if isinstance(member, LinkDef):
                self.link(
                    member.name,
                    member.bandwidth,
                    member.latency,
                    member.sharing,
                    member.properties,
                )
            elif isinstance(member, HostDef):
                host = self._host(member)
                zone.add(host)
                zone.place(host, member.coordinates)
            elif isinstance(member, RouterDef):
                router = Router(member.name)
                self._register(router, member.where)
                zone.add(router)
                zone.place(router, member.coordinates)
            elif isinstance(member, ClusterDef):
                zone.add(self._cluster(member))
            else:
                zone.add(self._zone_tree(member))
        # Children first: the routes of a zone may name their members.
        self._zones.append((zone, definition))
        return zone

    def _kind(self, name: str, key: str, cluster: bool, where: str) -> type[Zone]:
        """The kind of zone called `name`, which builds clusters if and only if `cluster`."""
        if name in ZONE_KINDS:
            found = ZONE_KINDS.find(name).cls
            if found.builds_clusters is cluster:
                return found
        kinds = [n for n, kind in load_kinds().items() if kind.builds_clusters is cluster]
        raise UsageError(
            f'{where}: {key}: expected one of {", ".join(sorted(kinds))}, got "{name}"'
        )

    def _cluster(self, definition: ClusterDef) -> Zone:
        kind = self._kind(definition.topology, "topology", True, definition.where)
        hosts = sum(last - first + 1 for first, last in definition.radical)
        if definition.shape is not None:
            _located(definition.where, definition.shape.check)
            if hosts != definition.shape.size():
                raise UsageError(
                    f"{definition.where}: expected {definition.shape.size()} hosts for this "
                    f"{definition.topology}, got {hosts}"
                )
        self._limit("hosts", len(self._hosts) + hosts, definition.where)
        links = kind.links_of(definition)
        self._limit("links", len(self._links) + links, definition.where)
        zone = kind(definition.name, definition.properties)
        self._register(zone, definition.where)
        self._zone = zone
        rails = definition.rails
        separate = rails is not None and rails.separate
        self._plane = [{} for _ in range(rails.count)] if rails is not None and separate else None
        zone.populate(definition, self)
        if rails is not None:
            self._add_rails(zone, definition.topology, rails)
        self._zones.append((zone, ZoneDef(definition.name, definition.topology)))
        return zone

    def _add_rails(self, zone: Zone, topology: str, rails: RailsDef) -> None:
        """Give the hosts of a cluster their rails."""
        common = None if self._plane is None else Rails(rails, self._plane)
        for host in zone.members:
            if not isinstance(host, Host):
                continue
            if common is None and host not in self._swaps:
                raise UsageError(
                    f"{rails.where}: expected separate: true in a {topology}, where hosts have no "
                    "links but those of the network"
                )
            host.rails = common or Rails(rails, self._swaps.pop(host))

    def _limit(self, what: str, number: int, where: str) -> None:
        """Refuse a machine that takes very long to construct; it is usually an error."""
        most = self._most[what]
        if number > most:
            raise UsageError(
                f"{where}: expected at most {most:,} {what}, got {number:,} or more; --cfg "
                f"{MOST[what][0]}:NUMBER raises the limit"
            )

    def _host(self, definition: HostDef) -> Host:
        host = Host(
            definition.name,
            len(self._hosts),
            definition.speeds,
            definition.cores,
            definition.sockets,
            definition.pstate,
            definition.properties,
            definition.node,
            definition.disks,
        )
        self._register(host, definition.where)
        self._hosts.append(host)
        if definition.rails is not None:
            self._railed.append((host, definition.rails))
        return host

    def _register(self, point: NetPoint, where: str) -> None:
        other = self._points.get(point.name)
        if other is not None:
            taken = "zone" if isinstance(other, Zone) else type(other).__name__.lower()
            raise UsageError(
                f'{where}: expected a name that is not taken, got "{point.name}", already a {taken}'
            )
        self._points[point.name] = point

    # Called by topologies (zones.Makers)

    def host(self, cluster: ClusterDef, number: int) -> Host:
        """See `zones.Makers`."""
        host = Host(
            f"{cluster.prefix}{number}{cluster.suffix}",
            len(self._hosts),
            cluster.speeds,
            cluster.cores,
            cluster.sockets,
            0,
            cluster.properties,
            cluster.node,
        )
        self._register(host, self._where)
        self._hosts.append(host)
        self._zone.add(host)
        return host

    def router(self, name: str) -> NetPoint:
        """See `zones.Makers`."""
        router = Router(name)
        self._register(router, self._where)
        self._zone.add(router)
        return router

    def link(
        self,
        name: str,
        bandwidth: float,
        latency: float,
        sharing: str,
        properties: Mapping[str, str] = NOTHING,
    ) -> tuple[Link, Link]:
        """See `zones.Makers`."""
        if name in self._splits:
            raise UsageError(
                f'{self._where}: expected a link name that is not taken, got "{name}" again'
            )
        if sharing != SPLIT:
            link = self._one_link(name, bandwidth, latency, sharing, properties)
            return link, link
        up = self._one_link(f"{name}_UP", bandwidth, latency, SHARED, properties)
        down = self._one_link(f"{name}_DOWN", bandwidth, latency, SHARED, properties)
        up.opposite, down.opposite = down, up
        self._splits[name] = up, down
        return up, down

    def cable(
        self, cluster: ClusterDef, name: str, host: NetPoint | None = None, count: int = 1
    ) -> tuple[Link, Link]:
        """See `zones.Makers`."""
        latency, sharing = cluster.latency, cluster.sharing
        pair = self.link(name, cluster.bandwidth * count, latency, sharing)
        rails, swaps = cluster.rails, self._plane
        if rails is None or (swaps is None and host is None):
            return pair
        if swaps is None:
            assert host is not None
            swaps = self._swaps.setdefault(host, [{} for _ in range(rails.count)])
        for number in range(1, rails.count):
            other: tuple[float | None, float | None] = (None, None)
            if rails.others:
                other = rails.others[number - 1]
            twin = self.link(
                f"{name}_rail_{number}",
                (cluster.bandwidth if other[0] is None else other[0]) * count,
                latency if other[1] is None else other[1],
                sharing,
            )
            swaps[number].update(zip(pair, twin))
        return pair

    def next_number(self, series: str, count: int = 1) -> int:
        """See `zones.Makers`."""
        first = self._numbers.get(series, 0)
        self._numbers[series] = first + count
        return first

    def _one_link(
        self, name: str, bandwidth: float, latency: float, sharing: str, props: Mapping[str, str]
    ) -> Link:
        if name in self._by_link_name:
            raise UsageError(
                f'{self._where}: expected a link name that is not taken, got "{name}" again'
            )
        if len(self._links) >= self._most["links"]:
            self._limit("links", len(self._links) + 1, self._where)
        link = Link(name, len(self._links), bandwidth, latency, sharing, props)
        self._links.append(link)
        self._by_link_name[name] = link
        return link

    def _implicit_loopback(self) -> Link:
        config, source = self._config, self._definition.source
        bandwidth = LOOPBACK_BANDWIDTH
        preset = config.get("network/preset") or self._definition.preset
        latency = SMPI_LOOPBACK_LATENCY if preset == "smpi" else LOOPBACK_LATENCY
        try:
            if "network/loopback-bw" in config:
                bandwidth = parse_bandwidth(config["network/loopback-bw"], bare=True)
            if "network/loopback-lat" in config:
                latency = parse_time(config["network/loopback-lat"], bare=True)
        except UsageError as error:
            raise UsageError(f"{source}: network/loopback option: {error}") from None
        if bandwidth == 0.0:
            raise UsageError(f"{source}: network/loopback-bw: expected more than 0, got 0")
        self._where = source
        return self._one_link(LOOPBACK, bandwidth, latency, FATPIPE, NOTHING)

    # Connections of the members

    def _connect(self, zone: Zone, definition: ZoneDef) -> None:
        for attachment in definition.attachments:
            self._attach(zone, attachment)
        for route in definition.routes:
            self._route(zone, route)
        if definition.gateway is not None:
            gateway = self._point(definition.gateway, definition.where)
            if isinstance(gateway, Zone) or not zone.contains(gateway):
                raise UsageError(
                    f"{definition.where}: expected as gateway a host or router inside "
                    f'{zone.name}, got "{gateway.name}"'
                )
            zone.gateway = gateway

    def _attach(self, zone: Zone, definition: AttachDef) -> None:
        where = definition.where
        node = self._member(zone, definition.node, where)
        up = self._hops(definition.up, where)
        down = (
            self._hops(definition.down, where)
            if definition.down is not None
            else self._hops_back(definition.up, where)
        )
        gateway = self._gateway(node, definition.gateway, where)
        _located(where, lambda: zone.attach(node, up, down, gateway))

    def _route(self, zone: Zone, definition: RouteDef) -> None:
        where = definition.where
        if definition.bypass:
            # A bypass may join zones at any depth below the one that declares it.
            src = self._point(definition.src, where)
            dst = self._point(definition.dst, where)
            for point in (src, dst):
                if not zone.contains(point):
                    raise UsageError(
                        f'{where}: expected a point inside zone {zone.name}, got "{point.name}"'
                    )
        else:
            src = self._member(zone, definition.src, where)
            dst = self._member(zone, definition.dst, where)
        gateway_src = self._gateway(src, definition.gateway_src, where)
        gateway_dst = self._gateway(dst, definition.gateway_dst, where)
        if not definition.hops:
            raise UsageError(f"{where}: expected at least one link in the route, got none")
        there = LocalRoute(self._hops(definition.hops, where), gateway_src, gateway_dst)
        if definition.bypass:
            if (src, dst) in zone.bypasses:
                raise UsageError(
                    f"{where}: expected one bypass from {src.name} to {dst.name}, got a second one"
                )
            zone.bypasses[src, dst] = there
            return
        _located(where, lambda: zone.add_route(src, dst, there))
        if definition.symmetric and src is not dst:
            back = LocalRoute(self._hops_back(definition.hops, where), gateway_dst, gateway_src)
            _located(where, lambda: zone.add_route(dst, src, back))

    def _gateway(self, member: NetPoint, name: str | None, where: str) -> NetPoint | None:
        """The point through which a route enters `member`; None for a host or router."""
        if not isinstance(member, Zone):
            if name is not None and name != member.name:
                raise UsageError(
                    f'{where}: expected no gateway for {member.name}, no zone, got "{name}"'
                )
            return None
        if name is None:
            # A zone's own default gateway is known only once its definition has been connected,
            # which happens before its parent's.
            if member.gateway is None:
                raise UsageError(
                    f"{where}: expected a gateway for zone {member.name}, which has none of its own"
                )
            return member.gateway
        gateway = self._point(name, where)
        if isinstance(gateway, Zone):
            raise UsageError(
                f'{where}: expected a host or router as gateway, got the zone "{name}"'
            )
        if not member.contains(gateway):
            raise UsageError(
                f'{where}: expected a gateway inside zone {member.name}, got "{name}", which is not'
            )
        return gateway

    def _member(self, zone: Zone, name: str, where: str) -> NetPoint:
        point = self._point(name, where)
        if point.zone is not zone:
            raise UsageError(
                f'{where}: expected a direct member of zone {zone.name}, got "{name}", '
                f"which is in {point.zone.name if point.zone else 'no zone'}"
            )
        return point

    def _point(self, name: str, where: str) -> NetPoint:
        point = self._points.get(name)
        if point is None:
            raise UsageError(
                f'{where}: expected a host, router or zone, got "{name}", which is none'
                + did_you_mean(name, self._points, '"{}"')
            )
        return point

    def _named(self, where: str, name: str) -> tuple[Link, ...]:
        """The link called `name`, or the two of a split-duplex link."""
        split = self._splits.get(name)
        if split is not None:
            return split
        link = self._by_link_name.get(name)
        if link is None:
            names = [*self._by_link_name, *self._splits]
            raise UsageError(
                f'{where}: expected a link, got "{name}", which is none'
                + did_you_mean(name, names, '"{}"')
            )
        return (link,)

    def _hops(self, hops: Iterable[Hop], where: str) -> tuple[Link, ...]:
        return tuple(self._hop(hop, hop.direction, where) for hop in hops)

    def _hops_back(self, hops: list[Hop], where: str) -> tuple[Link, ...]:
        turned = {"up": "down", "down": "up", "": ""}
        return tuple(self._hop(hop, turned[hop.direction], where) for hop in reversed(hops))

    def _hop(self, hop: Hop, direction: str, where: str) -> Link:
        where = hop.where or where
        links = self._named(where, hop.link)
        if len(links) == 2:
            if not direction:
                raise UsageError(
                    f"{where}: expected a direction (up or down) for the split-duplex link "
                    f'"{hop.link}", got none'
                )
            return links[0] if direction == "up" else links[1]
        if direction:
            raise UsageError(
                f'{where}: expected no direction for "{hop.link}", which is not split-duplex, '
                f'got "{direction}"'
            )
        return links[0]


def _most(config: Mapping[str, str], what: str) -> int:
    option, most = MOST[what]
    try:
        return read_count(config[option]) if option in config else most
    except UsageError as error:
        raise UsageError(f"{option}: {error}") from None


def _located(where: str, action: Callable[[], None]) -> None:
    """Run `action`; put the place in the file before the message of a UsageError."""
    try:
        action()
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None
