"""Passes of all ranks together, which may communicate.

A pass is measured in simulated time, from its begin to its end on each rank, including waits. Each
rank skips the same passes, because only their number decides; so no rank misses a message of a
skipped pass. This requires that all messages of a pass begin and end inside it.
"""

from __future__ import annotations

from time import thread_time_ns
from typing import Any, Protocol

from pysmpi.mpi.base.ranks import Rank
from pysmpi.shadow.entry import Entry
from pysmpi.shadow.estimate import StoppingRule
from pysmpi.shadow.teams import Links
from pysmpi.time.stopwatch import Stopwatch


class Sampling(Protocol):
    """The part of the sampling of a run that collective passes use."""

    clock: Stopwatch
    links: Links

    @property
    def native(self) -> bool:
        """Whether a clock measures compute."""

    def seconds_on(self, rank: Rank) -> float:
        """Simulated seconds of a rank in a nanosecond of this computer."""


class Sampled(Protocol):
    """The part of a sampled place that collective passes use."""

    activity: HostTime
    rule: StoppingRule


class Span:
    """One pass of one rank, in simulated seconds."""

    __slots__ = ("rank", "shadow", "point", "_start", "_compute", "_comm", "_overhead", "_block")

    def __init__(self, shadow: Sampling, point: Sampled, rank: Rank) -> None:
        self.rank = rank
        self.shadow = shadow
        self.point = point
        process = rank.process
        self._start = self._date()
        self._compute = self._computed()
        self._comm = process.comm_seconds
        self._overhead = process.overhead_seconds
        self._block = _timer(rank).position if _plays_back(rank) else 0
        activity = point.activity
        if activity.inside == 0:
            activity.since = thread_time_ns()
        activity.inside += 1
        shadow.links.enter(rank.engine)

    def _date(self) -> float:
        """The rank's clock, read without ending the block of compute.

        If blocks have fixed times, the running block belongs to the next pass, not to the pass that
        it ends. A block is then neither lost nor counted twice.
        """
        return self.rank.engine.now + self._owed()

    def _computed(self) -> float:
        """Simulated seconds that the rank has computed."""
        return self.rank.process.compute_seconds + self._owed()

    def _owed(self) -> float:
        """Simulated seconds of compute that have not passed yet."""
        running = self.shadow.clock.elapsed() * self.shadow.seconds_on(self.rank)
        return self.rank.process.debt + running

    def end(self) -> None:
        """The pass is over, or broken off."""
        self.shadow.links.leave()
        activity = self.point.activity
        activity.inside -= 1
        if activity.inside == 0:
            activity.host += thread_time_ns() - activity.since

    def measured(self) -> float:
        return self._date() - self._start

    def note(self, entry: Entry) -> None:
        """Record the rank's shares of time in the pass."""
        if _plays_back(self.rank):
            entry.blocks = _timer(self.rank).position - self._block
        if entry.estimate.passes <= self.point.rule.warmup:
            return
        process = self.rank.process
        shares = entry.shares
        if shares is None:
            shares = entry.shares = [0.0, 0.0, 0.0]
        shares[0] += self._computed() - self._compute
        shares[1] += process.comm_seconds - self._comm
        shares[2] += process.overhead_seconds - self._overhead


class HostTime:
    """The time that this computer spent on passes of any rank."""

    __slots__ = ("inside", "since", "host")

    def __init__(self) -> None:
        self.inside = 0
        self.since = 0
        self.host = 0  # ns


def _timer(rank: Rank) -> Any:
    return getattr(rank.timer, "real", rank.timer)


def _plays_back(rank: Rank) -> bool:
    return hasattr(_timer(rank), "position")


def pass_by(shadow: Sampling, entry: Entry, rank: Rank, seconds: float, passes: int) -> None:
    """Let the simulated time of skipped passes pass."""
    process = rank.process
    if _plays_back(rank):
        _timer(rank).position += passes * entry.blocks
    # Others run meanwhile, and their time counts.
    pauses = shadow.clock.release()
    try:
        if shadow.native:
            rank.sleep(seconds)
        else:
            process.sleep(seconds)
    finally:
        shadow.clock.restore(pauses)
    if entry.shares is not None:
        measured = entry.estimate.count * entry.estimate.mean
        scale = seconds / measured if measured > 0.0 else 0.0
        process.compute_seconds += entry.shares[0] * scale
        process.comm_seconds += entry.shares[1] * scale
        process.overhead_seconds += entry.shares[2] * scale
