"""The graph of waiting ranks: the ranks that could end each wait, and cycles of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from pysmpi.mpi.groups.communicator import Communicator
from pysmpi.reports.history import FirstDifference, find_difference
from pysmpi.reports.waiting import Collective, Wait, WaitFinder


class WaitGraph:
    """The waits of all ranks, and the ranks that have finished."""

    def __init__(self, finder: WaitFinder, waits: Sequence[Wait], finished: set[int]) -> None:
        self.finder = finder
        self.waits = list(waits)
        self.finished = finished
        self.of: dict[int, Wait] = {}  # waits of the main thread of a rank
        self.every: dict[int, list[Wait]] = {}
        for wait in waits:
            self.of.setdefault(wait.pid, wait)
            self.every.setdefault(wait.pid, []).append(wait)
        self._missing: dict[tuple[int, int, str], frozenset[int]] = {}
        self._differences: dict[int, FirstDifference | None] = {}

    def difference(self, communicator: Communicator) -> FirstDifference | None:
        """The first collective call of a communicator in which its ranks differ."""
        key = min(communicator.p2p.number, communicator.remote.p2p.number)
        if key not in self._differences:
            self._differences[key] = find_difference(communicator, self.waits)
        return self._differences[key]

    def missing(self, collective: Collective) -> frozenset[int]:
        """The ranks that a collective call waits for, by pid."""
        key = (collective.communicator.coll.number, collective.number, collective.operation)
        missing = self._missing.get(key)
        if missing is None:
            communicator = collective.communicator
            same = set(self._same(collective))
            pids = set()
            for side in {
                id(communicator): communicator,
                id(communicator.remote): communicator.remote,
            }.values():
                for rank, pid in enumerate(side.group):
                    if pid in same:
                        continue
                    begun = side.begun(rank)
                    behind = begun <= collective.number
                    peer = self.of.get(pid)
                    other = (
                        peer is not None
                        and peer.collective is not None
                        and peer.collective.communicator in (communicator, communicator.remote)
                        and peer.collective.number == collective.number
                    )
                    if behind or other:
                        pids.add(pid)
            missing = self._missing[key] = frozenset(pids)
        return missing

    def together(self, wait: Wait, pid: int) -> bool:
        """Whether a rank waits in the same collective call as another."""
        return wait.collective is not None and pid in self._same(wait.collective)

    def _same(self, collective: Collective) -> list[int]:
        """The ranks that wait in this very call."""
        return [
            pid
            for pid, wait in self.of.items()
            if wait.collective is not None
            and wait.collective.communicator
            in (collective.communicator, collective.communicator.remote)
            and wait.collective.number == collective.number
            and wait.collective.operation == collective.operation
        ]

    def awaited(self, pid: int) -> frozenset[int]:
        """The ranks that could end the waits of a rank."""
        return frozenset().union(*(self.awaited_in(wait) for wait in self.every[pid]))

    def awaited_in(self, wait: Wait) -> frozenset[int]:
        """The ranks that could end one wait."""
        pids: frozenset[int] = frozenset()
        if wait.collective is not None:
            pids = self.missing(wait.collective) or wait.collective.peers
        for piece in wait.pieces:
            pids |= piece.pids - {wait.pid} if piece.any else piece.pids
        return pids

    def cycle(self) -> list[tuple[int, str]]:
        """A short cycle of ranks that wait for each other, with their calls; or an empty list."""
        best = self._some_cycle()
        for start in best[:16]:
            shorter = self._cycle(start, len(best))
            if shorter:
                best = shorter
        if best:
            first = best.index(min(best))
            best = best[first:] + best[:first]
        return [(pid, self.of[pid].call) for pid in best]

    def _some_cycle(self) -> list[int]:
        """A cycle, found by following the waits in depth."""
        seen: set[int] = set()
        for start in self.of:
            if start in seen:
                continue
            path = [start]
            position = {start: 0}
            seen.add(start)
            while path:
                awaited = self.awaited(path[-1])
                back = awaited & position.keys()
                if back:
                    return path[max(position[pid] for pid in back) :]
                following = next((pid for pid in awaited if pid in self.of and pid not in seen), -1)
                if following < 0:
                    del position[path.pop()]
                else:
                    position[following] = len(path)
                    path.append(following)
                    seen.add(following)
        return []

    def _cycle(self, start: int, limit: int) -> list[int]:
        """The shortest cycle through a rank, if it is shorter than `limit`."""
        before: dict[int, int] = {}
        queue = deque([(start, 1)])
        seen = {start}
        while queue:
            pid, depth = queue.popleft()
            awaited = self.awaited(pid)
            if start in awaited:
                path = [pid]
                while path[-1] != start:
                    path.append(before[path[-1]])
                return path[::-1] if len(path) < limit else []
            if depth + 1 >= limit:
                continue
            for following in sorted(awaited - seen):
                if following in self.of:
                    seen.add(following)
                    before[following] = pid
                    queue.append((following, depth + 1))
        return []
