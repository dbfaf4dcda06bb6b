"""Events of runs under another MPI library, whose recordings hold only calls.

The dates of calls are measured. A message is posted when its call begins. It leaves
when it and its receive are posted, or when it is posted if its sender did not wait for the receive,
and arrives when the call ends that waits for it. A rank waits in a collective call for the last
rank that enters it.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from pysmpi.trace import events
from pysmpi.trace.events import EventRows, MessageRows, TracedCall
from pysmpi.trace.model import Recording

# The order of events of one date: arrivals, then events of ranks, then departures.
_BEFORE, _RANK, _AFTER, _LAST = range(4)
_Key = tuple[int, int, int, int]  # context, source, destination, tag


class _Envelope:
    """A send or a receive of a rank: its number, bytes, tag, posting, and the end of its wait."""

    __slots__ = ("number", "rank", "nbytes", "tag", "posted", "ended", "communicator", "partner")

    def __init__(
        self, number: int, rank: int, nbytes: int, tag: int, posted: float, communicator: int
    ) -> None:
        self.number = number
        self.rank = rank
        self.nbytes = nbytes
        self.tag = tag
        self.posted = posted
        self.communicator = communicator
        self.ended: float | None = None
        self.partner: _Envelope | None = None


def measured_events(recording: Recording) -> tuple[EventRows, MessageRows]:
    """The events and messages of a recording that holds only calls."""
    return _Measured(recording).found()


class _Measured:
    """The events of a recording, as they are collected."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.rows: list[tuple[float, int, int, int, int, int, float, float]] = []
        self.sends: dict[_Key, deque[_Envelope]] = {}
        self.receives: list[tuple[_Key, _Envelope]] = []
        self.open: dict[int, _Envelope] = {}  # by number
        self.last: dict[int, tuple[float, int]] = {}  # that enters a collective call: date, rank
        self.messages: list[tuple[int, ...]] = []

    def add(
        self, phase: int, kind: int, process: int, date: float, a: int = 0, b: float = 0.0,
        x: float = 0.0,
    ) -> None:  # fmt: skip
        """Add an event."""
        self.rows.append((date, phase, len(self.rows), kind, process, a, b, x))

    def found(self) -> tuple[EventRows, MessageRows]:
        """The events in the order of time, and the messages."""
        recording = self.recording
        calls = [recording.calls_of(rank) for rank in range(recording.nprocs)]
        for mine in calls:
            for call in mine:
                self.post(call)
        for key, receive in self.receives:
            queue = self.sends.get(key)
            if queue:
                send = queue.popleft()
                send.partner, receive.partner = receive, send
        for rank, mine in enumerate(calls):
            self.live(rank, mine)
        for envelope in self.open.values():
            if envelope.partner is not None and envelope.nbytes >= 0:
                self.carry(envelope, envelope.partner)
        self.rows.sort()
        columns = list(zip(*self.rows)) or [()] * 8
        date, _, _, kind, process, a, b, x = columns
        rows = EventRows(
            np.array(kind, np.int64), np.array(process, np.int64), np.array(date, np.float64),
            np.array(a, np.int64), np.array(b, np.float64), np.array(x, np.float64),
        )  # fmt: skip
        table = np.array(self.messages, np.int64).reshape(-1, len(MessageRows._fields))
        return rows, MessageRows(*np.ascontiguousarray(table.T))

    def post(self, call: TracedCall) -> None:
        """The messages and collective calls that a call begins, and the waits that it ends."""
        communicators = self.recording.communicators
        for one in call.operations:
            kind = one[0]
            if kind == events.SEND:
                _, number, context, _, destination, tag, nbytes, *_ = one
                of = communicators[context]
                send = _Envelope(number, call.rank, nbytes, tag, call.start, of.communicator)
                key = context, call.rank, of.members[destination], tag
                self.sends.setdefault(key, deque()).append(send)
                self.open[number] = send
            elif kind == events.RECEIVE:
                _, number, context, source, _, tag, _, *match = one
                if match:
                    source, tag, _ = match
                elif source < 0 or tag < 0:
                    source, tag, _ = self.recording.matches.get(number, (-1, tag, 0))
                of = communicators[context]
                sources = of.sources or of.members
                if not 0 <= source < len(sources):
                    continue  # it has got no message
                # The bytes of a receive are those of its message.
                receive = _Envelope(number, call.rank, -1, tag, call.start, of.communicator)
                self.receives.append(((context, sources[source], call.rank, tag), receive))
                self.open[number] = receive
            elif kind == events.WAIT:
                for number in one[1]:
                    if number in self.open:
                        self.open[number].ended = call.end
            elif kind == events.COLLECTIVE:
                self.last[one[1]] = max(self.last.get(one[1], (-1.0, -1)), (call.start, call.rank))

    def live(self, rank: int, calls: list[TracedCall]) -> None:
        """The events of a rank."""
        process = rank + 1
        self.add(_RANK, events.PROCESS, process, 0.0, rank, events.MAIN)
        now = 0.0
        for call in calls:
            start = max(call.start, now)
            now = max(call.end, start)
            if not call.name:
                continue
            self.add(_RANK, events.CALL, process, start, call.number)
            awaited: list[_Envelope] = []
            entered = 0
            for one in call.operations:
                kind = one[0]
                known = self.open.get(one[1]) if kind in (events.SEND, events.RECEIVE) else None
                if known is not None:
                    what = events.START_SEND if kind == events.SEND else events.START_RECEIVE
                    self.add(_RANK, what, process, start, known.number, max(0, known.nbytes))
                elif kind == events.WAIT:
                    awaited += [self.open[number] for number in one[1] if number in self.open]
                elif kind == events.COLLECTIVE and not one[4]:
                    entered = one[1]
                    self.add(_RANK, events.ENTER, process, start, entered, one[2])
            if now > start:
                self.wait(process, start, now, awaited, entered)
            self.add(_RANK, events.RETURN, process, now, call.number)
        ends = self.recording.ends
        self.add(_RANK, events.END, process, max(now, ends[rank] if rank < len(ends) else 0.0))

    def wait(
        self, process: int, start: float, end: float, awaited: list[_Envelope], entered: int
    ) -> None:
        """The wait of a call: for messages, or for the last rank that enters a collective call."""
        matched = [one for one in awaited if one.partner is not None]
        if matched:
            # The message whose other end was posted last has ended the wait.
            cause = max(matched, key=lambda one: one.partner.posted if one.partner else 0.0)
            self.add(_RANK, events.START_WAIT, process, start, 1, len(matched))
            for one in matched:
                self.add(_RANK, events.AWAITED, process, start, one.number)
            self.add(_RANK, events.RESUME, process, end, cause.number, -1)
        elif entered:
            date, rank = self.last[entered]
            if rank + 1 != process and start < date <= end:
                self.add(_RANK, events.START_WAIT, process, start, 1)
                self.add(_RANK, events.RESUME, process, end, 0, rank + 1)

    def carry(self, send: _Envelope, receive: _Envelope) -> None:
        """The way of a message."""
        done = send.posted if send.ended is None else send.ended
        eager = done < receive.posted
        begun = send.posted if eager else max(send.posted, receive.posted)
        arrived = max(begun, receive.posted if receive.ended is None else receive.ended)
        posted = max(send.posted, receive.posted)
        self.add(_AFTER, events.MATCH, 0, posted, send.number, receive.number)
        self.add(_AFTER, events.DEPART, 0, begun, send.number, 0.0, arrived - begun)
        phase = _BEFORE if arrived > begun else _LAST
        self.add(phase, events.ARRIVE, 0, arrived, send.number)
        self.add(phase, events.COMPLETE, 0, arrived, receive.number)
        self.add(_BEFORE if done > send.posted else _LAST, events.COMPLETE, 0, done, send.number)
        self.messages.append(
            (send.number, send.rank, receive.rank, send.tag, send.nbytes, 0,
             events.EAGER if eager else 0, send.communicator, 0)
        )  # fmt: skip
