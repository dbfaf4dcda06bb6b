"""The elements of SimGrid's platform files (document type 4.1), and whether they are simulated."""

from __future__ import annotations

from dataclasses import dataclass

from pysmpi.platform.profiles import BANDWIDTH, HOST_STATE, LATENCY, LINK_STATE, SPEED

UNSIMULATED_ROUTINGS = {"wifi"}


@dataclass(frozen=True)
class Element:
    """The attributes and children of an element.

    `text` says whether it may contain text.
    """

    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    children: tuple[str, ...] = ()
    text: bool = False


_IN_ZONE = ("link", "host", "router", "cluster", "cabinet", "backbone", "host_link", "prop") + (
    "peer",
    "zone",
    "AS",
    "route",
    "zoneRoute",
    "ASroute",
    "bypassRoute",
    "bypassZoneRoute",
    "bypassASroute",
)
_PROFILES = ("trace", "trace_connect")
_ZONE = Element(("id", "routing"), children=_IN_ZONE + _PROFILES)
_ROUTE = Element(("src", "dst"), ("symmetrical",), children=("link_ctn",))
_ZONE_ROUTE = Element(("src", "dst", "gw_src", "gw_dst"), ("symmetrical",), children=("link_ctn",))
_BYPASS_ZONE = Element(("src", "dst", "gw_src", "gw_dst"), children=("link_ctn",))

ELEMENTS: dict[str, Element] = {
    "platform": Element(("version",), children=("config", "cluster", "zone", "AS") + _PROFILES),
    "trace": Element(("id",), ("periodicity", "file"), text=True),
    "trace_connect": Element(("kind", "trace", "element")),
    "config": Element((), ("id",), children=("prop",)),
    "prop": Element(("id", "value")),
    "zone": _ZONE,
    "AS": _ZONE,
    "host": Element(
        ("id", "speed"),
        ("core", "pstate", "coordinates", "speed_file", "availability_file", "state_file"),
        ("prop", "disk"),
    ),
    "peer": Element(
        ("id", "speed", "bw_in", "bw_out", "coordinates"),
        ("speed_file", "availability_file", "state_file"),
    ),
    "disk": Element(("id", "read_bw", "write_bw"), (), ("prop",)),
    "router": Element(("id",), ("coordinates",)),
    "link": Element(
        ("id", "bandwidth"),
        ("latency", "sharing_policy", "bandwidth_file", "latency_file", "state_file"),
        ("prop",),
    ),
    "backbone": Element(("id", "bandwidth", "latency")),
    "host_link": Element(("id", "up", "down")),
    "cabinet": Element(("id", "prefix", "suffix", "radical", "speed", "bw", "lat")),
    "cluster": Element(
        ("id", "prefix", "suffix", "radical", "speed", "bw", "lat"),
        ("core", "sharing_policy", "topology", "topo_parameters", "router_id", "limiter_link")
        + ("bb_bw", "bb_lat", "bb_sharing_policy", "loopback_bw", "loopback_lat"),
        ("prop",),
    ),
    "route": _ROUTE,
    "zoneRoute": _ZONE_ROUTE,
    "ASroute": _ZONE_ROUTE,
    "bypassRoute": Element(("src", "dst"), children=("link_ctn",)),
    "bypassZoneRoute": _BYPASS_ZONE,
    "bypassASroute": _BYPASS_ZONE,
    "link_ctn": Element(("id",), ("direction",)),
}

# The attributes of hosts and links that name files of profiles, by the kind of the profile.
PROFILE_FILES = {
    "host": {"speed_file": SPEED, "availability_file": SPEED, "state_file": HOST_STATE},
    "peer": {"speed_file": SPEED, "availability_file": SPEED, "state_file": HOST_STATE},
    "link": {"bandwidth_file": BANDWIDTH, "latency_file": LATENCY, "state_file": LINK_STATE},
}
# The kinds of <trace_connect>.
CONNECTED = {
    "SPEED": SPEED,
    "POWER": SPEED,
    "HOST_AVAIL": HOST_STATE,
    "BANDWIDTH": BANDWIDTH,
    "LATENCY": LATENCY,
    "LINK_AVAIL": LINK_STATE,
}

UNSIMULATED = {
    "storage": "disks as SimGrid 3.31 and earlier had them",
    "storage_type": "disks as SimGrid 3.31 and earlier had them",
    "mount": "disks as SimGrid 3.31 and earlier had them",
    "include": "files that include others",
    "random": "random generators",
    "model_prop": "properties of models",
    "process": "deployments in a platform file",
    "actor": "deployments in a platform file",
    "argument": "deployments in a platform file",
}
