"""Reader of SimGrid's platform files (version 4 and 4.1 of its document type).

The reader is strict: an unknown, unsupported or malformed element or attribute raises a UsageError
with the place, the expected and the found value. Elements that SimGrid accepts and pysmpi does not
simulate (Wifi) are errors, because the predicted time would silently be
wrong without them. A quantity without a unit is a warning in SimGrid and an error here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from io import BytesIO
from pathlib import Path
from typing import TypeVar

from lxml import etree  # type: ignore[import-untyped]

from pysmpi.errors import UsageError
from pysmpi.io.reading import read_bytes, read_text
from pysmpi.platform.definition import (
    FATPIPE,
    SHARED,
    SPLIT,
    AttachDef,
    ClusterDef,
    Coordinates,
    DiskDef,
    Hop,
    HostDef,
    LinkDef,
    PlatformDef,
    RouteDef,
    RouterDef,
    ZoneDef,
)
from pysmpi.platform.numbers import read_coordinates, read_count, read_radical
from pysmpi.platform.profiles import PlatformProfile, ProfileDef, check_profile, read_profile
from pysmpi.platform.units import parse_bandwidth, parse_speed, parse_time
from pysmpi.platform.xml_elements import (
    CONNECTED,
    ELEMENTS,
    PROFILE_FILES,
    UNSIMULATED,
    UNSIMULATED_ROUTINGS,
)
from pysmpi.platform.zones import simgrid_kinds
from pysmpi.text import did_you_mean, whole

_T = TypeVar("_T")

ROOT = "_world_"


def read_xml(path: Path) -> PlatformDef:
    """The definition in the SimGrid file `path`. Raises UsageError."""
    parser = etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        remove_comments=True,
        remove_pis=True,
    )
    data = BytesIO(read_bytes(path))
    try:
        tree = etree.parse(data, parser)
    except etree.XMLSyntaxError as error:
        line = error.lineno or 1
        what = re.sub(r", line \d+, column \d+.*$", "", error.msg or "no XML document")
        raise UsageError(f"{path}:{line}: expected well-formed XML, got: {what}") from None
    return _Reader(path).platform(tree.getroot())


class _Reader:
    """Turns elements into definitions, checking each against `ELEMENTS`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._profiles: list[ProfileDef] = []
        self._traces: dict[str, PlatformProfile] = {}
        self._connections: list[etree._Element] = []

    # Elements

    def platform(self, element: etree._Element) -> PlatformDef:
        if element.tag != "platform":
            raise self._error(
                element, f"expected <platform> around everything, got <{element.tag}>"
            )
        attributes = self._attributes(element)
        if attributes["version"] not in ("4", "4.0", "4.1"):
            raise self._error(
                element, f'version: expected "4.1" or "4", got "{attributes["version"]}"'
            )
        config: dict[str, str] = {}
        root = ZoneDef(ROOT, "full", where=str(self._path))
        for child in self._children(element):
            if child.tag == "config":
                if root.members:
                    raise self._error(
                        child, "expected <config> before every zone, got it after one"
                    )
                self._attributes(child)
                config.update(self._properties(child))
            elif child.tag == "cluster":
                root.members.append(self._cluster(child))
            elif child.tag in ("trace", "trace_connect"):
                self._trace(child)
            else:
                root.members.append(self._zone(child))
        for connection in self._connections:
            self._connect(connection)
        if not root.members:
            raise self._error(element, "expected at least one zone or cluster, got none")
        return PlatformDef(
            self._path.stem, root, str(self._path), config=config, preset="smpi", simgrid=True,
            profiles=self._profiles,
        )  # fmt: skip

    def _trace(self, element: etree._Element) -> None:
        attributes = self._attributes(element)
        if element.tag == "trace_connect":
            self._connections.append(element)  # the trace may come later
            return
        period = None
        if "periodicity" in attributes:
            text = attributes["periodicity"]
            try:
                period = float(text)
            except ValueError:
                raise self._error(element, f"periodicity: expected seconds, got {text!r}") from None
        if "file" in attributes:
            profile = self._profile_file(element, "file", attributes["file"], period)
        else:
            text = element.text or ""
            profile = self._quantity(element, "text", text, lambda said: read_profile(said, period))
        self._traces[attributes["id"]] = profile

    def _connect(self, element: etree._Element) -> None:
        attributes = self._attributes(element)
        kind, trace = attributes["kind"], attributes["trace"]
        if kind not in CONNECTED:
            known = ", ".join(name for name in CONNECTED if name != "POWER")
            raise self._error(element, f'kind: expected one of {known}, got "{kind}"')
        if trace not in self._traces:
            raise self._error(element, f'trace: expected the id of a <trace>, got "{trace}"')
        self._add_profile(
            element, "trace", CONNECTED[kind], attributes["element"], self._traces[trace]
        )

    def _profile_file(
        self, element: etree._Element, attribute: str, name: str, period: float | None = None
    ) -> PlatformProfile:
        try:
            text = read_text(self._path.parent / name, "the file of a profile")
        except UsageError as error:
            raise self._error(
                element, f"{attribute}: expected the file of a profile: {error}"
            ) from None
        return self._quantity(element, f"{attribute}: {name}", text,
                              lambda said: read_profile(said, period))  # fmt: skip

    def _add_profile(
        self, element: etree._Element, place: str, kind: str, name: str, profile: PlatformProfile
    ) -> None:
        try:
            check_profile(kind, profile)
        except UsageError as error:
            raise self._error(element, f"{place}: {error}") from None
        self._profiles.append(ProfileDef(kind, name, profile, self._where(element)))

    def _read_profiles(self, element: etree._Element, attributes: Mapping[str, str]) -> None:
        """The profiles in files that a host or link names."""
        for attribute, kind in PROFILE_FILES[element.tag].items():
            if attribute in attributes:
                profile = self._profile_file(element, attribute, attributes[attribute])
                self._add_profile(element, attribute, kind, attributes["id"], profile)

    def _zone(self, element: etree._Element) -> ZoneDef:
        attributes = self._attributes(element)
        wanted = attributes["routing"].lower()
        if wanted in UNSIMULATED_ROUTINGS:
            raise self._error(
                element,
                f'routing: zones of kind "{attributes["routing"]}" are not supported: there is no '
                "model of a radio channel that stations share",
            )
        kinds = simgrid_kinds(clusters=False)
        kind = {name.lower(): kind for name, kind in kinds.items()}.get(wanted)
        if kind is None:
            names = ", ".join(kinds)
            raise self._error(
                element, f'routing: expected one of {names}, got "{attributes["routing"]}"'
            )
        zone = ZoneDef(
            attributes["id"], kind.name, properties=self._properties(element),
            where=self._where(element),
        )  # fmt: skip
        star = _StarParts()
        for child in self._children(element):
            self._zone_part(zone, star, child)
        star.finish(zone)
        return zone

    def _zone_part(self, zone: ZoneDef, star: _StarParts, child: etree._Element) -> None:
        match child.tag:
            case "prop":
                pass
            case "trace" | "trace_connect":
                self._trace(child)
            case "zone" | "AS":
                zone.members.append(self._zone(child))
            case "cluster":
                zone.members.append(self._cluster(child))
            case "host":
                zone.members.append(self._host(child))
            case "router":
                attributes = self._attributes(child)
                zone.members.append(
                    RouterDef(attributes["id"], self._where(child), self._place(child, attributes))
                )
            case "peer":
                if zone.routing != "vivaldi":
                    raise self._error(
                        child, 'expected only in a zone with routing="Vivaldi", got it elsewhere'
                    )
                self._peer(zone, child)
            case "link":
                zone.members.append(self._link(child))
            case "backbone" | "host_link" | "cabinet":
                if zone.routing != "star":
                    raise self._error(
                        child, 'expected only in a zone with routing="Cluster", got it elsewhere'
                    )
                self._star_part(zone, star, child)
            case _:
                zone.routes.append(self._route(child))

    def _star_part(self, zone: ZoneDef, star: _StarParts, child: etree._Element) -> None:
        attributes, where = self._attributes(child), self._where(child)
        if child.tag == "host_link":
            attach = AttachDef(
                attributes["id"],
                [Hop(attributes["up"], where=where)],
                [Hop(attributes["down"], where=where)],
                where=where,
            )
            star.host_links.append(attach)
            return
        if child.tag == "backbone":
            if star.backbone is not None:
                raise self._error(child, "expected one backbone in the zone, got a second one")
            star.backbone = attributes["id"]
            zone.members.append(
                LinkDef(
                    attributes["id"],
                    self._bandwidth(child, "bandwidth", attributes["bandwidth"]),
                    self._quantity(child, "latency", attributes["latency"], parse_time),
                    where=where,
                )
            )
            return
        speeds = (self._speed(child, attributes["speed"]),)
        bandwidth = self._bandwidth(child, "bw", attributes["bw"])
        latency = self._quantity(child, "lat", attributes["lat"], parse_time)
        for first, last in self._quantity(child, "radical", attributes["radical"], read_radical):
            for number in range(first, last + 1):
                name = f"{attributes['prefix']}{number}{attributes['suffix']}"
                up, down = f"link_{name}_UP", f"link_{name}_DOWN"
                zone.members.append(HostDef(name, speeds, where=where))
                zone.members.append(LinkDef(up, bandwidth, latency, where=where))
                zone.members.append(LinkDef(down, bandwidth, latency, where=where))
                star.cabinets.append(AttachDef(name, [Hop(up)], [Hop(down)], where=where))

    def _host(self, element: etree._Element) -> HostDef:
        attributes = self._attributes(element)
        self._read_profiles(element, attributes)
        cores = self._quantity(element, "core", attributes.get("core", "1"), read_count)
        speeds = tuple(
            self._quantity(element, "speed", text, parse_speed)
            for text in attributes["speed"].split(",")
        )
        # The document type gives "0.0" as the default, so a decimal zero is as good as an integer.
        state = whole(attributes.get("pstate", "0").removesuffix(".0"))
        if state is None or state >= len(speeds):
            raise self._error(
                element,
                f"pstate: expected a number from 0 to {len(speeds) - 1}, "
                f'got "{attributes["pstate"]}"',
            )
        if speeds[state] == 0.0:
            raise self._error(element, "speed: expected more than 0 in the pstate in force, got 0")
        return HostDef(
            attributes["id"],
            speeds,
            cores,
            pstate=state,
            properties=self._properties(element),
            where=self._where(element),
            disks=[self._disk(child) for child in self._children(element) if child.tag == "disk"],
            coordinates=self._place(element, attributes),
        )

    def _disk(self, element: etree._Element) -> DiskDef:
        attributes = self._attributes(element)
        return DiskDef(
            attributes["id"],
            self._bandwidth(element, "read_bw", attributes["read_bw"]),
            self._bandwidth(element, "write_bw", attributes["write_bw"]),
            self._properties(element),
            self._where(element),
        )

    def _place(self, element: etree._Element, attributes: Mapping[str, str]) -> Coordinates | None:
        text = attributes.get("coordinates")
        if text is None:
            return None
        return self._quantity(element, "coordinates", text, read_coordinates)

    def _peer(self, zone: ZoneDef, element: etree._Element) -> None:
        """A host and its two links, to which only its own bandwidths belong."""
        attributes, where = self._attributes(element), self._where(element)
        self._read_profiles(element, attributes)
        name = attributes["id"]
        up, down = f"link_{name}_UP", f"link_{name}_DOWN"
        zone.members += (
            HostDef(name, self._speeds(element, attributes["speed"]), where=where,
                    coordinates=self._place(element, attributes)),
            LinkDef(up, self._bandwidth(element, "bw_out", attributes["bw_out"]), where=where),
            LinkDef(down, self._bandwidth(element, "bw_in", attributes["bw_in"]), where=where),
        )  # fmt: skip
        zone.attachments.append(AttachDef(name, [Hop(up)], [Hop(down)], where=where))

    def _link(self, element: etree._Element) -> LinkDef:
        attributes = self._attributes(element)
        self._read_profiles(element, attributes)
        return LinkDef(
            attributes["id"],
            self._bandwidth(element, "bandwidth", attributes["bandwidth"]),
            self._quantity(element, "latency", attributes.get("latency", "0"), parse_time),
            self._sharing(element, attributes, "sharing_policy", SHARED),
            self._properties(element),
            self._where(element),
        )

    def _cluster(self, element: etree._Element) -> ClusterDef:
        attributes, where = self._attributes(element), self._where(element)
        name = attributes["id"]
        cluster = ClusterDef(
            name,
            attributes["prefix"],
            attributes["suffix"],
            self._quantity(element, "radical", attributes["radical"], read_radical),
            self._speeds(element, attributes["speed"]),
            self._bandwidth(element, "bw", attributes["bw"]),
            self._quantity(element, "lat", attributes["lat"], parse_time),
            self._quantity(element, "core", attributes.get("core", "1"), read_count),
            sharing=self._sharing(element, attributes, "sharing_policy", SPLIT),
            router=attributes.get("router_id"),
            properties=self._properties(element),
            where=where,
        )
        if "limiter_link" in attributes:
            cluster.limiter = self._bandwidth(element, "limiter_link", attributes["limiter_link"])
        backbone_latency = self._quantity(
            element, "bb_lat", attributes.get("bb_lat", "0"), parse_time
        )
        if "bb_bw" in attributes:
            cluster.backbone = LinkDef(
                f"{name}_backbone",
                self._bandwidth(element, "bb_bw", attributes["bb_bw"]),
                backbone_latency,
                self._sharing(element, attributes, "bb_sharing_policy", SHARED),
                where=where,
            )
        elif backbone_latency > 0.0:
            raise self._error(element, "expected bb_bw beside bb_lat, got none")
        loopback_latency = self._quantity(
            element, "loopback_lat", attributes.get("loopback_lat", "0"), parse_time
        )
        if "loopback_bw" in attributes:
            bandwidth = self._bandwidth(element, "loopback_bw", attributes["loopback_bw"])
            cluster.loopback = bandwidth, loopback_latency
        elif loopback_latency > 0.0:
            raise self._error(element, "expected loopback_bw beside loopback_lat, got none")
        self._topology(element, attributes, cluster)
        return cluster

    def _topology(
        self, element: etree._Element, attributes: Mapping[str, str], cluster: ClusterDef
    ) -> None:
        wanted = attributes.get("topology", "FLAT")
        text = attributes.get("topo_parameters")
        if wanted == "FLAT":
            if text is not None:
                raise self._error(
                    element, f'expected no topo_parameters for a FLAT topology, got "{text}"'
                )
            return
        kinds = simgrid_kinds(clusters=True)
        kind = kinds.get(wanted)
        if kind is None or kind.cls.shape is None:
            known = ", ".join(sorted(kinds))
            raise self._error(element, f'topology: expected one of {known}, got "{wanted}"')
        if text is None:
            raise self._error(
                element, f"expected topo_parameters for a {wanted} topology, got none"
            )
        if cluster.backbone is not None or cluster.router is not None:
            raise self._error(element, f"expected no backbone and no router in a {wanted} topology")
        cluster.topology = kind.name
        cluster.shape = self._quantity(element, "topo_parameters", text, kind.cls.shape.from_text)

    def _route(self, element: etree._Element) -> RouteDef:
        attributes = self._attributes(element)
        symmetric = attributes.get("symmetrical", "YES").upper()
        if symmetric not in ("YES", "NO"):
            raise self._error(
                element, f'symmetrical: expected "YES" or "NO", got "{attributes["symmetrical"]}"'
            )
        hops = []
        for child in self._children(element):
            hop = self._attributes(child)
            direction = hop.get("direction", "NONE")
            if direction not in ("NONE", "UP", "DOWN"):
                raise self._error(
                    child, f'direction: expected "UP", "DOWN" or "NONE", got "{direction}"'
                )
            hops.append(
                Hop(hop["id"], {"NONE": ""}.get(direction, direction.lower()), self._where(child))
            )
        bypass = element.tag.startswith("bypass")
        return RouteDef(
            attributes["src"],
            attributes["dst"],
            hops,
            symmetric == "YES" and not bypass,
            attributes.get("gw_src"),
            attributes.get("gw_dst"),
            bypass,
            self._where(element),
        )

    # Attributes

    def _attributes(self, element: etree._Element) -> dict[str, str]:
        """The attributes of a known element; an empty text means absent if absence is allowed."""
        known = ELEMENTS[element.tag]
        found: dict[str, str] = {}
        for name, value in element.attrib.items():
            if name in known.required:
                found[name] = value
            elif name in known.optional:
                if value:
                    found[name] = value
            else:
                hint = did_you_mean(name, known.required + known.optional, '"{}"')
                legal = ", ".join(known.required + known.optional) or "none"
                raise self._error(
                    element, f'expected an attribute among {legal}, got "{name}"{hint}'
                )
        for name in known.required:
            if name not in found:
                raise self._error(element, f'expected the attribute "{name}", got none')
            if not found[name] and name not in ("prefix", "suffix", "value"):
                raise self._error(element, f"{name}: expected some text, got none")
        return found

    def _children(self, element: etree._Element) -> list[etree._Element]:
        """The children of an element. Raises UsageError for others, and for text between them."""
        allowed = ELEMENTS[element.tag].children
        if ELEMENTS[element.tag].text:
            return []
        texts = [element.text, *(child.tail for child in element)]
        for text in texts:
            if text is not None and text.strip():
                raise self._error(element, f'expected no text inside, got "{text.strip()[:40]}"')
        for child in element:
            tag = child.tag if isinstance(child.tag, str) else "&entity;"
            if tag in UNSIMULATED:
                raise self._error(
                    child, f"<{tag}> is not supported: pysmpi does not simulate {UNSIMULATED[tag]}"
                )
            if tag not in allowed:
                legal = ", ".join(f"<{name}>" for name in allowed) or "nothing"
                hint = did_you_mean(tag, allowed, "<{}>")
                raise self._error(
                    child, f"expected inside <{element.tag}> only {legal}, got <{tag}>{hint}"
                )
            if not ELEMENTS[tag].children:
                self._children(child)
        return list(element)

    def _properties(self, element: etree._Element) -> Mapping[str, str]:
        found: dict[str, str] = {}
        for child in self._children(element):
            if child.tag == "prop":
                attributes = self._attributes(child)
                found[attributes["id"]] = attributes["value"]
        return found

    def _quantity(
        self, element: etree._Element, name: str, text: str, parse: Callable[[str], _T]
    ) -> _T:
        try:
            return parse(text)
        except UsageError as error:
            raise self._error(element, f"{name}: {error}") from None

    def _bandwidth(self, element: etree._Element, name: str, text: str) -> float:
        value = self._quantity(element, name, text, parse_bandwidth)
        if value == 0.0:
            raise self._error(element, f'{name}: expected a bandwidth above 0, got "{text}"')
        return value

    def _speed(self, element: etree._Element, text: str) -> float:
        value = self._quantity(element, "speed", text, parse_speed)
        if value == 0.0:
            raise self._error(element, f'speed: expected a speed above 0, got "{text}"')
        return value

    def _speeds(self, element: etree._Element, text: str) -> tuple[float, ...]:
        first, *others = text.split(",")
        speeds = [self._quantity(element, "speed", other, parse_speed) for other in others]
        return (self._speed(element, first), *speeds)

    def _sharing(
        self, element: etree._Element, attributes: Mapping[str, str], name: str, default: str
    ) -> str:
        text = attributes.get(name)
        if text is None:
            return default
        if text == "WIFI":
            raise self._error(element, f"{name}: links of kind WIFI are not supported")
        known = {"SHARED": SHARED, "FATPIPE": FATPIPE}
        if name == "sharing_policy":
            # FULLDUPLEX is SimGrid's former name of the same.
            known |= {"SPLITDUPLEX": SPLIT, "FULLDUPLEX": SPLIT}
        if text not in known:
            legal = ", ".join(kind for kind in known if kind != "FULLDUPLEX")
            raise self._error(element, f'{name}: expected one of {legal}, got "{text}"')
        return known[text]

    # Places

    def _where(self, element: etree._Element) -> str:
        name = element.get("id")
        label = element.tag if name is None else f'{element.tag} id="{name}"'
        return f"{self._path}:{element.sourceline}: <{label}>"

    def _error(self, element: etree._Element, message: str) -> UsageError:
        return UsageError(f"{self._where(element)}: {message}")


class _StarParts:
    """The parts of a star zone; they become attachments after the whole zone has been read."""

    def __init__(self) -> None:
        self.backbone: str | None = None
        self.host_links: list[AttachDef] = []
        self.cabinets: list[AttachDef] = []

    def finish(self, zone: ZoneDef) -> None:
        """Attach hosts and cabinets; every way crosses the backbone, at any place in the file."""
        for attach in self.host_links + self.cabinets:
            if self.backbone is not None and attach.down is not None:
                attach.up.append(Hop(self.backbone))
                attach.down.insert(0, Hop(self.backbone))
            zone.attachments.append(attach)
