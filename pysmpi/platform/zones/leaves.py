"""The base of topologies that compute their routes: hosts with private links.

Each host may have a loopback link and a limiter link, and each switch may have a limiter. Their
names are SimGrid's: NAME_link_n_loopback, NAME_link_n_limiter.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING

from pysmpi.platform.definition import FATPIPE, NOTHING, SHARED
from pysmpi.platform.model import Link, NetPoint
from pysmpi.platform.points import LocalRoute
from pysmpi.platform.zones.base import Makers, Zone

if TYPE_CHECKING:
    from pysmpi.platform.definition import ClusterDef


class LeafZone(Zone, ABC):
    """Hosts numbered by their position, with the loopback and limiter of each."""

    __slots__ = ("_loopbacks", "_limiters")

    builds_clusters = True

    def __init__(self, name: str, properties: Mapping[str, str] = NOTHING) -> None:
        super().__init__(name, properties)
        self._loopbacks: list[Link] = []
        # One empty or one-element tuple a host, ready to be appended to a route.
        self._limiters: list[tuple[Link, ...]] = []

    def make_hosts(self, cluster: ClusterDef, make: Makers) -> None:
        for position, number in enumerate(cluster.numbers()):
            make.host(cluster, number)
            if cluster.loopback is not None:
                name = f"{cluster.name}_link_{number}_loopback"
                self._loopbacks.append(make.link(name, *cluster.loopback, FATPIPE)[0])
            self._limiters.append(self.make_limiter(cluster, make, position))

    @staticmethod
    def make_limiter(cluster: ClusterDef, make: Makers, number: int) -> tuple[Link, ...]:
        """The limiter link of host or switch `number`, if the cluster has limiters."""
        if cluster.limiter is None:
            return ()
        name = f"{cluster.name}_link_{number}_limiter"
        return (make.link(name, cluster.limiter, 0.0, SHARED)[0],)

    def local_route(self, src: NetPoint, dst: NetPoint) -> LocalRoute | None:
        if src is dst and self._loopbacks:
            return LocalRoute((self._loopbacks[src.position],))
        links: list[Link] = []
        self.walk(src.position, dst.position, links)
        return LocalRoute(tuple(links))

    @abstractmethod
    def walk(self, src: int, dst: int, links: list[Link]) -> None:
        """Append the links from host `src` to host `dst`, both positions, limiters included."""
