"""The base of all kinds of zones, and the registry of kinds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, TypeVar

from pysmpi.errors import UsageError
from pysmpi.platform.definition import Coordinates
from pysmpi.platform.numbers import read_counts
from pysmpi.platform.points import Link, LocalRoute, NetPoint, ZonePoint
from pysmpi.plugins import Registry
from pysmpi.python.records import record

if TYPE_CHECKING:
    from pysmpi.platform.definition import ClusterDef
    from pysmpi.platform.points import Host


@record(frozen=True)
class ZoneKind:
    """A kind of zone: its name, one line about it, its class.

    `simgrid` are SimGrid's names of it in platform files, if it has some; the first is written.
    """

    name: str
    line: str
    cls: type[Zone]
    simgrid: tuple[str, ...] = ()


ZONE_KINDS: Registry[ZoneKind] = Registry(
    "kind of zone", "pysmpi.zones", "pysmpi.platform.zones", apart=True
)

_Z = TypeVar("_Z", bound="type[Zone]")


def zone_kind(name: str, line: str, *simgrid: str) -> Callable[[_Z], _Z]:
    """Register a class as the kind of zone called `name`, and by SimGrid's names."""

    def register(cls: _Z) -> _Z:
        cls.kind = name
        ZONE_KINDS.add(ZoneKind(name, line, cls, simgrid))
        return cls

    return register


class Shape(Protocol):
    """Parameters of a topology: a dataclass with fields that are ints or tuples of ints."""

    @classmethod
    def from_text(cls, text: str) -> Shape:
        """Read SimGrid's ``topo_parameters``. Raises UsageError."""
        ...

    def to_text(self) -> str:
        """SimGrid's ``topo_parameters`` for this shape."""
        ...

    def check(self) -> None:
        """Raise UsageError when no machine has this shape."""
        ...

    def size(self) -> int:
        """The number of hosts."""
        ...


@record(frozen=True)
class Counts:
    """The base of shapes whose fields are whole numbers, such as "4,2" in SimGrid's parameters."""

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Read the fields in their order. Raises UsageError."""
        names = [field.name.upper() for field in fields(cls)]
        counts = read_counts(text)
        if len(counts) != len(names):
            raise UsageError(f'expected "{",".join(names)}", got "{text}"')
        return cls(*counts)

    def to_text(self) -> str:
        """The text that `from_text` reads as this shape."""
        return ",".join(str(getattr(self, field.name)) for field in fields(self))

    def check(self) -> None:
        """Every shape is possible."""


class Makers(Protocol):
    """Functions that a topology calls to create its parts; they choose names and numbers."""

    def host(self, cluster: ClusterDef, number: int) -> Host:
        """The host called PREFIX number SUFFIX, as the next member of the zone in construction."""
        ...

    def router(self, name: str) -> NetPoint:
        """A router, as the next member of the zone in construction."""
        ...

    def link(self, name: str, bandwidth: float, latency: float, sharing: str) -> tuple[Link, Link]:
        """A link as its (up, down) copies; both are the same link unless it is split-duplex."""
        ...

    def cable(
        self, cluster: ClusterDef, name: str, host: NetPoint | None = None, count: int = 1
    ) -> tuple[Link, Link]:
        """A link of the cluster's network as its copies, `count` times as wide as the cluster's.

        It is the link of one `host`, or joins switches. Each rail may have a link in its place.
        """
        ...

    def next_number(self, series: str, count: int = 1) -> int:
        """Take the next `count` numbers of a series that runs through the platform from 0."""
        ...


class Zone(ZonePoint):
    """A part of a platform: members, and the routes between any two of them."""

    __slots__ = ()

    kind: ClassVar[str]
    # Whether a cluster can have this topology; other kinds are filled member by member.
    builds_clusters: ClassVar[bool] = False
    # The dataclass of the topology's parameters, if it has any.
    shape: ClassVar[type[Any] | None] = None

    def add_route(self, src: NetPoint, dst: NetPoint, route: LocalRoute) -> None:
        """Declare the route from `src` to `dst`. Raises UsageError if the kind takes none."""
        raise UsageError(f"expected no route in a zone of kind {self.kind}, which computes its own")

    def attach(
        self,
        node: NetPoint,
        up: tuple[Link, ...],
        down: tuple[Link, ...],
        gateway: NetPoint | None,
    ) -> None:
        """Declare the way of `node` to and from the centre. Raises UsageError without one."""
        raise UsageError(
            f"expected members attached to a centre in a zone of kind star only, not {self.kind}"
        )

    def place(self, member: NetPoint, coordinates: Coordinates | None) -> None:
        """Set the place of a member; only kinds of zones with places use it."""

    @classmethod
    def links_of(cls, cluster: ClusterDef) -> int:
        """The number of links of a cluster, if it can be large; a limit refuses it early then."""
        return 0

    def populate(self, cluster: ClusterDef, make: Makers) -> None:
        """Create the hosts and links of a cluster of this topology."""
        raise UsageError(f"expected a topology, got {self.kind}, a zone that lists its members")

    def seal(self, loopback: Link) -> None:
        """End of construction; `loopback` is the platform's implicit link."""

    def local_route(self, src: NetPoint, dst: NetPoint) -> LocalRoute | None:
        """The route between two members, which may be the same; None if there is none."""
        raise UsageError(f"zone {self.name} of kind {self.kind} has no routes")
