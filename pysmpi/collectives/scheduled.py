"""The calls of a communicator that are made again and again, with their schedules.

This module is compiled: every collective call passes through it.
"""

from __future__ import annotations

from typing import Any

from pysmpi.collectives.call import Call
from pysmpi.collectives.layout import Nodes
from pysmpi.kernel.schedule import Schedule

# Operation, count, bytes of an element, root, whether the operator commutes, whether in place, and
# the counts of all ranks.
CallKey = tuple[str, int, int, int, bool, bool, tuple[int, ...] | None]


class ScheduledCall:
    """A call on a communicator, and the schedules of its ranks.

    `key` has its arguments if all ranks make it with the same: then `call` is of no rank.
    `schedules`, by rank, are those of the latest time, when the node-level communicators `ready`
    existed; `creators` are the ranks whose schedules create such communicators. `live`: there are
    none, because the algorithm decides while it runs.
    """

    __slots__ = ("background", "call", "creators", "key", "live", "ready", "schedules")

    def __init__(self, call: Call, key: CallKey | None) -> None:
        self.call = call
        self.key = key
        self.schedules: dict[int, Schedule] | None = None
        self.creators: dict[int, frozenset[str]] | None = None
        self.live = False
        self.ready: frozenset[str] = call.ready
        self.background: ScheduledCall | None = None

    def nonblocking(self) -> ScheduledCall:
        """The non-blocking form of the call."""
        background = self.background
        if background is None:
            background = ScheduledCall(self.call._replace(nonblocking=True), self.key)
            if self.key is not None:
                self.background = background
        return background


class CallCache:
    """The cached calls of a communicator.

    `calls` has its latest calls by their arguments, `latest` is one of them. `levels` has the
    node-level communicators that exist since a call, by its number. `arrivals` is the shared
    information of algorithms that decide while they run.
    """

    __slots__ = ("arrivals", "calls", "latest", "levels", "slots")

    def __init__(self) -> None:
        self.slots: Nodes | None = None  # the slot of each rank on the machine
        self.calls: dict[CallKey, ScheduledCall] = {}
        self.latest: ScheduledCall | None = None
        self.levels: list[tuple[int, frozenset[str]]] = []
        self.arrivals: dict[Any, Any] = {}
