"""The contents of a platform file, before it becomes a machine.

Both readers (`xml`, `yaml`) produce these records, `construct` turns them into a `Platform`, and
`yaml.dump` writes them. Quantities are already numbers (bytes/s, seconds, flop/s); names are not
yet resolved. `where` holds the file, line and element; error messages begin with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pysmpi.platform.profiles import ProfileDef
from pysmpi.python.records import record

if TYPE_CHECKING:
    from pysmpi.platform.node_description import NodeDescription

NOTHING: Mapping[str, str] = MappingProxyType({})

SHARED = "shared"
FATPIPE = "fatpipe"
SPLIT = "split-duplex"


@record
class LinkDef:
    """A link: bandwidth in bytes/s, latency in seconds; `sharing` is SHARED, FATPIPE or SPLIT."""

    name: str
    bandwidth: float
    latency: float = 0.0
    sharing: str = SHARED
    properties: Mapping[str, str] = field(default_factory=dict)
    where: str = ""


@record
class DiskDef:
    """A disk of a host: bandwidths of reading and writing in bytes/s."""

    name: str
    read: float
    write: float
    properties: Mapping[str, str] = field(default_factory=dict)
    where: str = ""


# A point's x, y and height, in milliseconds (Dabek et al., Vivaldi. SIGCOMM 2004).
Coordinates = tuple[float, float, float]


@record
class RailsDef:
    """The rails of a host or a cluster: their number, and the rule that chooses among them.

    `choice` is the name of a rule. Messages of `stripe_from` bytes and more are split over all
    rails; None for no message. `sizes` are those (bytes) from which on the second rail and each
    further one is used, by rule by-size. `others` are bandwidth (bytes/s) and latency (s) of the
    rails of a cluster after the first, if they differ; None is as the first. `links` are the links
    of a host by name: in each list the link in the routes, and that of each further rail in its
    place. If they are `separate`, each rail is a network of its own.
    """

    count: int
    choice: str = "by-block"
    stripe_from: int | None = None
    sizes: tuple[int, ...] = ()
    separate: bool = False
    others: list[tuple[float | None, float | None]] = field(default_factory=list)
    links: list[list[str]] = field(default_factory=list)
    where: str = ""


@record
class HostDef:
    """A host. `speeds` holds one flop/s per core for each pstate; `pstate` picks one of them.

    Without speeds, its cores are as fast as the cores of this computer. `coordinates` is its
    position in a Vivaldi zone. `node` describes its inside, including the numbers of cores and
    sockets. `rails` are its network cards if it has several.
    """

    name: str
    speeds: tuple[float, ...]
    cores: int = 1
    sockets: int = 1
    pstate: int = 0
    properties: Mapping[str, str] = field(default_factory=dict)
    where: str = ""
    node: NodeDescription | None = None
    disks: list[DiskDef] = field(default_factory=list)
    coordinates: Coordinates | None = None
    rails: RailsDef | None = None


@record
class RouterDef:
    """A point at which routes meet; no rank runs on it."""

    name: str
    where: str = ""
    coordinates: Coordinates | None = None


@record
class Hop:
    """A link of a route; `direction` is "up", "down", or "" for a link without directions."""

    link: str
    direction: str = ""
    where: str = ""


@record
class RouteDef:
    """A declared route between two members of a zone; gateways when a member is a zone."""

    src: str
    dst: str
    hops: list[Hop]
    symmetric: bool = True
    gateway_src: str | None = None
    gateway_dst: str | None = None
    bypass: bool = False
    where: str = ""


@record
class AttachDef:
    """The links from a member of a star zone to the centre (`up`) and back (`down`).

    `down` is None for the reverse of `up`, with split-duplex links in their other direction.
    """

    node: str
    up: list[Hop]
    down: list[Hop] | None = None
    gateway: str | None = None
    where: str = ""


@record
class ClusterDef:
    """A homogeneous cluster, whose hosts, links and routes follow from a few numbers.

    `topology` is a kind of `zones` that builds clusters ("flat", "fat_tree", ...), and `shape` its
    parameters. `radical` holds inclusive ranges of host numbers, in the order of the hosts. In a
    flat cluster without `loopback`, `own_link` says whether messages of a host to itself cross its
    link up and down, as in SimGrid. `bandwidth` and `latency` are those of its first rail.
    """

    name: str
    prefix: str
    suffix: str
    radical: list[tuple[int, int]]
    speeds: tuple[float, ...]
    bandwidth: float
    latency: float
    cores: int = 1
    sockets: int = 1
    sharing: str = SPLIT
    topology: str = "flat"
    shape: Any = None
    backbone: LinkDef | None = None
    limiter: float | None = None
    loopback: tuple[float, float] | None = None
    router: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    where: str = ""
    node: NodeDescription | None = None
    own_link: bool = True
    rails: RailsDef | None = None

    def numbers(self) -> list[int]:
        """The number of each host, in order."""
        return [n for first, last in self.radical for n in range(first, last + 1)]


@record
class ZoneDef:
    """A zone: members in the order of the file, and their connections."""

    name: str
    routing: str = "full"
    members: list[LinkDef | HostDef | RouterDef | ClusterDef | ZoneDef] = field(
        default_factory=list
    )
    routes: list[RouteDef] = field(default_factory=list)
    attachments: list[AttachDef] = field(default_factory=list)
    gateway: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    where: str = ""


@record
class PlatformDef:
    """A whole file. `root` is the zone of the whole machine; `source` is the file's name.

    `nodes` are the descriptions of computers in the file, by name. `preset` names the factors of
    model hybrid, used if the file gives none. `models` holds options for single models, by the name
    of the model. `simgrid` is true for SimGrid's own files, which have smpirun's defaults.
    `profiles` are changes of hosts and links over time.
    """

    name: str
    root: ZoneDef
    source: str
    description: str = ""
    sources: list[str] = field(default_factory=list)
    config: dict[str, str] = field(default_factory=dict)
    nodes: dict[str, NodeDescription] = field(default_factory=dict)
    preset: str = "neutral"
    models: dict[str, dict[str, str]] = field(default_factory=dict)
    simgrid: bool = False
    profiles: list[ProfileDef] = field(default_factory=list)
