"""Writer of pysmpi's platform files, the inverse of `yaml`; it converts SimGrid files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import yaml  # type: ignore[import-untyped]

from pysmpi.errors import UsageError
from pysmpi.platform.definition import (
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
from pysmpi.platform.node_description import NodeDescription
from pysmpi.platform.node_show import node_keys
from pysmpi.platform.numbers import write_radical
from pysmpi.platform.profiles import (
    BANDWIDTH,
    HOST_STATE,
    LATENCY,
    LINK_STATE,
    OF_HOSTS,
    SPEED,
    ProfileDef,
)
from pysmpi.platform.rails import rails_keys
from pysmpi.platform.units import format_bandwidth, format_speed, format_time


def dump(definition: PlatformDef) -> str:
    """The YAML text of a definition of either format.

    Reading the text gives the same hosts, links, routes and options in the same order. Raises
    UsageError for the rare names that have no form in YAML.
    """
    top = file_keys(definition)
    profiles = top.pop("profiles", None)
    top.update(_zone_keys(definition.root))
    if profiles is not None:
        top["profiles"] = profiles
    return str(yaml.safe_dump(top, sort_keys=False, default_flow_style=None, width=100))


def file_keys(definition: PlatformDef) -> dict[str, object]:
    """The keys of a platform file that are no part of its zone."""
    top: dict[str, object] = {"name": definition.name}
    if definition.description:
        top["description"] = definition.description
    if definition.sources:
        top["sources"] = list(definition.sources)
    if definition.config:
        top["config"] = dict(definition.config)
    if definition.preset != "neutral":
        top["preset"] = definition.preset
    if definition.models:
        top["models"] = {name: dict(options) for name, options in definition.models.items()}
    nodes = dict(definition.nodes)
    _add_nodes(definition.root, nodes)
    if nodes:
        top["nodes"] = [node_keys(node) for node in nodes.values()]
    if definition.profiles:
        top["profiles"] = [_profile_keys(one) for one in definition.profiles]
    return top


def _add_nodes(zone: ZoneDef, nodes: dict[str, NodeDescription]) -> None:
    """Add the descriptions that hosts use but the file does not contain, such as included ones."""
    for member in zone.members:
        if isinstance(member, ZoneDef):
            _add_nodes(member, nodes)
        elif isinstance(member, HostDef | ClusterDef) and member.node is not None:
            nodes.setdefault(member.node.name, member.node)


def _zone_keys(zone: ZoneDef) -> dict[str, Any]:
    keys: dict[str, Any] = {}
    if zone.routing != "full":
        keys["routing"] = zone.routing
    if zone.properties:
        keys["properties"] = dict(zone.properties)
    if zone.gateway is not None:
        keys["gateway"] = zone.gateway
    zones = [m for m in zone.members if isinstance(m, ZoneDef | ClusterDef)]
    # The order of hosts is the order of clusters and zones. If clusters and zones alternate, only a
    # common list keeps this order.
    mixed = len({type(m) for m in zones}) > 1
    for member in zone.members:
        if isinstance(member, LinkDef):
            keys.setdefault("links", []).append(_link_keys(member))
        elif isinstance(member, HostDef):
            keys.setdefault("hosts", []).append(_host_keys(member))
        elif isinstance(member, RouterDef):
            keys.setdefault("routers", []).append(_router_keys(member))
        elif isinstance(member, ClusterDef):
            if mixed:
                keys.setdefault("zones", []).append({"cluster": _cluster_keys(member)})
            else:
                keys.setdefault("clusters", []).append(_cluster_keys(member))
        else:
            keys.setdefault("zones", []).append({"name": member.name, **_zone_keys(member)})
    for attach in zone.attachments:
        keys.setdefault("attach", []).append(_attach_keys(attach))
    for route in zone.routes:
        keys.setdefault("bypasses" if route.bypass else "routes", []).append(_route_keys(route))
    return keys


def _up_or_down(value: float) -> str:
    return "up" if value else "down"


_FORMS: dict[str, Callable[[float], object]] = {
    BANDWIDTH: format_bandwidth,
    LATENCY: format_time,
    SPEED: float,
}


def _profile_keys(one: ProfileDef) -> dict[str, object]:
    form = _FORMS.get(one.kind, _up_or_down)
    what = "state" if one.kind in (HOST_STATE, LINK_STATE) else one.kind
    keys: dict[str, Any] = {
        "host" if one.kind in OF_HOSTS else "link": one.name,
        what: {format_time(date): form(value) for date, value in one.profile.points},
    }
    if one.profile.loop is not None:
        keys["loop_after"] = format_time(one.profile.loop)
    return keys


def _quantity_keys(bandwidth: float, latency: float, sharing: str, default: str) -> dict[str, Any]:
    keys = {"bandwidth": format_bandwidth(bandwidth)}
    if latency:
        keys["latency"] = format_time(latency)
    if sharing != default:
        keys["sharing"] = sharing
    return keys


def _link_keys(link: LinkDef) -> dict[str, object]:
    keys = {
        "name": link.name,
        **_quantity_keys(link.bandwidth, link.latency, link.sharing, SHARED),
    }
    if link.properties:
        keys["properties"] = dict(link.properties)
    return keys


def _compute_keys(item: HostDef | ClusterDef) -> dict[str, object]:
    speeds = [format_speed(speed) for speed in item.speeds]
    keys: dict[str, Any] = {}
    if speeds:
        keys["speed"] = speeds if len(speeds) > 1 else speeds[0]
    if item.node is not None:
        return keys | {"node": item.node.name}
    if item.cores != 1:
        keys["cores"] = item.cores
    if item.sockets != 1:
        keys["sockets"] = item.sockets
    return keys


def _host_keys(host: HostDef) -> dict[str, object]:
    keys = {"name": host.name, **_compute_keys(host)}
    if host.pstate:
        keys["pstate"] = host.pstate
    if host.properties:
        keys["properties"] = dict(host.properties)
    if host.disks:
        keys["disks"] = [_disk_keys(disk) for disk in host.disks]
    if host.coordinates is not None:
        keys["coordinates"] = format_coordinates(host.coordinates)
    if host.rails is not None:
        keys["rails"] = rails_keys(host.rails)
    return keys


def _disk_keys(disk: DiskDef) -> dict[str, object]:
    keys: dict[str, Any] = {
        "name": disk.name,
        "read": format_bandwidth(disk.read),
        "write": format_bandwidth(disk.write),
    }
    if disk.properties:
        keys["properties"] = dict(disk.properties)
    return keys


def _router_keys(router: RouterDef) -> str | dict[str, str]:
    if router.coordinates is None:
        return router.name
    return {"name": router.name, "coordinates": format_coordinates(router.coordinates)}


def format_coordinates(coordinates: Coordinates) -> str:
    """The text that `numbers.read_coordinates` reads as these."""
    return " ".join(map(repr, coordinates))


def _cluster_keys(cluster: ClusterDef) -> dict[str, object]:
    if "[" in cluster.suffix or "]" in cluster.suffix:
        raise UsageError(
            f'{cluster.where}: expected a suffix without brackets, got "{cluster.suffix}"'
        )
    keys = {
        "name": cluster.name,
        "hosts": f"{cluster.prefix}[{write_radical(cluster.radical)}]{cluster.suffix}",
        **_compute_keys(cluster),
        "link": _quantity_keys(cluster.bandwidth, cluster.latency, cluster.sharing, SPLIT),
    }
    if cluster.topology != "flat":
        shape = cluster.shape
        keys["topology"] = {"kind": cluster.topology} | {
            item.name: list(value) if isinstance(value, tuple) else value
            for item in fields(shape)
            for value in (getattr(shape, item.name),)
        }
    if cluster.backbone is not None:
        bb = cluster.backbone
        keys["backbone"] = _quantity_keys(bb.bandwidth, bb.latency, bb.sharing, SHARED)
    if cluster.limiter is not None:
        keys["limiter"] = format_bandwidth(cluster.limiter)
    if cluster.loopback is not None:
        keys["loopback"] = _quantity_keys(*cluster.loopback, "", "")
    elif cluster.own_link and cluster.topology == "flat":
        keys["loopback"] = "link"
    if cluster.router is not None:
        keys["router"] = cluster.router
    if cluster.properties:
        keys["properties"] = dict(cluster.properties)
    if cluster.rails is not None:
        keys["rails"] = rails_keys(cluster.rails)
    return keys


def _hops_keys(hops: list[Hop]) -> list[object]:
    return [{hop.direction: hop.link} if hop.direction else hop.link for hop in hops]


def _route_keys(route: RouteDef) -> dict[str, object]:
    keys: dict[str, Any] = {"from": route.src, "to": route.dst, "via": _hops_keys(route.hops)}
    if not route.symmetric and not route.bypass:
        keys["symmetric"] = False
    if route.gateway_src is not None:
        keys["from_gateway"] = route.gateway_src
    if route.gateway_dst is not None:
        keys["to_gateway"] = route.gateway_dst
    return keys


def _attach_keys(attach: AttachDef) -> dict[str, object]:
    keys: dict[str, Any] = {"node": attach.node, "up": _hops_keys(attach.up)}
    if attach.down is not None:
        keys["down"] = _hops_keys(attach.down)
    if attach.gateway is not None:
        keys["gateway"] = attach.gateway
    return keys
