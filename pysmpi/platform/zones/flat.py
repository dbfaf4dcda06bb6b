"""The flat cluster: hosts around a switch, SimGrid's ``<cluster topology="FLAT">``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pysmpi.platform.definition import FATPIPE, SHARED
from pysmpi.platform.model import Link
from pysmpi.platform.zones.base import Makers, zone_kind
from pysmpi.platform.zones.star import StarZone

if TYPE_CHECKING:
    from pysmpi.platform.definition import ClusterDef

_Links = tuple[Link, ...]


@zone_kind(
    "flat", "hosts around a switch, with optional backbone, limiter and loopback links", "FLAT"
)
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
            up, down = make.cable(cluster, name, host)
            self._up[host.position] = (*limit, up, *centre)
            self._down[host.position] = (*centre, down, *limit)
        self.gateway = make.router(
            cluster.router or f"{cluster.prefix}{cluster.name}_router{cluster.suffix}"
        )
