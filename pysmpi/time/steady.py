"""`--compute steady`: repeated blocks of compute take their undisturbed time.

A computer that shares its cores, caches and memory with other work is slower at times, for
microseconds or for minutes. Ranks that wait for each other wait for the rank that was disturbed
last. A prediction from measured blocks therefore contains much more of this noise than a single
rank has.

A block is identified by its place: the rank, and the call paths of the program to the two MPI calls
around the block. After a few measures it takes its usual time: the median over the last batches of
executions of the low end of a batch. Noise only adds time, so a low end is steadier than a mean.
The low end of one batch is as likely above the usual value as below, so short runs and long runs
have the same expectation. At places with varying work, blocks take the measured time.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable
from typing import Any, Final

from pysmpi.python.frames import call_path

FIRST: Final = 3  # executions of a place that take the measured time: caches warm up
BATCH: Final = 16  # executions that are looked at together
KEPT: Final = 8  # number of remembered low ends
# A place varies if a quarter of a batch takes more than `SPREAD` times its low end, and `SLACK`
# more: other work on the same core slows a constant block down by less.
SPREAD: Final = 3.0
SLACK: Final = 10_000  # ns
RARE: Final = 2.0  # times the charge from which on a block counts as disturbed


class BlockTimes:
    """The times of the blocks at one place of one rank."""

    __slots__ = ("seen", "batch", "ends", "low", "varies")

    def __init__(self) -> None:
        self.seen = 0
        self.batch: list[int] = []  # ns, ascending
        self.ends: list[int] = []  # low ends of the last batches (ns)
        self.low = 0  # their median
        self.varies = False

    def usual(self, elapsed: int) -> int:
        """The charge of a block with the measured time `elapsed` (ns)."""
        batch = self.batch
        insort(batch, elapsed)
        count = len(batch)
        if count == BATCH:
            low = batch[1]
            self.varies = batch[3 * BATCH // 4] > SPREAD * low + SLACK
            if self.ends and low > SPREAD * min(self.ends) + SLACK:
                self.ends.clear()  # the work of the program has grown
            self.ends.append(low)
            del self.ends[:-KEPT]
            from statistics import median

            self.low = round(median(self.ends))
            batch.clear()
        if self.seen < FIRST:
            self.seen += 1
            return elapsed
        if self.varies:
            return elapsed
        if self.ends:
            return self.low
        # The second lowest if there are many values, because the lowest is an exception.
        return batch[0] if count <= BATCH // 2 else batch[1]


class TimeTally:
    """The measured and the charged time of all blocks of a run (ns)."""

    def __init__(self) -> None:
        self.measured = 0
        self.charged = 0
        self.rare = 0  # measured, of blocks that took far longer than usual


class SteadyTimer:
    """Times the blocks of one rank, and charges their usual time.

    `write` is called with each charge if blocks are recorded. Blocks shorter than `threshold`
    seconds count as empty.
    """

    __slots__ = (
        "clock", "start", "resume", "_stop", "_factor", "_places", "_last", "_tally", "_pid",
        "_write", "_least", "_parts",
    )  # fmt: skip

    def __init__(
        self,
        clock: Any,
        factor: float,
        tally: TimeTally,
        pid: int,
        write: Callable[[str], Any] | None = None,
        threshold: float = 0.0,
    ) -> None:
        self.clock = clock
        self.start = clock.start
        self.resume = clock.start_inside
        self._stop = clock.stop
        self._factor = factor  # simulated seconds a nanosecond of this machine
        self._places: dict[int, BlockTimes] = {}
        self._last = 0  # path of the call before this block
        self._tally = tally
        self._pid = pid
        self._write = write
        self._least = threshold * 1e9  # ns
        self._parts = 0  # ns of the block that `part` has returned

    def stop(self) -> float:
        """The block ends; returns its seconds on the simulated core."""
        elapsed = self._stop() + self._parts
        if elapsed < self._least:
            elapsed = 0
        here = call_path()
        key = 3 * self._last + here
        self._last = here
        place = self._places.get(key)
        if place is None:
            place = self._places[key] = BlockTimes()
        charged = place.usual(elapsed)
        tally = self._tally
        tally.measured += elapsed
        tally.charged += charged
        if elapsed > RARE * charged + SLACK:
            tally.rare += elapsed
        if self._write is not None:
            self._write(f"{self._pid} {charged}\n")
        parts, self._parts = self._parts, 0
        return max(0, charged - parts) * self._factor

    def part(self) -> float | None:
        """The seconds of the block up to here; it goes on with `start`."""
        elapsed: int = self._stop()
        self._parts += elapsed
        return elapsed * self._factor
