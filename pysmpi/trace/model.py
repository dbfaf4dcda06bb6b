"""A recording in memory: the input of analyses, and the result of every reader of traces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from pysmpi.trace.events import (
    COLLECTIVE,
    COMPUTE,
    EventRows,
    MessageRows,
    RankPlace,
    TracedCall,
    TracedCommunicator,
    TracedMatch,
    TracedMessage,
    TracedRoute,
    TracedWait,
)
from pysmpi.trace.messages import Derivation

NAME = "pysmpi recording"
VERSION = 3  # of the recorded form
READABLE = (2, 3)  # in version 2 columns are lists
# Options of the machine that a recording was made on, in its facts.
MACHINE = (
    "platform", "hostfile", "map_by", "rank_by", "model", "memory_model",
    "memory_bound", "selector", "coll", "cfg",
)  # fmt: skip


@dataclass
class CollectiveCall:
    """One collective call of a communicator: its members by rank of the run.

    `calls` has the number of the MPI call with which each rank entered, `entered` the date.
    """

    number: int
    operation: str
    communicator: int
    algorithm: str
    root: int
    background: bool
    nbytes: int
    calls: dict[int, int] = field(default_factory=dict)
    entered: dict[int, float] = field(default_factory=dict)


@dataclass
class Compute:
    """A block of compute of a thread of a rank, before `call`."""

    rank: int
    thread: int
    start: float
    end: float
    call: int


@dataclass
class Recording:
    """A run in memory. As a format, it collects the records of a recorder.

    `facts` describes the run: program, platform, model, options. `calls` and `blanks` (time between
    calls) are in the order of their ends; they have operations if `operations` is set. `routes`,
    `message_rows` and `event_rows` hold the events; they are empty for a run that was recorded
    under another MPI library. `ends` holds the date at which each rank ended. `matches` has source,
    tag and bytes of the message that a non-blocking receive with a wildcard has taken, by the
    number of the receive. A recording is `complete` if its run was recorded to the end.
    """

    facts: dict[str, Any] = field(default_factory=dict)
    places: list[RankPlace] = field(default_factory=list)
    communicators: dict[int, TracedCommunicator] = field(default_factory=dict)
    calls: list[TracedCall] = field(default_factory=list)
    matches: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    blanks: list[TracedCall] = field(default_factory=list)
    routes: dict[int, TracedRoute] = field(default_factory=dict)
    message_rows: list[MessageRows] = field(default_factory=list)
    event_rows: list[EventRows] = field(default_factory=list)
    ends: list[float] = field(default_factory=list)
    complete: bool = False
    operations: bool = True

    # As a format.

    def describe(self, facts: dict[str, Any]) -> None:
        """Facts of the run."""
        self.facts = facts

    def begin(self, places: Sequence[RankPlace]) -> None:
        """Ranks were started."""
        self.places += places

    def communicator(self, communicator: TracedCommunicator) -> None:
        """A new communication context."""
        self.communicators[communicator.number] = communicator

    def call(self, call: TracedCall) -> None:
        """A call is over."""
        if not self.operations:
            call.operations = []
        self.calls.append(call)

    def between(self, call: TracedCall) -> None:
        """Time has passed between calls."""
        if self.operations:
            self.blanks.append(call)

    def add_route(self, route: TracedRoute) -> None:
        """A new route of messages."""
        self.routes[route.number] = route

    def add_messages(self, rows: MessageRows) -> None:
        """Messages have left."""
        self.message_rows.append(rows)

    def add_events(self, rows: EventRows) -> None:
        """Events have happened."""
        self.event_rows.append(rows)

    def match(self, match: TracedMatch) -> None:
        """A receive with a wildcard has got its message."""
        self.matches[match.receive] = match.source, match.tag, match.nbytes

    def end(self, ends: Sequence[float]) -> None:
        """The run is over."""
        self.ends = list(ends)
        self.complete = True

    def close(self) -> None:
        """There is no file."""

    # For analyses.

    @property
    def nprocs(self) -> int:
        """Number of ranks."""
        return len(self.places)

    @property
    def seconds(self) -> float:
        """The makespan: the end of the last rank, or the last record of an incomplete run (s)."""
        if self.ends:
            return max(self.ends)
        dates = [call.end for call in self.calls]
        return max(dates, default=0.0)

    @cached_property
    def call_by_number(self) -> dict[int, TracedCall]:
        """Calls, and times between calls, by number."""
        return {call.number: call for part in (self.calls, self.blanks) for call in part}

    @cached_property
    def _derived(self) -> tuple[list[TracedMessage], list[TracedWait]]:
        messages: list[TracedMessage] = []
        waits: list[TracedWait] = []
        derivation = Derivation(messages.append, waits.append)
        for rows in self.message_rows:
            derivation.add_messages(rows)
        for block in self.event_rows:
            derivation.add_events(block)
        derivation.end()
        return messages, waits

    @property
    def messages(self) -> list[TracedMessage]:
        """The messages, in the order of their ends."""
        return self._derived[0]

    @property
    def waits(self) -> list[TracedWait]:
        """The waits, in the order of their ends."""
        return self._derived[1]

    @cached_property
    def message_by_number(self) -> dict[int, TracedMessage]:
        """Messages by the number of the request of their send."""
        return {message.number: message for message in self.messages}

    def calls_of(self, rank: int, thread: int | None = None) -> list[TracedCall]:
        """The calls and the times between calls of a rank, in order of their begin."""
        return [
            call for call in self._by_rank.get(rank, []) if thread is None or call.thread == thread
        ]

    @cached_property
    def _by_rank(self) -> dict[int, list[TracedCall]]:
        found: dict[int, list[TracedCall]] = {}
        for part in (self.calls, self.blanks):
            for call in part:
                found.setdefault(call.rank, []).append(call)
        for calls in found.values():
            calls.sort(key=lambda call: (call.start, call.end, call.number))
        return found

    def computes(self) -> Iterator[Compute]:
        """Blocks of compute, by rank, in order; the last block of a rank may have no call (0)."""
        for rank in range(self.nprocs):
            last: dict[int, float] = {}
            for call in self.calls_of(rank):
                before = last.get(call.thread, 0.0)
                seconds = sum(one[1] for one in call.operations[:2] if one[0] == COMPUTE)
                if seconds > 0.0:
                    yield Compute(
                        rank, call.thread, max(before, call.start - seconds), call.start,
                        call.number,
                    )  # fmt: skip
                # The compute before a call that does nothing else is part of a later block.
                if call.operations:
                    last[call.thread] = call.end

    @cached_property
    def collectives(self) -> dict[int, CollectiveCall]:
        """Collective calls by number."""
        found: dict[int, CollectiveCall] = {}
        for part in (self.calls, self.blanks):
            for call in part:
                for one in call.operations:
                    if one[0] != COLLECTIVE:
                        continue
                    _, number, context, _, background, arguments = one
                    known = found.get(number)
                    if known is None:
                        communicator = self.communicators[context].communicator
                        known = found[number] = CollectiveCall(
                            number, arguments["op"], communicator, call.algorithm,
                            arguments.get("root", 0), background,
                            arguments.get("count", 0) * arguments.get("type_size", 1),
                        )  # fmt: skip
                    known.calls[call.rank] = call.number
                    known.entered[call.rank] = call.start
        return found
