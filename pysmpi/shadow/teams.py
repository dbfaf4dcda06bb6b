"""Teams of ranks that advance together in passes that communicate.

Ranks that wait for each other, directly or through others, advance at the same pace. A rank that
was late in a measured pass waited less, and has a smaller measure. If each rank were charged its
own measures a hundred times, the ranks would drift apart by a hundred times the difference, and
would wait for it in the next executed pass. All ranks of a team are therefore charged the mean over
the team.

A rank that sends without waiting for its receiver may run ahead of it. Teams are therefore the
strongly connected components of the relation "one rank acts, the other waits for it" in the
executed passes.
"""

from __future__ import annotations

from collections.abc import Iterable

from pysmpi.kernel.engine import Engine
from pysmpi.kernel.requests import Send
from pysmpi.shadow.entry import Entry


class Links:
    """Listens to the messages while any rank is in a measured pass."""

    def __init__(self) -> None:
        self.followers: dict[int, set[int]] = {}  # ranks that wait for actions of a rank
        self.version = 0
        self._inside = 0
        self._engine: Engine | None = None
        self._teams: dict[int, list[int]] = {}
        self._known = 0

    def enter(self, engine: Engine) -> None:
        """A rank begins a pass."""
        if self._inside == 0:
            self._engine = engine
            engine.listeners.add(self)
        self._inside += 1

    def leave(self) -> None:
        """A rank ends a pass."""
        self._inside -= 1
        if self._inside == 0 and self._engine is not None:
            self._engine.listeners.remove(self)

    def flow_started(self, send: Send, now: float) -> None:
        """Called by the kernel: the bytes of a message start."""
        members = send.context.members
        # The members of an intercommunicator's context are its receivers: there a number may stand
        # for another rank, and tie one too many.
        if send.source < len(members):
            source, destination = members[send.source].pid, members[send.destination].pid
            self._tie(source, destination)
            if not send.eager:
                self._tie(destination, source)

    def _tie(self, leader: int, follower: int) -> None:
        followers = self.followers.setdefault(leader, set())
        if follower not in followers:
            followers.add(follower)
            self.version += 1

    def team(self, pid: int) -> list[int]:
        """The team of a rank, including the rank itself."""
        if self._known != self.version:
            self._known = self.version
            self._teams = {}
            for ranks in components(self.followers):
                for rank in ranks:
                    self._teams[rank] = ranks
        return self._teams.get(pid) or [pid]


class Team:
    """The measures of a team: the passes that all members have measured."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self.entries = list(entries)
        self.means: list[float] = []  # over the ranks, of each pass
        self._next = 0  # the first that may not have measured the next pass

    def update(self) -> None:
        """Add the new passes that all members have measured."""
        while self.entries:
            number = len(self.means)
            while len(self.entries[self._next].estimate.values) > number:
                self._next += 1
                if self._next == len(self.entries):
                    break
            else:
                return
            from statistics import fmean

            self.means.append(fmean(entry.estimate.values[number] for entry in self.entries))
            self._next = 0

    def typical(self, charge: str) -> float | None:
        """The time of a pass; None until all members have measured one."""
        self.update()
        if not self.means:
            return None
        from statistics import fmean, median

        return median(self.means) if charge == "median" else fmean(self.means)


def components(graph: dict[int, set[int]]) -> list[list[int]]:
    """The strongly connected components of a directed graph (Kosaraju and Sharir)."""
    backwards: dict[int, list[int]] = {}
    for node, following in graph.items():
        for other in following:
            backwards.setdefault(other, []).append(node)
    finished: list[int] = []
    seen: set[int] = set()
    for start in graph:
        if start in seen:
            continue
        seen.add(start)
        path = [(start, iter(graph[start]))]
        while path:
            node, following_nodes = path[-1]
            for other in following_nodes:
                if other not in seen:
                    seen.add(other)
                    path.append((other, iter(graph.get(other, ()))))
                    break
            else:
                finished.append(node)
                path.pop()
    found: list[list[int]] = []
    taken: set[int] = set()
    for start in reversed(finished):
        if start in taken:
            continue
        taken.add(start)
        ranks, waiting = [], [start]
        while waiting:
            node = waiting.pop()
            ranks.append(node)
            for other in backwards.get(node, ()):
                if other not in taken:
                    taken.add(other)
                    waiting.append(other)
        found.append(sorted(ranks))
    return found
