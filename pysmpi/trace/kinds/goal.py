"""GOAL, the input of LogGOPSim (txt2bin): for each rank a graph of computes, sends and receives.

Collective calls are written as the messages of their algorithm. Operations of a rank follow each
other; a receive or a send that a request completes only has its start in that order, and the wait
for the request follows both. Times of compute are nanoseconds.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence

from pysmpi.trace.events import RankPlace
from pysmpi.trace.formats import trace_format
from pysmpi.trace.kinds.ti import IndependentFormat

_MESSAGE = re.compile(r"(i?)(send|recv) (\d+) (-?\d+) (\d+)")


@trace_format("goal", "the input of LogGOPSim")
class GoalFormat(IndependentFormat):
    """Collects the operations of each rank and writes them when they are all known."""

    collectives = False

    def __init__(self, path: str, compressed: bool = False) -> None:
        super().__init__(path, compressed)
        self.sections: list[list[str]] = []
        self.labels: list[int] = []
        self.after: list[list[int]] = []  # labels that the next operation of a rank requires
        # Started operations of a rank, by message: the label, and the requirements at that time.
        self.started: list[dict[tuple[int, int, int], deque[tuple[int, list[int]]]]] = []

    def begin(self, places: Sequence[RankPlace]) -> None:
        """Ranks were started."""
        for _ in places:
            self.sections.append([])
            self.labels.append(0)
            self.after.append([])
            self.started.append({})
        super().begin(places)

    def write(self, rank: int, action: str) -> None:
        """An action of a time-independent trace."""
        name, _, rest = action.partition(" ")
        found = _MESSAGE.match(action)
        if found is not None:
            immediate, kind, peer, tag, nbytes = found.groups()
            # Addresses of messages without bytes are refused there.
            size, other, mark = max(1, int(nbytes)), int(peer), int(tag)
            ends = "to" if kind == "send" else "from"
            label = self._add(rank, f"{kind} {size}b {ends} {other} tag {mark}")
            if immediate:
                key = (rank, other, mark) if kind == "send" else (other, rank, mark)
                self.started[rank].setdefault(key, deque()).append((label, self.after[rank]))
                # The next operation may begin when this one has begun: both have the same
                # requirements.
                return
            self.after[rank] = [label]
        elif name in ("compute", "sleep"):
            seconds = float(rest)
            if name == "compute":
                seconds /= self.speed_of(rank)
            if seconds > 0.0:
                self.after[rank] = [self._add(rank, f"calc {round(seconds * 1e9)}")]
        elif name == "wait":
            source, destination, tag = map(int, rest.split())
            started = self.started[rank].get((source, destination, tag))
            if started:
                self._join(rank, [started.popleft()])
        elif name == "waitall":
            self._join(rank, [one for ones in self.started[rank].values() for one in ones])
            self.started[rank] = {}

    def _join(self, rank: int, ended: list[tuple[int, list[int]]]) -> None:
        # Operations that these require hold through them.
        implied = {label for _, required in ended for label in required}
        kept = [label for label in self.after[rank] if label not in implied]
        self.after[rank] = [*kept, *(label for label, _ in ended)]

    def _add(self, rank: int, operation: str) -> int:
        self.labels[rank] += 1
        label = self.labels[rank]
        lines = self.sections[rank]
        lines.append(f"l{label}: {operation}\n")
        for required in dict.fromkeys(self.after[rank]):
            lines.append(f"l{label} requires l{required}\n")
        return label

    def end(self, ends: Sequence[float]) -> None:
        """Write the graphs."""
        super().end(ends)
        write = self.output.write
        write(f"num_ranks {len(self.sections)}\n\n")
        for rank, lines in enumerate(self.sections):
            write(f"rank {rank} {{\n")
            for line in lines:
                write(line)
            write("}\n\n")
