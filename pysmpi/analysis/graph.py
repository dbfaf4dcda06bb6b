"""The dependency graph of a recorded run.

Its nodes are the events of a recording, in the order in which they happened, which is a topological
order. A node depends on the one before it in its process, and on other nodes: a transfer on the
posting of its message (and on its receive, unless it is eager), the end of a wait on the completion
of the awaited operation. `binding` is for each node the dependency that it had to wait for:
following it from the last node of the run gives the critical path. `evaluate` computes the dates of
all nodes again with other durations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from pysmpi.trace import events
from pysmpi.trace.activity import RunActivity, activity_of, contradiction, read_activity
from pysmpi.trace.columns import Floats
from pysmpi.trace.model import Recording

NONE: Final = -1


@dataclass
class Scales:
    """Factors of durations; 1 is the run as it was.

    `compute` scales the program's compute, `latency` latencies, `transfer` the time of bytes,
    `overhead` the processor time of messages, `contention` the part of transfers that other
    messages cause (None: as `transfer`). `ranks` are further factors of the compute of single
    ranks, `lines` of the compute between the calls of two sites (by their numbers).
    """

    compute: float = 1.0
    latency: float = 1.0
    transfer: float = 1.0
    overhead: float = 1.0
    contention: float | None = None
    ranks: dict[int, float] = field(default_factory=dict)
    lines: dict[tuple[int, int], float] = field(default_factory=dict)
    links: dict[int, float] = field(default_factory=dict)  # of messages that cross a link


@dataclass
class GraphWait:
    """A blocked wait: `process` from `begin` to `end` (s) at a call `site`, -1 outside of calls.

    `cause` is the message that ended it, 0 if it was no message; `rank` the rank that sent it or
    ended the wait, -1 for a timer.
    """

    process: int
    begin: float
    end: float
    site: int
    cause: int
    rank: int


class EventGraph:
    """The dependencies of the events of a run.

    For each event: `date` (s), `before` (the row before it in its process), `binding`
    (see above), `site` (the call in which its process is, -1 outside), `since` (the latest call
    before it) and `until` (the call that begins with it, or the next).
    """

    def __init__(self, record: RunActivity) -> None:
        self.record = record
        self.kind: list[int] = record.kind.tolist()
        self.process: list[int] = record.process.tolist()
        self.date: list[float] = record.date.tolist()
        self.a: list[int] = record.a.tolist()
        self.b: list[float] = record.b.tolist()
        self.x: list[float] = record.x.tolist()
        count = len(self.kind)
        self.before = [NONE] * count
        self.binding = [NONE] * count
        self.site = [NONE] * count
        self.since = [NONE] * count
        self.rank_of: dict[int, int] = {}  # rank of a process
        self.kind_of: dict[int, int] = {}
        self.main: dict[int, int] = {}  # main process of a rank
        self.sends: dict[int, int] = {}  # rows of postings, by the number of the message
        self.receives: dict[int, int] = {}
        self.departs: dict[int, int] = {}
        self.arrives: dict[int, int] = {}
        self.completes: dict[int, int] = {}
        self.message_of: dict[int, int] = {}  # the message that a receive took
        self.receive_of: dict[int, int] = {}
        self.waits: list[GraphWait] = []
        self.entered: dict[tuple[int, int], list[int]] = {}  # rows of a collective call
        self._entering: dict[int, int] = {}  # the collective call of a process
        self._enters: dict[tuple[int, int], int] = {}  # rows by process and collective call
        self.modes = dict(zip(record.messages[:, 0].tolist(), record.messages[:, 6].tolist()))
        self.sources = dict(zip(record.messages[:, 0].tolist(), record.messages[:, 1].tolist()))
        self._collective_sites: set[int] | None = None
        self.last = NONE  # the end of the run
        self.until = [NONE] * count
        self._build()
        following: dict[int, int] = {}
        for i in range(count - 1, -1, -1):
            process = self.process[i]
            if process:
                if self.kind[i] == events.CALL:
                    following[process] = self.a[i]
                self.until[i] = following.get(process, NONE)

    def _build(self) -> None:
        kind, date, a, b = self.kind, self.date, self.a, self.b
        before, binding, site, since = self.before, self.binding, self.site, self.since
        last: dict[int, int] = {}
        inside: dict[int, int] = {}
        latest: dict[int, int] = {}
        waiting: dict[int, int] = {}
        arrived = NONE  # the latest arrival
        for i, process in enumerate(self.process):
            what = kind[i]
            if what == events.AWAITED:
                continue
            if what == events.PROCESS:
                before[i] = self._begin(i, process, last)
                main = self.main[self.rank_of[process]]
                inside[process] = inside.get(main, NONE)
                latest[process] = latest.get(main, NONE)
                binding[i] = before[i]
                last[process] = i
                site[i], since[i] = inside[process], latest[process]
                continue
            if process:
                previous = before[i] = last[process]
                last[process] = i
                binding[i] = previous
                # Compute on a shared core may end later than the date of the call after it.
                if date[i] < date[previous]:
                    date[i] = date[previous]
                since[i] = latest[process]
                if what == events.CALL:
                    inside[process] = latest[process] = a[i]
                    site[i] = NONE
                elif what == events.RETURN:
                    site[i] = inside[process]
                    inside[process] = NONE
                else:
                    site[i] = inside[process]
            if what == events.START_SEND:
                self.sends[a[i]] = i
            elif what == events.START_RECEIVE:
                self.receives[a[i]] = i
            elif what == events.MATCH:
                receive = int(b[i])
                self.message_of[receive] = a[i]
                self.receive_of[a[i]] = receive
            elif what == events.DEPART:
                self.departs[a[i]] = i
                binding[i] = self._poster(a[i])
                # A value that an access returns leaves when the access has arrived.
                if binding[i] == NONE and arrived != NONE and date[arrived] == date[i]:
                    binding[i] = arrived
                if binding[i] != NONE:
                    date[i] = date[binding[i]]
            elif what == events.ARRIVE:
                self.arrives[a[i]] = arrived = i
                binding[i] = self.departs[a[i]]
            elif what == events.COMPLETE:
                self.completes[a[i]] = i
                binding[i] = self._completion(i, a[i])
            elif what == events.START_WAIT:
                waiting[process] = i
            elif what == events.RESUME:
                binding[i] = self._waker(i, last)
                begun = waiting.get(process, before[i])
                cause = a[i]
                rank = self._waker_rank(i)
                self.waits.append(GraphWait(process, date[begun], date[i], site[i], cause, rank))
            elif what == events.ENTER:
                self.entered.setdefault((a[i], int(b[i])), []).append(i)
                self._entering[process] = a[i]
                self._enters[process, a[i]] = i
            elif what == events.END:
                if self.last == NONE or date[i] > date[self.last]:
                    self.last = i

    def _begin(self, row: int, process: int, last: dict[int, int]) -> int:
        """The row of the parent after which a process begins."""
        rank = self.rank_of[process] = self.a[row]
        kind = self.kind_of[process] = int(self.b[row])
        if kind == events.MAIN:
            self.main[rank] = process
            return NONE
        if rank not in self.main:
            self.main[rank] = process
            return NONE
        parent = last[self.main[rank]]
        while parent != NONE and self.date[parent] > self.date[row]:
            parent = self.before[parent]
        return parent

    def _poster(self, message: int) -> int:
        """The row that let a message leave: its posting, or that of its receive."""
        send = self.sends.get(message, NONE)
        receive = self.receives.get(self.receive_of.get(message, NONE), NONE)
        if receive == NONE or (self.modes.get(message, 0) & events.EAGER):
            return send
        if send == NONE or self.date[receive] > self.date[send]:
            return receive
        return send

    def _completion(self, row: int, order: int) -> int:
        """The row that completed a message or a receive."""
        date = self.date
        if order in self.receives:
            message = self.message_of.get(order, NONE)
            candidates = [self.arrives.get(message, NONE), self.receives[order]]
            spare = [self.sends.get(message, NONE)]
        else:
            candidates = [self.arrives.get(order, NONE), self.sends.get(order, NONE)]
            spare = [self.departs.get(order, NONE)]
        for candidate in candidates:
            if candidate != NONE and date[candidate] == date[row]:
                return candidate
        known = [one for one in candidates[1:] + spare if one != NONE]
        return max(known, key=date.__getitem__, default=NONE)

    def _waker(self, row: int, last: dict[int, int]) -> int:
        """The row that let a process continue."""
        cause, by = self.a[row], int(self.b[row])
        if cause > 0:
            found = self.completes.get(cause, self.arrives.get(cause, NONE))
        elif cause < 0:
            found = last.get(-1 - cause, NONE)
        else:
            # Under another MPI library, a collective call ends with the last rank that enters it.
            entered = self._enters.get((by, self._entering.get(self.process[row], 0)), NONE)
            found = entered if entered != NONE else last.get(by, NONE)
        if found == NONE or self.date[found] > self.date[row]:
            return self.before[row]
        return found

    def _waker_rank(self, row: int) -> int:
        """The rank that a wait was for."""
        cause, by = self.a[row], int(self.b[row])
        if cause > 0:
            message = self.message_of.get(cause, cause)
            source: int = self.sources.get(message, NONE)
            if source == self.rank_of[self.process[row]]:
                # A send waits for its receiver.
                receive = self.receives.get(self.receive_of.get(message, NONE), NONE)
                if receive != NONE:
                    return self.rank_of[self.process[receive]]
            return source
        if cause < 0:
            return self.rank_of.get(-1 - cause, NONE)
        return self.rank_of.get(by, NONE)

    @property
    def seconds(self) -> float:
        """The makespan (s)."""
        return 0.0 if self.last == NONE else self.date[self.last]

    def in_call(self, row: int) -> bool:
        """Whether the time before a row was in an MPI call, or a process in the background."""
        return self.site[row] != NONE or self.kind_of.get(self.process[row]) == events.BACKGROUND

    def evaluate(self, scales: Scales | None = None) -> Floats:
        """The dates (s) of all rows with other durations.

        Messages match as they did, and transfers compete as they did: in a run with these durations
        both may differ.
        """
        scales = scales or Scales()
        kind, a, b, x, date = self.kind, self.a, self.b, self.x, self.date
        before, binding, process = self.before, self.binding, self.process
        new = [0.0] * len(kind)
        contention = scales.transfer if scales.contention is None else scales.contention
        slow = self._slow_messages(scales.links)
        awaited: dict[int, list[int]] = {}
        compute = {
            number: scales.compute * scales.ranks.get(rank, 1.0)
            for number, rank in self.rank_of.items()
        }
        overhead, latency_scale, transfer = scales.overhead, scales.latency, scales.transfer
        lines = scales.lines
        for i, what in enumerate(kind):
            if what == events.AWAITED:
                awaited[process[i]].append(a[i])
            elif what == events.DEPART:
                message = a[i]
                if message in self.sends:
                    start = new[self.sends[message]]
                else:
                    start = new[binding[i]] if binding[i] != NONE else 0.0
                receive = self.receives.get(self.receive_of.get(message, NONE), NONE)
                eager = self.modes.get(message, 0) & events.EAGER
                if receive != NONE and receive < i and not eager:
                    start = max(start, new[receive])
                new[i] = start
            elif what == events.ARRIVE:
                depart = binding[i]
                lasted = date[i] - date[depart]
                latency = min(lasted, b[depart])
                alone = min(lasted - latency, x[depart])
                factor = slow.get(a[i], 1.0)
                new[i] = (
                    new[depart]
                    + latency * latency_scale
                    + alone * transfer * factor
                    + (lasted - latency - alone) * contention * factor
                )
            elif what == events.COMPLETE:
                new[i] = self._completed(i, new, latency_scale, transfer)
            elif what == events.MATCH:
                new[i] = date[i]
            else:
                mine = process[i]
                previous = before[i]
                if previous == NONE:
                    new[i] = date[i]
                    continue
                start = new[previous]
                for order in awaited.pop(mine, ()):
                    done = self.completes.get(order, NONE) if order > 0 else NONE
                    if NONE != done < i and new[done] > start:
                        start = new[done]
                if what == events.RESUME:
                    cause = binding[i]
                    if cause == previous:  # a timer
                        new[i] = max(start, new[previous] + date[i] - date[previous])
                    else:
                        tail = date[i] - date[cause]
                        new[i] = max(start, new[cause] + tail)
                    continue
                lasted = date[i] - date[previous]
                if not self.in_call(i):
                    lasted *= compute[mine]
                    if lines:
                        lasted *= lines.get((self.since[i], self.until[i]), 1.0)
                elif what == events.START_SEND:
                    cost = min(lasted, x[i])
                    lasted += cost * (overhead - 1.0)
                elif kind[previous] == events.RESUME or kind[previous] == events.START_WAIT:
                    lasted *= overhead
                new[i] = start + lasted
                if what == events.START_WAIT:
                    # A wait for one of several requests depends only on the request that ended it.
                    awaited[mine] = []
                    if a[i] == 0:
                        awaited[mine] = _Forgetful()
        return np.array(new)

    def makespan(self, scales: Scales | None = None) -> float:
        """The predicted time (s) of the run with other durations."""
        dates = self.evaluate(scales)
        ends = [dates[i] for i, what in enumerate(self.kind) if what == events.END]
        return float(max(ends, default=0.0))

    def _completed(self, row: int, new: list[float], latency: float, transfer: float) -> float:
        order = self.a[row]
        cause = self.binding[row]
        if cause == NONE:
            return self.date[row]
        found = new[cause]
        lasted = self.date[row] - self.date[cause]
        found += lasted * (latency if self.kind[cause] == events.START_SEND else transfer)
        if order in self.receives:
            found = max(found, new[self.receives[order]])
            arrive = self.arrives.get(self.message_of.get(order, NONE), NONE)
            if NONE != arrive < row:
                found = max(found, new[arrive])
        return found

    def _slow_messages(self, links: dict[int, float]) -> dict[int, float]:
        """The factors of messages that cross links with other bandwidths."""
        if not links:
            return {}
        routes = self.record.routes
        factors = [max([links.get(link, 1.0) for link in route], default=1.0) for route in routes]
        table = self.record.messages
        return {
            int(number): factors[route]
            for number, route in zip(table[:, 0].tolist(), table[:, 5].tolist())
            if factors[route] != 1.0
        }

    def latest(self, row: int) -> int:
        """The call that a row begins, or the latest before it."""
        return self.a[row] if self.kind[row] == events.CALL else self.since[row]

    def entered_at(self, site: int) -> bool:
        """Whether ranks enter collective operations at a call site."""
        if self._collective_sites is None:
            rows = (row for rows in self.entered.values() for row in rows)
            self._collective_sites = {self.site[row] for row in rows}
        return site in self._collective_sites

    def detached(self, message: int) -> bool:
        """Whether the sender of a message did not wait for it."""
        return bool(self.modes.get(message, 0) & events.DETACHED)


def graph_of(recording: Recording) -> EventGraph:
    """The graph of a recording in memory."""
    return EventGraph(activity_of(recording))


# The steps from a file to its analysis, which take most of the time of a page.
READING: Final = ("reading", "graph of events", "critical path")


def read(path: str, step: Callable[[str], object] = str) -> EventGraph:
    """The graph of the recording in a file; raises UsageError if it is not consistent.

    `step` is called with the names of its steps, the first two of `READING`, when they begin.
    """
    step(READING[0])
    activity = read_activity(path)
    step(READING[1])
    try:
        return EventGraph(activity)
    except (KeyError, IndexError, ValueError, TypeError, OverflowError) as error:
        raise contradiction(path, error) from None


class _Forgetful(list[int]):
    """A list that stays empty."""

    def append(self, value: int) -> None:
        """Do nothing."""
