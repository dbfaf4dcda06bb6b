"""Writer of SimGrid's platform files, the inverse of `xml`.

The file has the same hosts, links, routes and options, so that SMPI prices messages between hosts
as pysmpi's model hybrid does: the factors of the preset are written as options. SimGrid's format
cannot describe the inside of a node, sockets, and options of single models; `leaves_out` lists
these parts of a machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lxml import etree  # type: ignore[import-untyped]

from pysmpi.errors import UsageError
from pysmpi.platform.construct import LOOPBACK_LATENCY, construct
from pysmpi.platform.definition import (
    FATPIPE,
    SHARED,
    SPLIT,
    AttachDef,
    ClusterDef,
    Hop,
    HostDef,
    LinkDef,
    PlatformDef,
    RouteDef,
    RouterDef,
    ZoneDef,
)
from pysmpi.platform.model import Platform
from pysmpi.platform.numbers import write_radical
from pysmpi.platform.profiles import write_profile
from pysmpi.platform.units import format_bandwidth, format_speed, format_time
from pysmpi.platform.xml_elements import CONNECTED
from pysmpi.platform.zones import ZONE_KINDS, Zone

SHARINGS = {SHARED: "SHARED", FATPIPE: "FATPIPE", SPLIT: "SPLITDUPLEX"}

# pysmpi's preset `neutral` in SMPI's options.
NEUTRAL = {
    "smpi/lat-factor": "0:1",
    "smpi/bw-factor": "0:1",
    "network/weight-S": "0",
    "network/TCP-gamma": "0",
    "network/crosstraffic": "no",
    "smpi/async-small-thresh": "65536",
    "network/loopback-lat": repr(LOOPBACK_LATENCY),
}
# The speed of hosts without a speed in the platform; if this computer is assumed to have the same
# speed, compute is not scaled.
SPEED = 1e9

# Options that only pysmpi has begin like this.
OWN = (
    "memory/",
    "network/message-rate",
    "network/step-overhead",
    "network/error",
    "compute/error",
    "loggp",
    "logp/",
    "plogp/",
    "lognp/",
    "disk/",
    "platform/",
)

DOCTYPE = '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">'


def dump_xml(definition: PlatformDef, preset: Mapping[str, str] = NEUTRAL) -> str:
    """The XML text of a definition. Raises UsageError for parts that the format cannot describe.

    `preset` has, as options, the values of the definition's preset, unless that is `smpi`.
    """
    try:
        return _Writer(definition, preset).text()
    except ValueError as error:  # of lxml
        if "XML compatible" not in str(error):
            raise
        raise UsageError(
            "expected names without control characters, which XML cannot have"
        ) from None


def leaves_out(definition: PlatformDef) -> list[str]:
    """The parts of a machine that its SimGrid file leaves out, as text."""
    found = []
    hosts = list(_hosts(definition.root))
    if any(host.node is not None for host in hosts):
        found.append("the inside of nodes (caches, memory)")
    if any(host.sockets > 1 for host in hosts):
        found.append("sockets")
    if any(host.rails is not None for host in hosts):
        found.append("rails but the first of each host")
    if definition.models:
        found.append(f"options of the models {', '.join(definition.models)}")
    if any(name.startswith(OWN) for name in definition.config):
        found.append("options that only pysmpi has")
    return found


def _simgrid_name(kind: str, complaint: str) -> str:
    names = ZONE_KINDS.find(kind).simgrid
    if not names:
        raise UsageError(f"{complaint} {kind}")
    return names[0]


def _hosts(zone: ZoneDef) -> Iterator[HostDef | ClusterDef]:
    for member in zone.members:
        if isinstance(member, ZoneDef):
            yield from _hosts(member)
        elif isinstance(member, HostDef | ClusterDef):
            yield member


class _Writer:
    def __init__(self, definition: PlatformDef, preset: Mapping[str, str]) -> None:
        self._preset = preset
        self._definition = definition
        self._platform: Platform = construct(definition)
        self._zones = dict(_by_name(self._platform.root))
        self._speedless = all(not host.speeds for host in _hosts(definition.root))
        self._wrapped: dict[str, str] = {}

    def text(self) -> str:
        definition = self._definition
        top = etree.Element("platform", version="4.1")
        if definition.description:
            top.append(etree.Comment(f" {definition.description.replace('--', '- -').strip()} "))
        config = self._config()
        if config:
            _properties(etree.SubElement(top, "config"), config)
        root = definition.root
        zones = [member for member in root.members if isinstance(member, ZoneDef | ClusterDef)]
        plain = len(zones) == len(root.members)
        if plain and not root.routes and not root.attachments:
            for member in zones:
                self._member(top, member)
        else:
            name = definition.name
            while name in self._zones or name in {host.name for host in self._platform.hosts}:
                name += "_"
            self._zone(top, root, name)
        kinds = {kind: name for name, kind in reversed(CONNECTED.items())}
        for number, one in enumerate(definition.profiles):
            trace = etree.SubElement(top, "trace", id=f"profile{number}", periodicity="-1")
            trace.text = "\n" + write_profile(one.profile)
            etree.SubElement(
                top, "trace_connect", kind=kinds[one.kind], trace=f"profile{number}",
                element=one.name,
            )  # fmt: skip
        etree.indent(top)
        body = etree.tostring(top, encoding="unicode")
        return f"<?xml version='1.0'?>\n{DOCTYPE}\n{body}\n"

    def _config(self) -> dict[str, str]:
        definition = self._definition
        own = definition.config
        config = {} if definition.preset == "smpi" else dict(self._preset)
        if "network/latency-factor" in own:
            config.pop("smpi/lat-factor", None)
        if "network/bandwidth-factor" in own:
            config.pop("smpi/bw-factor", None)
        config.update(
            (name, value)
            for name, value in own.items()
            if not name.startswith(OWN) and name != "network/preset"
        )
        if self._speedless:
            config["smpi/host-speed"] = format_speed(SPEED)
        return config

    # Members

    def _member(self, parent: etree._Element, member: ZoneDef | ClusterDef) -> None:
        if isinstance(member, ZoneDef):
            self._zone(parent, member, member.name)
        else:
            self._cluster(parent, member)

    def _zone(self, parent: etree._Element, zone: ZoneDef, name: str) -> None:
        routing = _simgrid_name(zone.routing, f"{zone.where}: SimGrid has no zones of kind")
        element = etree.SubElement(parent, "zone", id=name, routing=routing)
        _properties(element, zone.properties)
        # A zone of SimGrid holds either zones or hosts; single hosts among zones get one each.
        inner = any(isinstance(member, ZoneDef | ClusterDef) for member in zone.members)
        star = self._star(zone)
        peers = self._peers(zone) if routing == "Vivaldi" else {}
        taken = {link for pair in peers.values() for link in (pair[0].name, pair[1].name)}
        for member in zone.members:
            if isinstance(member, ZoneDef | ClusterDef):
                self._member(element, member)
            elif isinstance(member, LinkDef):
                if member.name not in taken:
                    self._link(element, member, member.name == star)
            elif isinstance(member, HostDef) and member.name in peers:
                self._peer(element, member, *peers[member.name])
            elif inner:
                self._wrapped[member.name] = f"{member.name}__zone"
                wrapper = etree.SubElement(
                    element, "zone", id=f"{member.name}__zone", routing="Full"
                )
                self._point(wrapper, member)
            else:
                self._point(element, member)
        for attach in zone.attachments:
            if attach.node not in peers:
                self._attach(element, attach, star)
        for route in zone.routes:
            self._route(element, route)

    def _point(self, parent: etree._Element, member: HostDef | RouterDef) -> None:
        places = {}
        if member.coordinates is not None:
            places["coordinates"] = " ".join(map(repr, member.coordinates))
        if isinstance(member, RouterDef):
            etree.SubElement(parent, "router", id=member.name, **places)
            return
        element = etree.SubElement(
            parent, "host", id=member.name, speed=self._speed(member), **places
        )
        if member.cores != 1:
            element.set("core", str(member.cores))
        if member.pstate:
            element.set("pstate", str(member.pstate))
        for disk in member.disks:
            child = etree.SubElement(
                element, "disk", id=disk.name, read_bw=format_bandwidth(disk.read),
                write_bw=format_bandwidth(disk.write),
            )  # fmt: skip
            _properties(child, disk.properties)
        _properties(element, member.properties)

    def _speed(self, member: HostDef | ClusterDef) -> str:
        if not member.speeds and not self._speedless:
            raise UsageError(
                f"{member.where}: SimGrid needs the speed of every host: give all of them one, "
                "or none"
            )
        return ",".join(map(format_speed, member.speeds or (SPEED,)))

    def _link(self, parent: etree._Element, link: LinkDef, backbone: bool) -> None:
        element = etree.SubElement(
            parent, "backbone" if backbone else "link", id=link.name,
            bandwidth=format_bandwidth(link.bandwidth), latency=format_time(link.latency),
        )  # fmt: skip
        if backbone:
            return
        element.set("sharing_policy", SHARINGS[link.sharing])
        _properties(element, link.properties)

    def _cluster(self, parent: etree._Element, cluster: ClusterDef) -> None:
        topology = _simgrid_name(cluster.topology, f"{cluster.where}: SimGrid has no topology")
        element = etree.SubElement(
            parent, "cluster", id=cluster.name, prefix=cluster.prefix, suffix=cluster.suffix,
            radical=write_radical(cluster.radical), speed=self._speed(cluster),
            core=str(cluster.cores), bw=format_bandwidth(cluster.bandwidth),
            lat=format_time(cluster.latency), sharing_policy=SHARINGS[cluster.sharing],
        )  # fmt: skip
        if cluster.shape is not None:
            element.set("topology", topology)
            element.set("topo_parameters", cluster.shape.to_text())
        if cluster.backbone is not None:
            element.set("bb_bw", format_bandwidth(cluster.backbone.bandwidth))
            element.set("bb_lat", format_time(cluster.backbone.latency))
            element.set("bb_sharing_policy", SHARINGS[cluster.backbone.sharing])
        if cluster.limiter is not None:
            element.set("limiter_link", format_bandwidth(cluster.limiter))
        loopback = cluster.loopback
        if loopback is None and topology == "FLAT" and not cluster.own_link:
            # SimGrid has messages of a host to itself cross the host's link otherwise.
            implicit = self._platform.loopback
            loopback = implicit.bandwidth, implicit.latency
        if loopback is not None:
            element.set("loopback_bw", format_bandwidth(loopback[0]))
            element.set("loopback_lat", format_time(loopback[1]))
        if cluster.router is not None:
            element.set("router_id", cluster.router)
        _properties(element, cluster.properties)

    # Ways

    def _star(self, zone: ZoneDef) -> str | None:
        """The link of a star zone that every way crosses last: its backbone."""
        ways = [attach.up for attach in zone.attachments]
        if not ways or any(len(way) != 2 for way in ways):
            return None
        (last, *others) = {way[-1].link for way in ways}
        known = {m.name: m for m in zone.members if isinstance(m, LinkDef)}
        link = known.get(last)
        return last if not others and link is not None and link.sharing == SHARED else None

    def _attach(self, parent: etree._Element, attach: AttachDef, backbone: str | None) -> None:
        up = [hop for hop in attach.up if hop.link != backbone]
        down = attach.down if attach.down is not None else [_turned(hop) for hop in attach.up[::-1]]
        down = [hop for hop in down if hop.link != backbone]
        if len(up) != 1 or len(down) != 1 or attach.gateway is not None:
            raise UsageError(
                f"{attach.where}: SimGrid has members of a star that cross one link, and a "
                f"backbone, got {attach.node} with {len(attach.up)} links"
            )
        etree.SubElement(parent, "host_link", id=attach.node, up=_copy(up[0]), down=_copy(down[0]))

    def _peers(self, zone: ZoneDef) -> dict[str, tuple[LinkDef, LinkDef]]:
        """The links up and down of each peer of a Vivaldi zone."""
        links = {m.name: m for m in zone.members if isinstance(m, LinkDef)}
        found = {}
        for attach in zone.attachments:
            names = f"link_{attach.node}_UP", f"link_{attach.node}_DOWN"
            down = attach.down or []
            ways = [hop.link for hop in attach.up], [hop.link for hop in down]
            if ways != ([names[0]], [names[1]]) or any(links[n].latency for n in names):
                raise UsageError(
                    f"{attach.where}: SimGrid has members of a Vivaldi zone with links called "
                    f"{names[0]} and {names[1]}, without latency"
                )
            found[attach.node] = links[names[0]], links[names[1]]
        return found

    def _peer(self, parent: etree._Element, host: HostDef, up: LinkDef, down: LinkDef) -> None:
        if host.coordinates is None:
            raise UsageError(f"{host.where}: a peer needs coordinates, got none")
        etree.SubElement(
            parent, "peer", id=host.name, speed=self._speed(host),
            bw_out=format_bandwidth(up.bandwidth), bw_in=format_bandwidth(down.bandwidth),
            coordinates=" ".join(map(repr, host.coordinates)),
        )  # fmt: skip

    def _route(self, parent: etree._Element, route: RouteDef) -> None:
        ends = {"src": route.src, "dst": route.dst}
        gates = {"gw_src": route.gateway_src, "gw_dst": route.gateway_dst}
        zones = False
        for key, gate in (("src", "gw_src"), ("dst", "gw_dst")):
            name = ends[key]
            if name in self._wrapped:
                ends[key], gates[gate], zones = self._wrapped[name], name, True
            elif name in self._zones:
                zones = True
                gateway = self._zones[name].gateway
                if gates[gate] is None and gateway is not None:
                    gates[gate] = gateway.name
        tag = "zoneRoute" if zones else "route"
        if route.bypass:
            tag = "bypassZoneRoute" if zones else "bypassRoute"
        element = etree.SubElement(parent, tag, **ends)
        if zones:
            for gate, point in gates.items():
                element.set(gate, str(point))
        if not route.symmetric and not route.bypass:
            element.set("symmetrical", "NO")
        for hop in route.hops:
            child = etree.SubElement(element, "link_ctn", id=hop.link)
            if hop.direction:
                child.set("direction", hop.direction.upper())


def _by_name(zone: Zone) -> Iterator[tuple[str, Zone]]:
    for member in zone.members:
        if isinstance(member, Zone):
            yield member.name, member
            yield from _by_name(member)


def _properties(element: etree._Element, properties: Mapping[str, str]) -> None:
    for name, value in properties.items():
        etree.SubElement(element, "prop", id=name, value=value)


def _turned(hop: Hop) -> Hop:
    return Hop(hop.link, {"up": "down", "down": "up", "": ""}[hop.direction])


def _copy(hop: Hop) -> str:
    """The name of one direction of a link."""
    return f"{hop.link}_{hop.direction.upper()}" if hop.direction else hop.link
