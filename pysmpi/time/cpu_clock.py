"""The CPU clock of the thread, which measures the compute of all ranks.

This module is compiled: each MPI call stops the clock and starts it again.
"""

from __future__ import annotations

from math import exp
from time import perf_counter_ns, thread_time_ns
from typing import Any, Final

from mypy_extensions import i64

from pysmpi.time.stopwatch import Stopwatch

# A look at the CPU clock is a system call, and takes ten times as long as one at the monotonic
# clock. For so many nanoseconds after a look, the monotonic clock is used: the operating system
# rarely gives the core to another thread for a shorter time.
SHORT: Final = 20_000
# A call of so many nanoseconds or more leaves caches cold, a shorter one in proportion.
LONG_CALL: Final = 10_000.0


class CpuClock(Stopwatch):
    """The CPU clock of the thread (ns), less pauses; one for all ranks, as one runs at a time."""

    def __init__(self) -> None:
        super().__init__()
        # Attributes are read without a look into the dictionary of the module.
        self._monotonic_ns: Any = perf_counter_ns
        self._cpu_ns: Any = thread_time_ns
        self._begin: i64 = 0
        self._excluded: i64 = 0
        self._paused_at: i64 = 0
        # The CPU clock when it was looked at last, and the monotonic clock then.
        self._spent: i64 = 0
        self._seen: i64 = 0
        self._latest: i64 = 0  # time that `_now` has returned
        self.overhead: i64 = 0
        # What a block between two calls contains besides: the end of one and the start of the next.
        self.boundary: i64 = 0
        self._deducted: i64 = 0  # from the present block
        # The simulator leaves caches of instructions cold: of a short block between two calls, this
        # share comes from it, and of a long one at most so many nanoseconds.
        self.cold_share: float = 0.0
        self.cold_most: float = 0.0
        self._coldness: float = -1.0  # of the present block, from 0 to 1; -1 inside a call
        self._left: i64 = 0  # when the latest block between two calls ended
        self.overhead = self._calibrate()

    def _now(self) -> i64:
        """The CPU time of the thread (ns)."""
        seen: i64 = self._monotonic_ns()
        if seen - self._seen <= SHORT:
            now = self._spent + (seen - self._seen)
        else:
            now = self._cpu_ns()
            self._spent = now
            self._seen = self._monotonic_ns()
        if now < self._latest:
            # Another thread had the core for a short time.
            return self._latest
        self._latest = now
        return now

    def start(self) -> None:
        """A block between two calls begins."""
        self._excluded = 0
        self._deducted = self.overhead + self.boundary
        now = self._now()
        self._coldness = min(float(now - self._left) / LONG_CALL, 1.0)
        self._begin = self._paused_at = now

    def start_inside(self) -> None:
        """A block inside a call begins."""
        self._excluded = 0
        self._deducted = self.overhead
        self._coldness = -1.0
        self._begin = self._paused_at = self._now()

    def stop(self) -> int:
        """The block ends; returns its nanoseconds."""
        now = self._now()
        if self.pauses:
            self._excluded += now - self._paused_at
            self._paused_at = now
        if self._coldness >= 0.0:
            self._left = now
        elapsed = now - self._begin - self._excluded - self._deducted
        if elapsed <= 0:
            return 0
        most = self.cold_most
        if most > 0.0 and self._coldness > 0.0:
            cold = self._coldness * most * (1.0 - exp(-self.cold_share * float(elapsed) / most))
            return elapsed - int(cold)
        return elapsed

    def pause(self) -> None:
        if self.pauses == 0:
            self._paused_at = self._now()
        self.pauses += 1

    def resume(self) -> None:
        self.pauses -= 1
        if self.pauses == 0:
            self._excluded += self._now() - self._paused_at

    def release(self) -> int:
        pauses = self.pauses
        if pauses:
            self.pauses = 0
            self._excluded += self._now() - self._paused_at
        return pauses

    def restore(self, pauses: int) -> None:
        if pauses and self.pauses == 0:
            self._paused_at = self._now()
        self.pauses += pauses

    def elapsed(self) -> int:
        now = self._paused_at if self.pauses else self._now()
        return now - self._begin - self._excluded

    def charge(self, nanoseconds: int) -> None:
        self._excluded -= nanoseconds

    def collecting(self, phase: str, info: dict[str, int]) -> None:
        """Called by `gc.callbacks`."""
        if phase == "start":
            self.pause()
        elif self.pauses:
            self.resume()

    def _calibrate(self) -> int:
        """The usual measured time of an empty block."""
        empty: list[int] = []
        for _ in range(301):
            self.start_inside()
            empty.append(self.stop())
        return sorted(empty)[150]


class CpuTimer:
    """Times blocks on the CPU clock; blocks shorter than `threshold` seconds take no time."""

    def __init__(self, clock: CpuClock, factor: float, threshold: float = 0.0) -> None:
        self.clock: CpuClock = clock
        self.factor: float = factor  # simulated seconds a nanosecond of this machine
        self.least: float = threshold * 1e9

    def start(self) -> None:
        """A block begins."""
        self.clock.start()

    def resume(self) -> None:
        """Work of the program inside a call begins; it ends with `stop`."""
        self.clock.start_inside()

    def stop(self) -> float:
        """The block ends; returns its seconds on the simulated core."""
        elapsed = self.clock.stop()
        return elapsed * self.factor if elapsed >= self.least else 0.0

    def part(self) -> float | None:
        """The seconds of the block up to here; it goes on with `start`."""
        return self.clock.stop() * self.factor
