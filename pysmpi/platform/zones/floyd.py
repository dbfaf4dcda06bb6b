"""Zones with all shortest routes computed at the same time (SimGrid's ``routing="Floyd"``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pysmpi.platform.definition import NOTHING
from pysmpi.platform.model import Link
from pysmpi.platform.zones.base import zone_kind
from pysmpi.platform.zones.shortest import ShortestPathZone

if TYPE_CHECKING:
    import numpy as np


@zone_kind("floyd", "shortest routes over declared routes, all pairs together (Floyd and Warshall)")
class FloydZone(ShortestPathZone):
    """Takes the route with the fewest links; of equal ones, the first in Floyd's order of members.

    The table is computed at the request of the first route, in O(members**3) time and
    O(members**2) space.
    """

    __slots__ = ("_before",)

    def __init__(self, name: str, properties: Mapping[str, str] = NOTHING) -> None:
        super().__init__(name, properties)
        self._before: np.ndarray | None = None

    def seal(self, loopback: Link) -> None:
        super().seal(loopback)
        self._before = None

    def predecessor(self, src: int, dst: int) -> int:
        if self._before is None:
            self._before = self._solve()
        return int(self._before[src, dst])

    def _solve(self) -> np.ndarray:
        # Every platform imports every kind of zone; hardly any needs numpy for it.
        import numpy as np

        count = len(self.members)
        cost = np.full((count, count), np.inf)
        before = np.full((count, count), -1, dtype=np.int32)
        for (a, b), edge in self._edges.items():
            cost[a, b] = len(edge.links)
            before[a, b] = a
        for via in range(count):
            through = cost[:, via, None] + cost[None, via, :]
            better = through < cost
            cost = np.where(better, through, cost)
            before = np.where(better, before[None, via, :], before)
        return before
