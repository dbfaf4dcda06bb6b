"""Messages and waits, derived from the events of a run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pysmpi.trace import events
from pysmpi.trace.events import EventRows, MessageRows, TracedMessage, TracedWait


class _Process:
    """The state of a process: its open call, its collective call, the begin of its wait."""

    __slots__ = ("rank", "kind", "call", "collective", "since")

    def __init__(self, rank: int, kind: int, call: int, collective: int) -> None:
        self.rank = rank
        self.kind = kind
        self.call = call
        self.collective = collective
        self.since = 0.0


class Derivation:
    """Takes events and gives messages, when they have arrived and were received, and waits.

    `transfer` and `wait` get them; None if they are not wanted.
    """

    def __init__(
        self,
        transfer: Callable[[TracedMessage], None] | None,
        wait: Callable[[TracedWait], None] | None,
    ) -> None:
        self._transfer = transfer
        self._wait = wait
        self._processes: dict[int, _Process] = {}
        self._main: dict[int, _Process] = {}
        self._rows: dict[int, tuple[int, ...]] = {}  # of messages on their way
        # Date and call of the postings; receives by message; departures; arrivals without receive.
        self._posted: dict[int, tuple[float, int]] = {}
        self._ready: dict[int, tuple[float, int]] = {}
        self._receives: dict[int, int] = {}
        self._departed: dict[int, float] = {}
        self._landed: dict[int, float] = {}

    def add_route(self, route: object) -> None:
        """Messages do not name their routes."""

    def add_messages(self, rows: MessageRows) -> None:
        """Messages that have left."""
        if self._transfer is not None:
            for row in zip(*(column.tolist() for column in rows)):
                self._rows[row[0]] = row

    def add_events(self, rows: EventRows) -> None:
        """Events, in their order."""
        transfers = self._transfer is not None
        processes = self._processes
        columns: list[list[Any]] = [column.tolist() for column in rows]
        for kind, number, date, a, b, x in zip(*columns):
            if kind == events.CALL:
                process = processes[number]
                process.call, process.collective = a, 0
            elif kind == events.RETURN:
                processes[number].call = 0
            elif kind == events.ENTER:
                processes[number].collective = a
            elif kind == events.START_WAIT:
                processes[number].since = date
            elif kind == events.RESUME:
                if self._wait is not None:
                    self._resumed(processes[number], date, a, int(x))
            elif kind == events.PROCESS:
                call = self._main[a].call if int(b) == events.BACKGROUND and a in self._main else 0
                found = processes[number] = _Process(a, int(b), call, int(x))
                if int(b) == events.MAIN:
                    self._main[a] = found
            elif not transfers:
                continue
            elif kind == events.START_SEND:
                self._posted[a] = date, processes[number].call
            elif kind == events.START_RECEIVE:
                self._ready[a] = date, processes[number].call
            elif kind == events.MATCH:
                self._receives[a] = int(b)
                landed = self._landed.pop(a, None)
                if landed is not None:
                    self._arrive(a, landed)
            elif kind == events.DEPART:
                self._departed[a] = date
            elif kind == events.ARRIVE:
                if a in self._receives or (a in self._rows and self._rows[a][6] & events.ONE_SIDED):
                    self._arrive(a, date)
                else:
                    self._landed[a] = date  # an eager message waits for its receive

    def end(self) -> None:
        """Pass on the messages that were never received."""
        for number, date in self._landed.items():
            self._arrive(number, date)
        self._landed.clear()

    def _arrive(self, number: int, date: float) -> None:
        assert self._transfer is not None
        row = self._rows.pop(number)
        _, source, destination, tag, nbytes, _, mode, communicator, collective = row
        begun = self._departed.pop(number, date)
        posted, send_call = self._posted.pop(number, (begun, 0))
        receive = self._receives.pop(number, 0)
        ready, receive_call = self._ready.pop(receive, (posted, 0))
        self._transfer(
            TracedMessage(
                number,
                source,
                destination,
                tag,
                nbytes,
                begun,
                date,
                posted,
                ready,
                send_call,
                receive_call,
                receive,
                communicator,
                collective,
                bool(mode & events.INTERNAL),
            )  # fmt: skip
        )

    def _resumed(self, process: _Process, date: float, cause: int, message: int) -> None:
        assert self._wait is not None
        if date <= process.since:
            return
        request = cause if message or cause < 0 else 0
        if cause < 0:
            background = self._processes.get(-1 - cause)
            request = -background.collective if background is not None else 0
        self._wait(
            TracedWait(
                process.rank,
                process.call,
                process.since,
                date,
                request,
                message,
                process.collective,
            )  # fmt: skip
        )


class Derived:
    """Gives a format that knows no events the messages and waits that it wants."""

    def __init__(self, format: object) -> None:
        self._derivation = Derivation(
            getattr(format, "transfer", None), getattr(format, "wait", None)
        )
        self.add_route = self._derivation.add_route
        self.add_messages = self._derivation.add_messages
        self.add_events = self._derivation.add_events
        self.finish = self._derivation.end


def listener_of(format: object) -> object:
    """The listener to events for a format; None if it wants none."""
    if hasattr(format, "add_events"):
        return format
    if hasattr(format, "transfer") or hasattr(format, "wait"):
        return Derived(format)
    return None


class Both:
    """A format that passes everything on to two others, one of which knows events."""

    def __init__(self, first: object, second: object) -> None:
        listeners = {id(one): listener_of(one) for one in (first, second)}

        def both(name: str, of: Callable[[Any], object] = lambda one: one) -> Callable[..., None]:
            found = [
                method for one in (first, second)
                if (method := getattr(of(one), name, None)) is not None
            ]  # fmt: skip

            def tell(*arguments: object) -> None:
                for method in found:
                    method(*arguments)

            return tell

        for name in ("describe", "choose", "begin", "communicator", "call", "between", "match",
                     "end", "close"):  # fmt: skip
            setattr(self, name, both(name))
        for name in ("add_route", "add_messages", "add_events", "finish"):
            setattr(self, name, both(name, lambda one: listeners[id(one)]))
