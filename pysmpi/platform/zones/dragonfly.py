"""Dragonflies (SimGrid's ``topology="DRAGONFLY"``, after the Cray Cascade), routed minimally.

Groups of chassis of routers (blades) of nodes. Routers of a chassis are joined all to all (green),
routers of the same number in the chassis of a group too (black), and groups all to all (blue): the
router with index j in a group has the link to group j. Parallel links are one link of their summed
bandwidth. Host numbers count nodes, then routers, chassis and groups.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING

from pysmpi.errors import UsageError
from pysmpi.platform.definition import NOTHING
from pysmpi.platform.model import Link, NetPoint
from pysmpi.platform.numbers import read_count, read_counts
from pysmpi.platform.zones.base import Makers, zone_kind
from pysmpi.platform.zones.leaves import LeafZone

if TYPE_CHECKING:
    from pysmpi.platform.definition import ClusterDef

_Pair = tuple[Link, Link]


@dataclass(frozen=True)
class DragonflyShape:
    """Groups, chassis a group, routers a chassis, nodes a router; parallel links of each colour."""

    groups: int
    blue: int
    chassis: int
    black: int
    routers: int
    green: int
    nodes: int

    @classmethod
    def from_text(cls, text: str) -> DragonflyShape:
        """Read "groups,blue;chassis,black;routers,green;nodes"."""
        parts = text.split(";")
        if len(parts) != 4 or any(part.count(",") != 1 for part in parts[:3]):
            raise UsageError(f'expected e.g. "2,1;2,1;4,1;4" for a dragonfly, got "{text}"')
        (groups, blue), (chassis, black), (routers, green) = map(read_counts, parts[:3])
        shape = cls(groups, blue, chassis, black, routers, green, read_count(parts[3]))
        shape.check()
        return shape

    def to_text(self) -> str:
        """The text that `from_text` reads as this shape."""
        g, b, c, k, r, v, n = astuple(self)
        return f"{g},{b};{c},{k};{r},{v};{n}"

    def check(self) -> None:
        """Raise UsageError when a group has too few routers for its blue links."""
        if self.groups > 1 and self.groups > self.chassis * self.routers:
            raise UsageError(
                f"expected at most {self.chassis * self.routers} groups, as many as a group has "
                f"routers, got {self.groups}"
            )

    def size(self) -> int:
        """The number of hosts."""
        return self.groups * self.chassis * self.routers * self.nodes


@zone_kind(
    "dragonfly", "groups of chassis of routers, all to all at each of the three levels", "DRAGONFLY"
)
class Dragonfly(LeafZone):
    """A dragonfly, with SimGrid's names of links and, as far as SimGrid defines them, its routes.

    Two properties follow SimGrid, although others might be expected. Within a group, the green hop
    comes before the black one and is assumed to end in chassis 0, so between other chassis the
    black hop is not the nearest. If there are more groups than routers in a chassis, SimGrid reads
    beyond its tables; here the route to the router with the blue link takes the black hop to it.
    """

    __slots__ = ("_shape", "_local", "_green", "_black", "_blue", "_router_limiters")

    shape = DragonflyShape

    def __init__(self, name: str, properties: Mapping[str, str] = NOTHING) -> None:
        super().__init__(name, properties)
        self._shape: DragonflyShape
        self._local: list[_Pair] = []
        # Of each router, the link towards another blade, another chassis, another group.
        self._green: dict[tuple[int, int], Link] = {}
        self._black: dict[tuple[int, int], Link] = {}
        self._blue: dict[int, Link] = {}
        self._router_limiters: list[tuple[Link, ...]] = []

    def populate(self, cluster: ClusterDef, make: Makers) -> None:
        shape = self._shape = cluster.shape
        blades, per_group = shape.routers, shape.chassis * shape.routers
        self.make_hosts(cluster, make)
        last = 2 * shape.size()
        self._router_limiters = [
            self.make_limiter(cluster, make, last - 1 - router)
            for router in range(shape.groups * per_group)
        ]

        def link(name: str, count: int, host: NetPoint | None = None) -> _Pair:
            serial = make.next_number("dragonfly links")
            return make.cable(cluster, f"{name}_{serial}", host, count)

        for router in range(shape.groups * per_group):
            for node in range(shape.nodes):
                host = self.members[router * shape.nodes + node]
                self._local.append(link(f"local_link_from_router_{router}_to_node_{node}", 1, host))
        for chassis in range(shape.groups * shape.chassis):
            for a, b in _pairs(blades):
                name = (
                    f"green_link_in_chassis_{chassis % shape.chassis}_between_routers_{a}_and_{b}"
                )
                up, down = link(name, shape.green)
                self._green[chassis * blades + a, b] = up
                self._green[chassis * blades + b, a] = down
        for group in range(shape.groups):
            for a, b in _pairs(shape.chassis):
                for blade in range(blades):
                    name = f"black_link_in_group_{group}_between_chassis_{a}_and_{b}_blade_{blade}"
                    up, down = link(name, shape.black)
                    self._black[group * per_group + a * blades + blade, b] = up
                    self._black[group * per_group + b * blades + blade, a] = down
        for a, b in _pairs(shape.groups):
            near, far = a * per_group + b, b * per_group + a
            name = f"blue_link_between_group_{a}_and_{b}_routers_{near}_and_{far}"
            self._blue[near], self._blue[far] = link(name, shape.blue)

    def walk(self, src: int, dst: int, links: list[Link]) -> None:
        shape = self._shape
        blades, per_group = shape.routers, shape.chassis * shape.routers
        router, target = src // shape.nodes, dst // shape.nodes
        group, far = router // per_group, target // per_group
        chassis, blade = divmod(router % per_group, blades)
        far_chassis, far_blade = divmod(target % per_group, blades)

        links.extend(self._limiters[src])
        links.append(self._local[src][0])
        if router != target:
            if group != far:
                exit_chassis, exit_blade = divmod(far, blades)
                if blade != exit_blade:
                    links.extend(self._router_limiters[router])
                    links.append(self._green[router, exit_blade])
                    router += exit_blade - blade
                if chassis != exit_chassis:
                    links.extend(self._router_limiters[router])
                    links.append(self._black[router, exit_chassis])
                    router += (exit_chassis - chassis) * blades
                links.append(self._blue[router])
                links.extend(self._router_limiters[router])
                chassis, blade = divmod(group, blades)
                router = far * per_group + group
                after_green = chassis
            else:
                after_green = 0
            if blade != far_blade:
                links.extend(self._router_limiters[router])
                links.append(self._green[router, far_blade])
                chassis = after_green
                router = far * per_group + chassis * blades + far_blade
            if chassis != far_chassis:
                links.extend(self._router_limiters[router])
                links.append(self._black[router, far_chassis])
        links.extend(self._router_limiters[target])
        links.append(self._local[dst][1])
        links.extend(self._limiters[dst])


def _pairs(count: int) -> list[tuple[int, int]]:
    """Every pair (a, b) with a < b < count."""
    return [(a, b) for a in range(count) for b in range(a + 1, count)]
