"""Speeds of hosts that change with time."""

from __future__ import annotations

import math
import operator

from pysmpi.errors import UsageError
from pysmpi.kernel.core import Pace
from pysmpi.platform.profiles import Course

# Rounds of a profile that are gone through one by one, as SimGrid does; more are multiplied.
FEW = 1000
# Changes of the speed that are gone through one by one, because the rounds differ.
MOST = 1_000_000


class SpeedProfile(Pace):
    """The speed of a host over time, asked for increasing dates."""

    def __init__(self, course: Course) -> None:
        super().__init__()
        self._events = course.events()
        # From the date `_start` (s) on all repeats after `_period` seconds, in which a core does
        # `_work` (seconds at full speed).
        self._start, self._period, self._work = _repetition(course)
        self._known: list[tuple[float, float]] = [(0.0, course.first)]
        self._ended = False
        self._first = 0

    def seconds(self, begin: float, work: float) -> float:
        """The seconds that `work` seconds at full speed take from the date `begin` on."""
        begin = self._early(begin)
        now, left = begin, work
        skipped = 0.0
        place = self._find(begin)
        while left > 0.0:
            speed = self._known[place][1]
            end = self._date(place + 1)
            if speed > 0.0 and now + left / speed <= end:
                return skipped + now + left / speed - begin
            if end == math.inf:
                raise UsageError(
                    f"profile: a host has speed 0 from {now:g} s on, and a rank computes on it"
                )
            left -= (end - now) * speed
            now = end
            place += 1
            if left > FEW * self._work and now >= self._start + self._period:
                if self._work <= 0.0:
                    raise UsageError(
                        f"profile: a host has speed 0 from {now:g} s on, and a rank computes on it"
                    )
                rest = math.fmod(left, self._work) + self._work
                skipped += (left - rest) * (self._period / self._work)
                left = rest
        return skipped + now - begin

    def _early(self, date: float) -> float:
        """The first date from which on the speeds are those from `date` on, if it is far away."""
        if date < self._start + FEW * self._period:
            return date
        return self._start + self._period + math.fmod(date - self._start, self._period)

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
                if len(self._known) > MOST:
                    raise UsageError(
                        f"profile: the speed of a host changes {MOST:,} times until {event[0]:g} s,"
                        " with rounds that differ; expected a longer time before it repeats"
                    )
        return self._known[place][0] if place < len(self._known) else math.inf


def _repetition(course: Course) -> tuple[float, float, float]:
    """The date (s) from which on a course repeats, its period (s), and the work of a period.

    All are infinite if it does not repeat.
    """
    repeating = [one for one in course.profiles if one.loop is not None]
    if len(repeating) != 1:
        return math.inf, math.inf, math.inf
    times = {time for one in course.changes for time in (one.begin, one.end)}
    times |= {one.points[-1][0] for one in course.profiles if one.loop is None}
    start = max((time for time in times if time < math.inf), default=0.0)
    profile = repeating[0]
    ends = [time for time, _ in profile.points] + [profile.period + profile.points[0][0]]
    lengths = [after - time for time, after in zip(ends, ends[1:], strict=False)]
    values = [value for _, value in profile.points]
    work = sum(map(operator.mul, values, lengths)) * course.changed(1.0, start)
    return start, profile.period, work
