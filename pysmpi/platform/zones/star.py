"""Zones with all members connected to a centre, and the flat cluster, which is one of them.

SimGrid's ``<zone routing="Cluster">`` and ``<cluster topology="FLAT">``. A route from a to b goes
up from a and then down to b. It crosses a link that is in both parts, such as a backbone, once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pysmpi.errors import UsageError
from pysmpi.platform.definition import FATPIPE, NOTHING, SHARED
from pysmpi.platform.model import Link, NetPoint
from pysmpi.platform.points import LocalRoute
from pysmpi.platform.zones.base import Makers, Zone, zone_kind

if TYPE_CHECKING:
    from pysmpi.platform.definition import ClusterDef

_Links = tuple[Link, ...]


@zone_kind("star", "every member has a route up to a common centre and a route down from it")
class StarZone(Zone):
    """Members around a centre. A member without an attachment reaches the centre at no cost."""

    __slots__ = ("_up", "_down", "_gateways", "_loopbacks")

    def __init__(self, name: str, properties: Mapping[str, str] = NOTHING) -> None:
        super().__init__(name, properties)
        self._up: list[_Links] = []
        self._down: list[_Links] = []
        self._gateways: dict[NetPoint, NetPoint | None] = {}
        self._loopbacks: dict[NetPoint, _Links] = {}

    def add(self, member: NetPoint) -> None:
        super().add(member)
        self._up.append(())
        self._down.append(())

    def attach(self, node: NetPoint, up: _Links, down: _Links, gateway: NetPoint | None) -> None:
        if node in self._gateways:
            raise UsageError(f"expected {node.name} to be attached once, got it a second time")
        self._up[node.position] = up
        self._down[node.position] = down
        self._gateways[node] = gateway

    def add_route(self, src: NetPoint, dst: NetPoint, route: LocalRoute) -> None:
        if src is not dst:
            raise UsageError(
                "expected in a star zone only routes of a member to itself, "
                f"got one from {src.name} to {dst.name}"
            )
        if src in self._loopbacks:
            raise UsageError(f"expected one route from {src.name} to itself, got a second one")
        self._loopbacks[src] = route.links

    def local_route(self, src: NetPoint, dst: NetPoint) -> LocalRoute | None:
        if src is dst:
            loopback = self._loopbacks.get(src)
            if loopback is not None:
                return LocalRoute(loopback)
        links = tuple(dict.fromkeys(self._up[src.position] + self._down[dst.position]))
        return LocalRoute(links, self._gateways.get(src), self._gateways.get(dst))


@zone_kind("flat", "hosts around a switch, with optional backbone, limiter and loopback links")
class FlatCluster(StarZone):
    """SimGrid's flat cluster. Each host number n has, with the cluster's name as ID:

    - up: ID_link_n_limiter if there are limiters, ID_link_n (its UP copy when split-duplex), then
      ID_backbone if there is one; down is the reverse with the DOWN copy;
    - to itself: ID_link_n_loopback if there are loopbacks, else its own route up and down, or the
      implicit link, as the cluster specifies;
    - the router, PREFIX ID _router SUFFIX unless named otherwise, sits beyond the backbone.
    """

    __slots__ = ()

    builds_clusters = True

    def populate(self, cluster: ClusterDef, make: Makers) -> None:
        centre: _Links = ()
        if cluster.backbone is not None:
            bb = cluster.backbone
            centre = (make.link(bb.name, bb.bandwidth, bb.latency, bb.sharing)[0],)
        for number in cluster.numbers():
            host = make.host(cluster, number)
            name = f"{cluster.name}_link_{number}"
            if cluster.loopback is not None:
                bandwidth, latency = cluster.loopback
                loop = make.link(f"{name}_loopback", bandwidth, latency, FATPIPE)[0]
                self._loopbacks[host] = (loop,)
            elif not cluster.own_link:
                self._loopbacks[host] = ()
            limit: _Links = ()
            if cluster.limiter is not None:
                limit = (make.link(f"{name}_limiter", cluster.limiter, 0.0, SHARED)[0],)
            up, down = make.link(name, cluster.bandwidth, cluster.latency, cluster.sharing)
            self._up[host.position] = (*limit, up, *centre)
            self._down[host.position] = (*centre, down, *limit)
        self.gateway = make.router(
            cluster.router or f"{cluster.prefix}{cluster.name}_router{cluster.suffix}"
        )
