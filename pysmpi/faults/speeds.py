"""Speeds of hosts that change with time."""

from __future__ import annotations

import math

from pysmpi.errors import UsageError
from pysmpi.kernel.process import Pace
from pysmpi.platform.profiles import Course


class SpeedProfile(Pace):
    """The speed of a host over time, asked for increasing dates."""

    def __init__(self, course: Course) -> None:
        super().__init__()
        self._events = course.events()
        self._known: list[tuple[float, float]] = [(0.0, course.first)]
        self._ended = False
        self._first = 0

    def seconds(self, begin: float, work: float) -> float:
        """The seconds that `work` seconds at full speed take from the date `begin` on."""
        now, left = begin, work
        place = self._find(begin)
        while left > 0.0:
            speed = self._known[place][1]
            end = self._date(place + 1)
            if speed > 0.0 and now + left / speed <= end:
                return now + left / speed - begin
            if end == math.inf:
                raise UsageError(
                    f"profile: a host has speed 0 from {now:g} s on, and a rank computes on it"
                )
            left -= (end - now) * speed
            now = end
            place += 1
        return now - begin

    def _find(self, date: float) -> int:
        # Ranks of a host ask in about the order of their clocks.
        place = self._first if self._known[self._first][0] <= date else 0
        while self._date(place + 1) <= date:
            place += 1
        self._first = place
        return place

    def _date(self, place: int) -> float:
        while place >= len(self._known) and not self._ended:
            event = next(self._events, None)
            if event is None:
                self._ended = True
            else:
                self._known.append(event)
        return self._known[place][0] if place < len(self._known) else math.inf
