"""The event queue: the next events in virtual time."""

from heapq import heapify, heappop, heappush


class Event:
    """Something with a date. `fire` is called when the clock reaches it."""

    def fire(self) -> None:
        raise RuntimeError("an event must define its action")


class EventQueue:
    """The clock, and events by date (s); equal dates in the order in which they were added.

    The heap holds dates only, each once. If many processes do the same at the same instant, as in
    parallel programs, adding an event is appending to a list.
    """

    def __init__(self) -> None:
        self.now: float = 0.0
        self.dates: list[float] = []
        self.events: dict[float, list[Event]] = {}
        # The date and the events of the latest addition: the next one often is at the same date.
        self.latest: float = -1.0
        self.due: list[Event] = []

    def push(self, date: float, event: Event) -> None:
        """Have `event` fire at `date`."""
        if date == self.latest:
            self.due.append(event)
            return
        due = self.events.get(date)
        if due is None:
            due = [event]
            self.events[date] = due
            heappush(self.dates, date)
        else:
            due.append(event)
        self.latest = date
        self.due = due

    def empty(self) -> bool:
        """Whether no event is left."""
        return len(self.dates) == 0

    def next(self) -> float:
        """The date of the earliest event; there must be one."""
        return self.dates[0]

    def pop(self) -> "list[Event]":
        """Take out all events of the earliest date, in their order."""
        date = heappop(self.dates)
        if date == self.latest:
            self.latest = -1.0
            self.due = []
        return self.events.pop(date)

    def at(self, date: float) -> "list[Event]":
        """The events of a date, in their order."""
        return list(self.events.get(date, ()))

    def remove(self, date: float, event: Event) -> None:
        """Take one event back that was to happen at `date`."""
        due = self.events[date]
        due.remove(event)
        if len(due) == 0:
            del self.events[date]
            self.latest = -1.0
            self.due = []
            self.dates.remove(date)
            heapify(self.dates)
