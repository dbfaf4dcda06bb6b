"""Profiles: changes over time of a host's speed, a link's bandwidth or latency, or their state.

Times are simulated seconds. SimGrid's files have them in files of their own: a line for each event,
its date and its value, and `LOOPAFTER` or `PERIODICITY` for those that repeat.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from dataclasses import field

from pysmpi.errors import UsageError
from pysmpi.python.records import record

SPEED, HOST_STATE = "speed", "host_state"
BANDWIDTH, LATENCY, LINK_STATE = "bandwidth", "latency", "link_state"
OF_HOSTS = (SPEED, HOST_STATE)
KINDS = (SPEED, HOST_STATE, BANDWIDTH, LATENCY, LINK_STATE)

_RANDOM = ("STOCHASTIC", "NORM", "GAUSS", "EXP", "UNIF", "DET")


@record(frozen=True)
class PlatformProfile:
    """The values from each date on; dates (s) do not decrease.

    `loop` is the delay (s) between the last event and the first of the next round, whose own date
    is added, as in SimGrid; None for a profile that ends with its last value. Speeds are parts of
    the host's speed, bandwidths bytes/s, latencies seconds, states 1 (on) and 0 (off).
    """

    points: tuple[tuple[float, float], ...]
    loop: float | None = None

    @property
    def period(self) -> float:
        """The time (s) after which the values repeat; infinite if they do not."""
        return math.inf if self.loop is None else self.points[-1][0] + self.loop

    def events(self, since: float = 0.0) -> Iterator[tuple[float, float]]:
        """Dates and values, as long as dates can be told apart if the profile repeats.

        Rounds that end before the date `since` are left out, but for the last of them.
        """
        begin = 0.0
        if since >= 2.0 * self.period:
            begin = since - math.fmod(since, self.period) - self.period
        if begin <= 0.0:
            yield from self.points
        if self.loop is None:
            return
        while True:
            following = begin + self.period
            if following == begin:
                return  # so far away no date is between those of a round
            begin = following
            for date, value in self.points:
                yield begin + date, value


@record
class ProfileDef:
    """A profile of the host or link `name`; `kind` is one of KINDS."""

    kind: str
    name: str
    profile: PlatformProfile
    where: str = field(default="", compare=False)


@record(frozen=True)
class Change:
    """Multiplies a value by `factor` from the date `begin` to the date `end` (s)."""

    begin: float
    end: float
    factor: float


@record
class Course:
    """A value over time: `first` at the beginning, or what profiles say, multiplied by changes.

    Changes that overlap all apply.
    """

    first: float
    profiles: list[PlatformProfile] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)

    def events(self, since: float = 0.0) -> Iterator[tuple[float, float]]:
        """Dates and new values, one for each date; as many as profiles have.

        The value of the date `since` is among them, or that of an earlier date.
        """
        dates = sorted({one.begin for one in self.changes} | {one.end for one in self.changes})
        changing = ((date, None) for date in dates if date < math.inf)
        said = (profile.events(since) for profile in self.profiles)
        value, date = self.first, 0.0
        due = False
        for when, new in heapq.merge(*said, changing, key=_date):
            if due and when > date:
                yield date, self.changed(value, date)
            due, date = True, when
            if new is not None:
                value = new
        if due:
            yield date, self.changed(value, date)

    def changed(self, value: float, date: float) -> float:
        """A value with the changes that apply at a date (s)."""
        for one in self.changes:
            if one.begin <= date < one.end:
                value *= one.factor
        return value


def _date(event: tuple[float, float | None]) -> float:
    return event[0]


def check_profile(kind: str, profile: PlatformProfile) -> None:
    """Refuse dates and values that a kind cannot have, by a UsageError that names them."""
    if not profile.points:
        raise UsageError("expected at least one event, got none")
    before = 0.0
    for date, value in profile.points:
        if not (math.isfinite(date) and math.isfinite(value)):
            raise UsageError(f"expected finite numbers, got {date:g} {value:g}")
        if date < before:
            raise UsageError(f"expected dates from 0 on in order, got {date:g} after {before:g}")
        before = date
        if kind == BANDWIDTH and value <= 0.0:
            raise UsageError(f"expected a bandwidth above 0, got {value:g}")
        if kind in (SPEED, LATENCY) and value < 0.0:
            raise UsageError(f"expected at least 0, got {value:g}")
        if kind in (HOST_STATE, LINK_STATE) and value not in (0.0, 1.0):
            raise UsageError(f"expected 0 (off) or 1 (on), got {value:g}")
    if profile.loop is not None:
        if profile.loop < 0.0 or before + profile.loop <= 0.0:
            raise UsageError("expected a time above 0 before the profile repeats")


def read_profile(text: str, periodicity: float | None = None) -> PlatformProfile:
    """A profile as SimGrid writes it; `periodicity` is that of a <trace>. Raises UsageError."""
    points: list[tuple[float, float]] = []
    loop: float | None = None
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words or words[0][0] in "#%":
            continue
        if words[0].startswith(_RANDOM):
            raise UsageError(
                f"line {number}: profiles whose dates or values are drawn are not supported, got "
                f"{line.strip()!r}"
            )
        try:
            if words[0] == "LOOPAFTER" and len(words) == 2:
                loop = float(words[1])
            elif words[0] == "PERIODICITY" and len(words) == 2:
                periodicity = float(words[1])
            else:
                date, value = map(float, words)
                points.append((date, value))
        except ValueError:
            raise UsageError(
                f"line {number}: expected a date and a value, got {line.strip()!r}"
            ) from None
    if periodicity is not None and periodicity > 0.0 and points:
        loop = periodicity - points[-1][0]
    return PlatformProfile(tuple(points), loop)


def write_profile(profile: PlatformProfile) -> str:
    """A profile as SimGrid reads it."""
    lines = [f"{date!r} {value!r}" for date, value in profile.points]
    if profile.loop is not None:
        lines.append(f"LOOPAFTER {profile.loop!r}")
    return "\n".join(lines) + "\n"
