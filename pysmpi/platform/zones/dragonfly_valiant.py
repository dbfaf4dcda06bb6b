"""Dragonflies with Valiant routing: messages between groups go through a third one.

The third group is random, but the same for a pair of hosts in every run. If all hosts of a group
send to one other group, this distributes the messages over all blue links, and doubles the length
of routes.

Sources: Valiant, A Scheme for Fast Parallel Communication (SIAM Journal on Computing, 1982); Kim,
Dally, Scott and Abts, Technology-Driven, Highly-Scalable Dragonfly Topology (ISCA 2008), section 4.
"""

from __future__ import annotations

from pysmpi.platform.model import Link
from pysmpi.platform.zones.base import zone_kind
from pysmpi.platform.zones.dragonfly import Dragonfly


@zone_kind("dragonfly_valiant", "a dragonfly whose messages between groups go through a third")
class ValiantDragonfly(Dragonfly):
    """A dragonfly with the links of `dragonfly`; inside a group the green hop comes first."""

    __slots__ = ()

    def walk(self, src: int, dst: int, links: list[Link]) -> None:
        shape = self._shape
        per_group = shape.chassis * shape.routers
        router, target = src // shape.nodes, dst // shape.nodes
        links.extend(self._limiters[src])
        links.append(self._local[src][0])
        links.extend(self._router_limiters[router])
        group, far = router // per_group, target // per_group
        if group != far:
            third = _drawn(src, dst, shape.groups)
            if third not in (group, far):
                router = self._to_group(router, third, links)
            router = self._to_group(router, far, links)
        self._within(router, target, links)
        links.append(self._local[dst][1])
        links.extend(self._limiters[dst])

    def _to_group(self, router: int, group: int, links: list[Link]) -> int:
        """Go to the router of this group that has the blue link, and take it."""
        shape = self._shape
        per_group = shape.chassis * shape.routers
        here = router // per_group
        router = self._within(router, here * per_group + group, links)
        links.append(self._blue[router])
        router = group * per_group + here
        links.extend(self._router_limiters[router])
        return router

    def _within(self, router: int, target: int, links: list[Link]) -> int:
        """Go from a router to another of its group."""
        blades = self._shape.routers
        per_group = self._shape.chassis * blades
        blade, far_blade = router % per_group % blades, target % per_group % blades
        if blade != far_blade:
            links.append(self._green[router, far_blade])
            router += far_blade - blade
            links.extend(self._router_limiters[router])
        if router != target:
            links.append(self._black[router, target % per_group // blades])
            router = target
            links.extend(self._router_limiters[router])
        return router


def _drawn(src: int, dst: int, groups: int) -> int:
    """A number below `groups` that looks random and depends on the two alone (splitmix64)."""
    mask = (1 << 64) - 1
    value = (src * 0x9E3779B97F4A7C15 + dst * 0xBF58476D1CE4E5B9 + 0x94D049BB133111EB) & mask
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & mask
    value = (value ^ value >> 27) * 0x94D049BB133111EB & mask
    return (value ^ value >> 31) % groups
