"""A recording of pysmpi that is read for a replay (docs/reference/recording.md).

The file is read once, from its begin to its end. It is in the order of time, so the calls of a
thread are needed soon after they are read; those that are needed later wait in a queue.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable
from typing import Any

from pysmpi.errors import UsageError
from pysmpi.trace.events import JOIN, LATE, RECEIVE, SEND
from pysmpi.trace.recorded_lines import Wrong, read_facts, whole_lines

# Of a thread: the line, the operations of a call, and its record if the replay is recorded.
_Operations = deque[tuple[int, list[object], list[object]]]
_NO_RECORD: list[Any] = []


class RecordedTrace:
    """A recording that is being read: the operations of each thread, by rank and thread."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.number = 0  # of the line
        self.facts = read_facts(name)
        self.speeds: list[float] = []  # of the cores of the ranks (flop/s)
        self.members: dict[int, tuple[int, ...]] = {}  # of contexts
        self.sources: dict[int, tuple[int, ...]] = {}  # of contexts with messages of others
        self.communicators: dict[int, int] = {}  # of contexts
        self.names: dict[int, str] = {}  # of communicators, by context
        self.sites: dict[int, str] = {}
        self.observed = False  # whether the replay is recorded: whole calls are kept
        self.matches: dict[int, tuple[int, int, int]] = {}
        self.complete = False
        self.left: dict[tuple[int, int], _Operations] = {}
        self.on_thread: Callable[[int, int], None] | None = None
        self._lines = enumerate(whole_lines(name), 1)
        next(self._lines)
        # Ranks come first; those that a program starts later come when they are started.
        # `_rank_speeds` has the speeds of their cores before their lines are read; 0.0 if unknown.
        self.core_speeds = self._rank_speeds()
        self.nprocs = len(self.core_speeds)

    def _rank_speeds(self) -> list[float]:
        """The core speed of each rank: a pass over the file, as programs may start more ranks."""
        found: list[float] = []
        for line in whole_lines(self.name):
            if line.startswith(b'["rank",'):
                try:
                    found.append(float(json.loads(line)[4]))
                except (ValueError, TypeError, IndexError, KeyError, RecursionError):
                    found.append(0.0)  # the error comes when the line is read
        if not found:
            raise UsageError(f"{self.name}: expected a recording of pysmpi, got no rank")
        return found

    def next(self, rank: int, thread: int) -> tuple[int, list[Any], list[Any]] | None:
        """The line and the operations of the next call of a thread; None after the last."""
        queue = self.left.get((rank, thread))
        while not queue:
            if not self.read():
                return None
            queue = self.left.get((rank, thread))
        return queue.popleft()

    def match(self, receive: int) -> tuple[int, int, int] | None:
        """The source, tag and bytes of the message of a receive with a wildcard, if it got one."""
        while receive not in self.matches:
            if not self.read():
                return None
        return self.matches.pop(receive)

    def read(self) -> bool:
        """Read a line; False at the end."""
        for number, line in self._lines:
            self.number = number
            kind = line[2:6]
            if kind == b"even" or kind == b"mess" or kind == b"rout":
                continue
            try:
                record = json.loads(line)
                if b'["late",' in line:
                    record[13] = _late_first(record[13])
                self._take(record)
            except Wrong as error:
                raise UsageError(f"{self.name}, line {number}: {error}") from None
            except (ValueError, TypeError, IndexError, KeyError, RecursionError) as error:
                what = line[:60].decode("utf-8", "replace")
                raise UsageError(
                    f"{self.name}, line {number}: expected a record of a recording, got {what!r}"
                ) from error
            return True
        return False

    def _take(self, record: list[Any]) -> None:
        kind = record[0]
        if kind == "call":
            rank, thread, operations = record[2], record[3], record[13]
            if not 0 <= rank < self.nprocs:
                raise Wrong(f"rank: expected 0 to {self.nprocs - 1}")
            queue = self.left.get((rank, thread))
            if queue is None:
                queue = self.left[rank, thread] = deque()
                if thread and self.on_thread is not None:
                    self.on_thread(rank, thread)
            if self.observed:
                queue.append((self.number, operations, record))
            elif operations:
                queue.append((self.number, operations, _NO_RECORD))
        elif kind == "communicator":
            _, number, of, name, members, *sources = record
            if not all(type(one) is int and 0 <= one < 1 << 53 for one in (number, of)):
                raise Wrong(f"expected the number of a communicator, got {number!r} and {of!r}")
            for some in (members, *sources):
                if not all(0 <= member < self.nprocs for member in some):
                    raise Wrong(f"expected ranks of the run, got members {some!r}")
            if sources:
                self.sources[number] = tuple(sources[0])
            self.members[number] = tuple(members)
            self.communicators[number] = of
            self.names[number] = str(name)
        elif kind == "rank":
            self.speeds.append(float(record[4]))
        elif kind == "match":
            self.matches[record[1]] = record[2], record[3], record[4]
        elif kind == "end":
            self.complete = True
        elif kind == "site":
            self.sites[record[1]] = record[2]
        elif kind not in ("events", "messages", "route"):
            raise Wrong(f"no such record: {kind!r}")


def _late_first(operations: list[Any]) -> list[Any]:
    """The operations of a call; first the requests that others post, which may be at any time.

    In the recording they are where they were known, such as after the compute before the call.
    """
    late = {one[1] for one in operations if one[0] == LATE}
    first = [one for one in operations if one[0] in _POSTED and one[1] in late]
    return first + [one for one in operations if one not in first]


_POSTED = frozenset((LATE, SEND, RECEIVE, JOIN))
