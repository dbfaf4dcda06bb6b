"""Zones with all shortest routes computed at the same time (SimGrid's ``routing="Floyd"``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pysmpi.errors import UsageError
from pysmpi.platform.definition import NOTHING
from pysmpi.platform.model import Link
from pysmpi.platform.zones.base import zone_kind
from pysmpi.platform.zones.shortest import ShortestPathZone

if TYPE_CHECKING:
    import numpy as np


MOST = 4096  # members, whose routes take some ten seconds
_ROWS = 64


@zone_kind(
    "floyd",
    "shortest routes over declared routes, all pairs together (Floyd and Warshall)",
    "Floyd",
)
class FloydZone(ShortestPathZone):
    """Takes the route with the fewest links; of equal ones, the first in Floyd's order of members.

    The table is computed at the request of the first route, in O(members**3) time and
    O(members**2) space, for at most `MOST` members.
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
        return int(self._before.item(src, dst))

    def _solve(self) -> np.ndarray:
        # Every platform imports every kind of zone; hardly any needs numpy for it.
        import numpy as np

        count = len(self.members)
        if count > MOST:
            raise UsageError(
                f"{self.name}: routing floyd computes the routes of all pairs: expected at most "
                f"{MOST:,} members, got {count:,}; routing dijkstra computes those that are used"
            )
        longest = max((len(edge.links) for edge in self._edges.values()), default=0) * count
        # Small numbers are faster. The sum of two that are not known has to be a number, too.
        kind, unknown = (np.uint16, 0x7FFF) if longest < 0x7FFF else (np.uint32, 0x7FFFFFFF)
        cost = np.full((count, count), unknown, dtype=kind)
        before = np.full((count, count), -1, dtype=np.int32)
        for (a, b), edge in self._edges.items():
            cost[a, b] = len(edge.links)
            before[a, b] = a
        for via in range(count):
            rows = np.flatnonzero(cost[:, via] < unknown)
            columns = np.flatnonzero(cost[via] < unknown)
            if not len(rows) or not len(columns):
                continue
            # In most graphs few pairs change, in blocks that fit into a cache.
            first, last = columns[0], columns[-1] + 1
            onward, found = cost[via, first:last].copy(), before[via, first:last].copy()
            for begin in range(0, len(rows), _ROWS):
                block: Any = rows[begin : begin + _ROWS]
                if block[-1] - block[0] == len(block) - 1:
                    block = slice(block[0], block[-1] + 1)
                old = cost[block, first:last]
                through = cost[block, via, None] + onward[None, :]
                better = through < old
                if better.any():
                    cost[block, first:last] = np.where(better, through, old)
                    before[block, first:last] = np.where(
                        better, found[None, :], before[block, first:last]
                    )
        return before
