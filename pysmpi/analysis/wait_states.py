"""Wait states: the seconds that ranks wait, by the names that the field has for their patterns.

The patterns are those of Scalasca (Wolf and Mohr 2003, and its manual "Performance properties"):

- late sender: a receive has begun before its send;
- late receiver: a send that waits for its receive has begun before it;
- wait at barrier, wait at NxN: a rank is in the operation before the last one has entered it;
- late broadcast: a rank is in Bcast or Scatter before the root;
- early reduce: the root is in Reduce or Gather before any other rank.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pysmpi.analysis.graph import NONE, EventGraph, GraphWait
from pysmpi.trace.events import CALL, ENTER, MAIN, RETURN, START_RECEIVE, START_SEND

LATE: Final = 1e-12  # (s) a rank that arrives earlier by less does not wait

LATE_SENDER: Final = "late sender"
LATE_RECEIVER: Final = "late receiver"
AT_BARRIER: Final = "wait at barrier"
AT_NXN: Final = "wait at NxN"
LATE_BROADCAST: Final = "late broadcast"
EARLY_REDUCE: Final = "early reduce"

STATES: Final = (LATE_SENDER, LATE_RECEIVER, AT_BARRIER, AT_NXN, LATE_BROADCAST, EARLY_REDUCE)
_PATTERNS: Final = {
    "barrier": AT_BARRIER,
    **dict.fromkeys(
        (
            "allgather", "allgatherv", "allreduce", "alltoall", "alltoallv", "alltoallw",
            "reduce_scatter", "reduce_scatter_block",
        ),
        AT_NXN,
    ),
    **dict.fromkeys(("bcast", "scatter", "scatterv"), LATE_BROADCAST),
    **dict.fromkeys(("reduce", "gather", "gatherv"), EARLY_REDUCE),
}  # fmt: skip


def lateness(graph: EventGraph, wait: GraphWait) -> tuple[str, float]:
    """The state of a wait for a message, and its seconds; 0 if the message was on its way."""
    message = graph.message_of.get(wait.cause, wait.cause)
    state, posted = LATE_SENDER, graph.sends.get(message, NONE)
    if graph.sources.get(message) == graph.rank_of[wait.process]:
        state = LATE_RECEIVER
        posted = graph.receives.get(graph.receive_of.get(message, NONE), NONE)
    if posted == NONE:
        return state, 0.0
    return state, max(0.0, min(graph.date[posted], wait.end) - wait.begin)


def wait_states(graph: EventGraph) -> dict[str, float]:
    """The seconds of all ranks' main threads in each of `STATES`."""
    found = dict.fromkeys(STATES, 0.0)
    for wait in graph.waits:
        if graph.kind_of.get(wait.process) != MAIN or wait.site == NONE:
            continue
        if wait.cause <= 0 or wait.rank == NONE or graph.entered_at(wait.site):
            continue
        state, seconds = lateness(graph, wait)
        if seconds > LATE:
            found[state] += seconds
    ends = _Ends(graph)
    for rows in graph.entered.values():
        pattern = _PATTERNS.get(_operation(graph, rows[0]), "")
        if pattern and len(rows) > 1:
            found[pattern] += sum(
                late for late in _early(graph, pattern, rows, ends) if late > LATE
            )
    return found


def _operation(graph: EventGraph, row: int) -> str:
    """The blocking call in which a rank enters a collective operation, in lower case."""
    site = graph.site[row]
    return "" if site == NONE else graph.record.sites[site].name.lower()


def _early(graph: EventGraph, pattern: str, rows: list[int], ends: _Ends) -> Iterable[float]:
    """How much earlier each rank has entered than those that it waits for (s)."""
    dates = [graph.date[row] for row in rows]
    if pattern in (AT_BARRIER, AT_NXN):
        last = max(dates)
        return [last - date for date in dates]
    root = ends.root(pattern, rows)
    if root == NONE:
        return []
    own = graph.date[root]
    others = [date for row, date in zip(rows, dates) if row != root]
    return [own - date for date in others] if pattern == LATE_BROADCAST else [min(others) - own]


class _Ends:
    """The first and the last message that each rank starts in an operation with a root.

    They tell the root, which is no part of the events: it sends first in a broadcast, and receives
    last in a reduction.
    """

    def __init__(self, graph: EventGraph) -> None:
        self.first: dict[int, int] = {}  # kinds of events, by the row of the entry
        self.last: dict[int, int] = {}
        entered: dict[int, int] = {}  # rows by process
        for row, kind in enumerate(graph.kind):
            process = graph.process[row]
            if kind == ENTER:
                pattern = _PATTERNS.get(_operation(graph, row))
                if pattern in (LATE_BROADCAST, EARLY_REDUCE):
                    entered[process] = row
                else:
                    entered.pop(process, None)
            elif kind in (CALL, RETURN):
                entered.pop(process, None)
            elif kind in (START_SEND, START_RECEIVE) and process in entered:
                self.first.setdefault(entered[process], kind)
                self.last[entered[process]] = kind

    def root(self, pattern: str, rows: list[int]) -> int:
        """The row of the root; NONE if the messages do not tell it."""
        if pattern == LATE_BROADCAST:
            roots = [row for row in rows if self.first.get(row) == START_SEND]
        else:
            roots = [row for row in rows if self.last.get(row) == START_RECEIVE]
        return roots[0] if len(roots) == 1 else NONE
