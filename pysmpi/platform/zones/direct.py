"""The base of topologies of routers with direct links.

Each router has `nodes` hosts, each with its own link. Hosts are numbered router by router.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from pysmpi.platform.definition import NOTHING
from pysmpi.platform.model import Link
from pysmpi.platform.zones.base import Makers
from pysmpi.platform.zones.leaves import LeafZone

if TYPE_CHECKING:
    from pysmpi.platform.definition import ClusterDef


class DirectTopology(LeafZone):
    """Routers and the cables between them; a topology defines the ways between them.

    The link of a host is NAME_link_n, the cable between routers a < b NAME_cable_a_b.
    """

    __slots__ = ("_shape", "_local", "_cables", "_router_limiters")

    def __init__(self, name: str, properties: Mapping[str, str] = NOTHING) -> None:
        super().__init__(name, properties)
        self._shape: Any = None
        self._local: list[tuple[Link, Link]] = []
        self._cables: dict[tuple[int, int], Link] = {}
        self._router_limiters: list[tuple[Link, ...]] = []

    def populate(self, cluster: ClusterDef, make: Makers) -> None:
        shape = self._shape = cluster.shape
        self._prepare()
        self.make_hosts(cluster, make)
        size = shape.size()
        for host in range(size):
            name = f"{cluster.name}_link_{host}"
            self._local.append(make.cable(cluster, name, self.members[host]))
        for router in range(size // shape.nodes):
            self._router_limiters.append(self.make_limiter(cluster, make, size + router))
        for a, b in self._pairs():
            pair = make.cable(cluster, f"{cluster.name}_cable_{a}_{b}")
            self._cables[a, b], self._cables[b, a] = pair

    def _prepare(self) -> None:
        """Compute the values that the shape implies; `_shape` is set."""

    @abstractmethod
    def _pairs(self) -> Iterable[tuple[int, int]]:
        """The pairs of routers a < b that a cable joins."""

    @abstractmethod
    def _routers(self, src: int, dst: int) -> Iterable[int]:
        """The routers on the way from one to another, which differ, without the first."""

    def walk(self, src: int, dst: int, links: list[Link]) -> None:
        router, target = src // self._shape.nodes, dst // self._shape.nodes
        links.extend(self._limiters[src])
        links.append(self._local[src][0])
        links.extend(self._router_limiters[router])
        if router != target:
            for after in self._routers(router, target):
                links.append(self._cables[router, after])
                links.extend(self._router_limiters[after])
                router = after
        links.append(self._local[dst][1])
        links.extend(self._limiters[dst])
