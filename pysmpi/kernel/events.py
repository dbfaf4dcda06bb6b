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

    def push(self, date: float, event: Event) -> None:
        """Have `event` fire at `date`."""
        due = self.events.get(date)
        if due is None:
            self.events[date] = [event]
            heappush(self.dates, date)
        else:
            due.append(event)

    def empty(self) -> bool:
        """Whether no event is left."""
        return len(self.dates) == 0

    def next(self) -> float:
        """The date of the earliest event; there must be one."""
        return self.dates[0]

    def pop(self) -> "list[Event]":
        """Take out all events of the earliest date, in their order."""
        return self.events.pop(heappop(self.dates))

    def at(self, date: float) -> "list[Event]":
        """The events of a date, in their order."""
        return list(self.events.get(date, ()))

    def remove(self, date: float, event: Event) -> None:
        """Take one event back that was to happen at `date`."""
        due = self.events[date]
        due.remove(event)
        if len(due) == 0:
            del self.events[date]
            self.dates.remove(date)
            heapify(self.dates)
