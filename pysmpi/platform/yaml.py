"""pysmpi's own platform files. `docs/reference/platform.md` describes them key by key.

A file is a zone: it has hosts, links, routes, clusters and further zones, plus a name, a
description, the sources of its numbers and SimGrid options. Every key is checked; an error names
the file, the line and the path.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path

from pysmpi.errors import UsageError
from pysmpi.platform.definition import (
    FATPIPE,
    SHARED,
    SPLIT,
    AttachDef,
    ClusterDef,
    DiskDef,
    Hop,
    HostDef,
    LinkDef,
    PlatformDef,
    RailsDef,
    RouteDef,
    RouterDef,
    ZoneDef,
)
from pysmpi.platform.node_description import NodeDescription
from pysmpi.platform.node_yaml import find_node, read_nodes
from pysmpi.platform.nodes import Node, compose, from_data
from pysmpi.platform.numbers import read_coordinates, read_count, read_radical
from pysmpi.platform.profiles import (
    BANDWIDTH,
    HOST_STATE,
    LATENCY,
    LINK_STATE,
    SPEED,
    PlatformProfile,
    ProfileDef,
    check_profile,
)
from pysmpi.platform.rails import read_rails
from pysmpi.platform.units import parse_bandwidth, parse_speed, parse_time
from pysmpi.platform.zones import load_kinds
from pysmpi.text import real, whole

# The zone of the whole file. No other zone or host can have this name.
ROOT = "_world_"

SHARINGS = (SHARED, FATPIPE, SPLIT)
# Generations of InfiniBand without a measured preset.
_UNMEASURED = ("sdr", "ddr", "qdr", "fdr", "xdr", "gdr")
# Keys of a file that clusters do not have.
_OF_FILES = ("preset", "config", "models", "sources", "description", "profiles", "routing")
# Names of the factors of model hybrid, the default first (`pysmpi.network.presets`).
PRESETS = ("neutral", "smpi", "ethernet", "infiniband", "slingshot") + (
    "ethernet-1g",
    "ethernet-10g",
    "ethernet-25g",
    "ethernet-25g-roce",
    "ethernet-100g",
    "ethernet-100g-roce",
    "infiniband-edr",
    "infiniband-hdr",
    "infiniband-ndr",
    "omni-path",
    "slingshot-11",
    "aries",
    "tofu-d",
)

_ZONE_KEYS = ("routing", "properties", "gateway") + (
    "hosts",
    "routers",
    "links",
    "clusters",
    "zones",
    "routes",
    "bypasses",
    "attach",
)
_CLUSTER_REQUIRED = ("name", "hosts")
_CLUSTER_OPTIONAL = ("speed", "link", "network", "cores", "sockets", "node", "topology") + (
    "backbone",
    "limiter",
    "loopback",
    "router",
    "properties",
    "rails",
)
# The value of `loopback` for messages that cross the host's own link, as in SimGrid.
OWN_LINK = "link"

Known = Mapping[str, NodeDescription]

# PREFIX[NUMBERS]SUFFIX: the last brackets are used, so that a prefix may contain brackets.
_HOST_PATTERN = re.compile(r"(?P<prefix>.*)\[(?P<radical>[^\[\]]*)\](?P<suffix>[^\[\]]*)")


def read_yaml(path: Path) -> PlatformDef:
    """The definition in the YAML file `path`. Raises UsageError."""
    return _read(compose(path), str(path))


def read_data(data: Mapping[str, object], name: str) -> PlatformDef:
    """The definition in dictionaries and lists that hold what a file would. Raises UsageError.

    Messages call it `name`.
    """
    return _read(from_data(data, name), name)


def _read(top: Node, source: str) -> PlatformDef:
    keys = top.fields(
        ("name",),
        ("description", "sources", "config", "preset", "models", "nodes", "profiles", *_ZONE_KEYS),
    )
    root = ZoneDef(ROOT, where=source)
    known = read_nodes(keys["nodes"]) if "nodes" in keys else {}
    _read_zone(keys, root, known)
    return PlatformDef(
        keys["name"].text(),
        root,
        source,
        keys["description"].text().strip() if "description" in keys else "",
        [node.text() for node in keys["sources"].items()] if "sources" in keys else [],
        _read_texts(keys["config"]) if "config" in keys else {},
        known,
        _read_preset(keys["preset"]) if "preset" in keys else PRESETS[0],
        _read_models(keys["models"]) if "models" in keys else {},
        profiles=[_read_profile(node) for node in keys["profiles"].items()]
        if "profiles" in keys else [],
    )  # fmt: skip


def _read_profile(node: Node) -> ProfileDef:
    """Values of a host or link by the date from which on they hold."""
    host = "host" in node.entries()
    owner, kinds = ("host", _HOST_PROFILES) if host else ("link", _LINK_PROFILES)
    keys = node.fields((owner,), (*kinds, "loop_after"))
    given = [name for name in kinds if name in keys]
    if len(given) != 1:
        raise node.error(f"expected one of {', '.join(kinds)}, got {len(given)} of them")
    kind, read = kinds[given[0]]
    points = []
    for text, value in keys[given[0]].entries().items():
        try:
            date = parse_time(text)
        except UsageError as error:
            raise value.error(str(error)) from None
        points.append((date, value.parse(read)))
    profile = PlatformProfile(
        tuple(points), keys["loop_after"].parse(parse_time) if "loop_after" in keys else None
    )
    try:
        check_profile(kind, profile)
    except UsageError as error:
        raise keys[given[0]].error(str(error)) from None
    return ProfileDef(kind, keys[owner].text(), profile, node.where)


def _state(text: str) -> float:
    if text not in ("up", "down"):
        raise UsageError(f'expected up or down, got "{text}"')
    return float(text == "up")


def _part(text: str) -> float:
    found = real(text)
    if found is None:
        raise UsageError(f'expected a part of the speed, such as 0.5, got "{text}"')
    return found


_HOST_PROFILES = {"speed": (SPEED, _part), "state": (HOST_STATE, _state)}
_LINK_PROFILES = {
    "bandwidth": (BANDWIDTH, parse_bandwidth),
    "latency": (LATENCY, parse_time),
    "state": (LINK_STATE, _state),
}


def _read_models(node: Node) -> dict[str, dict[str, str]]:
    """Options by the name of the model for which they hold."""
    return {name: _read_texts(options) for name, options in node.entries().items()}


def _read_zone(keys: Mapping[str, Node], zone: ZoneDef, known: Known) -> None:
    """Fill `zone` from its keys, members in the order of the file."""
    if "routing" in keys:
        kinds = [name for name, kind in load_kinds().items() if not kind.builds_clusters]
        zone.routing = keys["routing"].choice(sorted(kinds))
    if "properties" in keys:
        zone.properties = _read_texts(keys["properties"])
    if "gateway" in keys:
        zone.gateway = keys["gateway"].text()
    for key, value in keys.items():
        match key:
            case "hosts":
                zone.members.extend(_read_host(node, known) for node in value.items())
            case "routers":
                zone.members.extend(_read_router(node) for node in value.items())
            case "links":
                zone.members.extend(_read_link(node) for node in value.items())
            case "clusters":
                zone.members.extend(_read_cluster(node, known) for node in value.items())
            case "zones":
                zone.members.extend(_read_member_zone(node, known) for node in value.items())
            case "routes":
                zone.routes.extend(_read_route(node, bypass=False) for node in value.items())
            case "bypasses":
                zone.routes.extend(_read_route(node, bypass=True) for node in value.items())
            case "attach":
                zone.attachments.extend(_read_attach(node) for node in value.items())


def _read_member_zone(node: Node, known: Known) -> ZoneDef | ClusterDef:
    """A zone within a zone, or ``cluster: {...}``, which fixes the order among zones."""
    entries = node.entries()
    if list(entries) == ["cluster"]:
        return _read_cluster(entries["cluster"], known)
    keys = node.fields(("name",), _ZONE_KEYS)
    zone = ZoneDef(keys["name"].text(), where=node.where)
    _read_zone(keys, zone, known)
    return zone


def _read_router(node: Node) -> RouterDef:
    """A name, or a name and coordinates."""
    if not node.is_mapping():
        return RouterDef(node.text(), node.where)
    keys = node.fields(("name", "coordinates"), ())
    return RouterDef(keys["name"].text(), node.where, keys["coordinates"].parse(read_coordinates))


def _read_host(node: Node, known: Known) -> HostDef:
    keys = node.fields(
        ("name",),
        ("speed", "cores", "sockets", "node", "pstate", "properties", "disks", "coordinates")
        + ("rails",),
    )
    inside = _read_inside(keys, known)
    speeds = _read_speeds(keys["speed"]) if "speed" in keys else ()
    pstate = 0
    if "pstate" in keys:
        text = keys["pstate"].text()
        if not speeds:
            raise keys["pstate"].error("expected none without speeds, got one")
        state = whole(text)
        if state is None or state >= len(speeds):
            raise keys["pstate"].error(
                f'expected a number from 0 to {len(speeds) - 1}, got "{text}"'
            )
        pstate = state
    if speeds and speeds[pstate] == 0.0:
        raise keys["speed"].error("expected more than 0 in the pstate in force, got 0")
    return HostDef(
        keys["name"].text(),
        speeds,
        *_read_cores(keys, inside),
        pstate,
        _read_texts(keys["properties"]) if "properties" in keys else {},
        node.where,
        inside,
        [_read_disk(disk) for disk in keys["disks"].items()] if "disks" in keys else [],
        keys["coordinates"].parse(read_coordinates) if "coordinates" in keys else None,
        read_rails(keys["rails"], False) if "rails" in keys else None,
    )


def _read_disk(node: Node) -> DiskDef:
    keys = node.fields(("name", "read", "write"), ("properties",))
    return DiskDef(
        keys["name"].text(),
        _read_bandwidth(keys["read"]),
        _read_bandwidth(keys["write"]),
        _read_texts(keys["properties"]) if "properties" in keys else {},
        node.where,
    )


def _read_inside(keys: Mapping[str, Node], known: Known) -> NodeDescription | None:
    """The description that ``node`` names: one of the file's, or of a machine that ships."""
    if "node" not in keys:
        return None
    name = keys["node"].text()
    return known.get(name) or find_node(keys["node"], known)


def _read_cores(keys: Mapping[str, Node], inside: NodeDescription | None) -> tuple[int, int]:
    """The number of cores, and of the sockets that divide them evenly."""
    if inside is not None:
        for key in ("cores", "sockets"):
            if key in keys:
                raise keys[key].error(f"expected none, since node {inside.name} says it, got one")
        return inside.cores, inside.sockets
    cores = keys["cores"].parse(read_count) if "cores" in keys else 1
    sockets = keys["sockets"].parse(read_count) if "sockets" in keys else 1
    if cores % sockets:
        raise keys["sockets"].error(
            f"expected a number of sockets that divides {cores} cores, got {sockets}"
        )
    return cores, sockets


def _read_speeds(node: Node) -> tuple[float, ...]:
    """One speed, or a list with one speed for each pstate."""
    if not node.is_list():
        return (node.parse(parse_speed),)
    speeds = tuple(item.parse(parse_speed) for item in node.items())
    if not speeds:
        raise node.error("expected at least one speed, got an empty list")
    return speeds


def _read_link(node: Node) -> LinkDef:
    keys = node.fields(("name", "bandwidth"), ("latency", "sharing", "properties"))
    return LinkDef(
        keys["name"].text(),
        _read_bandwidth(keys["bandwidth"]),
        _read_latency(keys),
        keys["sharing"].choice(SHARINGS) if "sharing" in keys else SHARED,
        _read_texts(keys["properties"]) if "properties" in keys else {},
        node.where,
    )


def _read_bandwidth(node: Node) -> float:
    value = node.parse(parse_bandwidth)
    if value == 0.0:
        raise node.error(f'expected a bandwidth above 0, got "{node.text()}"')
    return value


def _read_latency(keys: Mapping[str, Node]) -> float:
    return keys["latency"].parse(parse_time) if "latency" in keys else 0.0


def _read_preset(node: Node) -> str:
    name = node.text().lower()
    if name.startswith("infiniband-") and name.rpartition("-")[2] in _UNMEASURED:
        raise node.error(
            "expected a measured preset such as infiniband-edr, -hdr or -ndr, got "
            f'"{node.text()}"; no table of this generation is known: "pysmpi platform fit" makes a '
            "machine from your OSU output"
        )
    return node.choice(PRESETS)


def _read_cluster(node: Node, known: Known) -> ClusterDef:
    for key, value in node.entries().items():
        if key in _OF_FILES:
            raise value.error(f'expected "{key}" at the top of the file, got it in a cluster')
    keys = node.fields(_CLUSTER_REQUIRED, _CLUSTER_OPTIONAL)
    inside = _read_inside(keys, known)
    name = keys["name"].text()
    pattern = _HOST_PATTERN.fullmatch(keys["hosts"].text())
    if pattern is None:
        raise keys["hosts"].error(
            f'expected names with their numbers in brackets, e.g. "node-[0-63]", '
            f'got "{keys["hosts"].text()}"'
        )
    radical = keys["hosts"].parse(lambda _: read_radical(pattern["radical"]))
    speeds = _read_speeds(keys["speed"]) if "speed" in keys else ()
    if speeds and speeds[0] == 0.0:
        raise keys["speed"].error("expected a speed above 0, got 0")
    bandwidth, latency, sharing = _read_cable(node, keys)
    cluster = ClusterDef(
        name,
        pattern["prefix"],
        pattern["suffix"],
        radical,
        speeds,
        bandwidth,
        latency,
        *_read_cores(keys, inside),
        sharing,
        properties=_read_texts(keys["properties"]) if "properties" in keys else {},
        where=node.where,
        node=inside,
        own_link=False,
    )
    if "backbone" in keys:
        backbone = keys["backbone"].fields(("bandwidth",), ("latency", "sharing"))
        cluster.backbone = LinkDef(
            f"{name}_backbone",
            _read_bandwidth(backbone["bandwidth"]),
            _read_latency(backbone),
            backbone["sharing"].choice((SHARED, FATPIPE)) if "sharing" in backbone else SHARED,
            where=keys["backbone"].where,
        )
    if "limiter" in keys:
        cluster.limiter = _read_bandwidth(keys["limiter"])
    if "loopback" in keys:
        _read_loopback(keys["loopback"], cluster)
    if "router" in keys:
        cluster.router = keys["router"].text()
    if "topology" in keys:
        _read_topology(keys, cluster)
    if "rails" in keys:
        cluster.rails = _read_cluster_rails(keys)
    return cluster


def _read_cluster_rails(keys: Mapping[str, Node]) -> RailsDef:
    rails = read_rails(keys["rails"], True)
    if rails.separate and "backbone" in keys:
        raise keys["backbone"].error("expected none with separate rails, got one")
    if "network" in keys:
        # Between two hosts are two links.
        rails.others = [
            (bandwidth, None if latency is None else latency / 2.0)
            for bandwidth, latency in rails.others
        ]
    return rails


def _read_cable(node: Node, keys: Mapping[str, Node]) -> tuple[float, float, str]:
    """Bandwidth (bytes/s), latency (s) and sharing of each host's link.

    ``link`` gives them directly; ``network`` gives the values between two hosts, over two links.
    """
    if "network" in keys:
        if "link" in keys:
            raise keys["network"].error("expected either link or network, got both")
        for key in ("topology", "backbone"):
            if key in keys and not (key == "topology" and _is_flat(keys[key])):
                raise keys["network"].error(
                    f"expected link with a {key}, whose routes differ, got network"
                )
        seen = keys["network"].fields(("bandwidth", "latency"))
        return _read_bandwidth(seen["bandwidth"]), _read_latency(seen) / 2.0, SPLIT
    if "link" not in keys:
        raise node.error('expected the key "link" or "network", got none')
    link = keys["link"].fields(("bandwidth",), ("latency", "sharing"))
    sharing = link["sharing"].choice(SHARINGS) if "sharing" in link else SPLIT
    return _read_bandwidth(link["bandwidth"]), _read_latency(link), sharing


def _is_flat(topology: Node) -> bool:
    kind = topology.entries().get("kind")
    return kind is not None and kind.text() == "flat"


def _read_loopback(node: Node, cluster: ClusterDef) -> None:
    """Bandwidth and latency, or ``link``: the host's own link up and down."""
    if node.is_mapping():
        keys = node.fields(("bandwidth",), ("latency",))
        cluster.loopback = _read_bandwidth(keys["bandwidth"]), _read_latency(keys)
        return
    node.choice((OWN_LINK,))
    cluster.own_link = True


def _read_topology(keys: Mapping[str, Node], cluster: ClusterDef) -> None:
    """``topology: {kind: fat_tree, ...}``; the other keys are the fields of the kind's shape."""
    node = keys["topology"]
    entries = node.entries()
    if "kind" not in entries:
        raise node.error('expected the key "kind", got none')
    shapes = {name: kind.shape for name, kind in load_kinds().items() if kind.shape is not None}
    kind = entries["kind"].choice(["flat", *sorted(shapes)])
    if kind == "flat":
        node.fields(("kind",))
        return
    for key in ("backbone", "router"):
        if key in keys:
            raise keys[key].error(f"expected none in a cluster of topology {kind}, got one")
    shape = shapes[kind]
    assert shape is not None
    names = [item.name for item in fields(shape)]
    found = node.fields(("kind", *names))
    values: dict[str, int | tuple[int, ...]] = {}
    for item in fields(shape):
        value = found[item.name]
        if item.type in (int, "int"):
            values[item.name] = value.parse(read_count)
        else:
            values[item.name] = tuple(entry.parse(read_count) for entry in value.items())
    cluster.topology = kind
    cluster.shape = shape(**values)
    try:
        cluster.shape.check()
    except UsageError as error:
        raise node.error(str(error)) from None


def _read_route(node: Node, bypass: bool) -> RouteDef:
    optional = ("from_gateway", "to_gateway") if bypass else (
        "from_gateway",
        "to_gateway",
        "symmetric",
    )  # fmt: skip
    keys = node.fields(("from", "to", "via"), optional)
    return RouteDef(
        keys["from"].text(),
        keys["to"].text(),
        _read_hops(keys["via"]),
        not bypass and ("symmetric" not in keys or keys["symmetric"].switch()),
        keys["from_gateway"].text() if "from_gateway" in keys else None,
        keys["to_gateway"].text() if "to_gateway" in keys else None,
        bypass,
        node.where,
    )


def _read_attach(node: Node) -> AttachDef:
    keys = node.fields(("node", "up"), ("down", "gateway"))
    return AttachDef(
        keys["node"].text(),
        _read_hops(keys["up"]),
        _read_hops(keys["down"]) if "down" in keys else None,
        keys["gateway"].text() if "gateway" in keys else None,
        node.where,
    )


def _read_hops(node: Node) -> list[Hop]:
    """Links by name; one direction of a split-duplex link is ``{up: NAME}`` or ``{down: NAME}``."""
    hops = []
    for item in node.items():
        if item.is_mapping():
            ways = item.fields((), ("up", "down"))
            if len(ways) != 1:
                raise item.error(
                    "expected either up or down, got " + (" and ".join(ways) or "none")
                )
            ((direction, link),) = ways.items()
            hops.append(Hop(link.text(), direction, item.where))
        else:
            hops.append(Hop(item.text(), "", item.where))
    return hops


def _read_texts(node: Node) -> dict[str, str]:
    return {key: value.text(empty=True) for key, value in node.entries().items()}
