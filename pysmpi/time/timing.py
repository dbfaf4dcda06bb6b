"""The time of a rank's own code between two calls that take part in the simulation.

A timing makes a timer for each rank. `start()` is called when the program continues. `stop()` is
called when it enters a call, and returns the seconds of this block of compute on the rank's
simulated core.

| mode | time of a block |
| --- | --- |
| `native` | the measured CPU time of the thread, times host speed / core speed |
| `steady` | the same, but the usual time if the same block has run before |
| `none` | no time |
| seconds | a constant time |
| file | the time of the same block in an earlier run, which recorded it in the file |

A core without a speed in the platform is as fast as this computer: compute is not scaled.

Native timing leaves out imports, garbage collection, its own overhead, and the extra time of code
that finds its caches cold after other ranks and the simulator have run (`coldness.py`). With all
modes except `native` and `steady`, a run is exactly repeatable, unless it waits for other processes
or `--sample auto` measures its functions.
"""

from __future__ import annotations

import gc
import math
import os
import re
from array import array
from collections.abc import Callable
from typing import Protocol, TextIO

from pysmpi.errors import UsageError
from pysmpi.platform.units import parse_time
from pysmpi.time.boundary import boundary_cost
from pysmpi.time.coldness import measured_coldness
from pysmpi.time.cpu_clock import CpuClock, CpuTimer
from pysmpi.time.figures import BlockFigures, SteadyFigures
from pysmpi.time.host_speed import host_speed
from pysmpi.time.recordings import (
    JobIdentity,
    check_job,
    left_over,
    read_recording,
    write_head,
)
from pysmpi.time.steady import SteadyTimer, TimeTally
from pysmpi.time.stopwatch import Stopwatch

MEASURED = ("native", "steady")  # modes with a clock; times differ between runs


class Timer(Protocol):
    """Times the blocks of one rank."""

    def start(self) -> None:
        """A block begins."""

    def resume(self) -> None:
        """Work of the program inside a call begins, such as pickling; it ends with `stop`."""

    def stop(self) -> float:
        """The block ends; returns its seconds on the simulated core."""

    def part(self) -> float | None:
        """The seconds of the block up to here, which goes on with `start`; `stop` gives the rest.

        It is None if no clock measures the block. Then a look at the rank at a moment of real time
        must not change the simulated time.
        """


class ComputeTiming(Protocol):
    """A mode of timing, for a whole run; a context manager."""

    stopwatch: Stopwatch

    def timer(self, pid: int, speed: float | None) -> Timer | None:
        """A timer for rank `pid` on a core of `speed` flop/s; None if blocks take no time.

        A core without a speed is as fast as the computer on which blocks were measured.
        """

    def __enter__(self) -> ComputeTiming: ...

    def __exit__(self, *exception: object) -> None: ...


class RecordingTimer:
    """Times blocks on the CPU clock and writes them down."""

    __slots__ = (
        "clock", "start", "resume", "_stop", "_least", "_factor", "_write", "_pid", "_parts",
    )  # fmt: skip

    def __init__(
        self,
        clock: CpuClock,
        factor: float,
        pid: int,
        write: Callable[[str], object],
        threshold: float = 0.0,
    ) -> None:
        self.clock = clock
        self.start = clock.start
        self.resume = clock.start_inside
        self._stop = clock.stop
        self._least = threshold * 1e9
        self._factor = factor
        self._pid = pid
        self._write = write
        self._parts = 0  # ns of the block that `part` has returned

    def stop(self) -> float:
        elapsed = self._stop() + self._parts
        if elapsed < self._least:
            elapsed = 0
        self._write(f"{self._pid} {elapsed}\n")
        elapsed -= self._parts
        self._parts = 0
        return elapsed * self._factor

    def part(self) -> float | None:
        elapsed = self._stop()
        self._parts += elapsed
        return elapsed * self._factor


class NativeTiming:
    """`native`: `speed` is this machine's (flop/s); blocks are recorded in file `record`.

    The speed is flop/s or an argument of `host_speed`. It is determined when a core with its own
    speed needs it. Blocks shorter than `threshold` seconds take no time.
    """

    def __init__(
        self, speed: float | str, record: str | None = None, threshold: float = 0.0
    ) -> None:
        self._choice = speed
        self._speed: float | None = None if speed == "auto" else host_speed(speed)
        self.threshold = threshold
        self.factors: set[float] = set()  # simulated seconds a second of this machine
        self.record = record
        self.job: JobIdentity | None = None  # written to the recording
        self.clock = CpuClock()
        self.clock.boundary = boundary_cost(self.clock)
        cold = measured_coldness()
        self.clock.cold_share, self.clock.cold_most = cold.share, cold.most
        self.stopwatch: Stopwatch = self.clock
        self._stream: TextIO | None = None
        self._timers: dict[float, CpuTimer] = {}

    @property
    def speed(self) -> float:
        """The speed of this machine (flop/s)."""
        if self._speed is None:
            self._speed = host_speed(self._choice)
        return self._speed

    @property
    def known_speed(self) -> float | None:
        """The speed of this machine (flop/s) if it was given or needed."""
        return self._speed

    def factor(self, speed: float | None) -> float:
        """Simulated seconds on a core of `speed` flop/s that a second of this machine is."""
        result = 1.0 if speed is None else self.speed / speed
        self.factors.add(result)
        return result

    def __enter__(self) -> NativeTiming:
        if self.record is not None:
            try:
                self._stream = open(self.record, "w")
            except OSError as error:
                raise UsageError(
                    f"{self.record}: cannot record compute there: {error.strerror}"
                ) from None
            write_head(self._stream.write, self.speed, self.job)
        gc.callbacks.append(self.clock.collecting)
        return self

    def __exit__(self, *exception: object) -> None:
        if self.clock.collecting in gc.callbacks:
            gc.callbacks.remove(self.clock.collecting)
        if self._stream is not None:
            try:
                self._stream.close()
            except OSError as error:
                raise UsageError(
                    f"--record-compute {self.record}: cannot be written: {error.strerror}"
                ) from None

    def timer(self, pid: int, speed: float | None) -> Timer:
        factor = self.factor(speed) * 1e-9
        if self._stream is not None:
            return RecordingTimer(self.clock, factor, pid, self._stream.write, self.threshold)
        timer = self._timers.get(factor)
        if timer is None:
            timer = self._timers[factor] = CpuTimer(self.clock, factor, self.threshold)
        return timer


class SteadyTiming(NativeTiming):
    """`steady`: repeated blocks take their usual time."""

    def __init__(
        self, speed: float | str, record: str | None = None, threshold: float = 0.0
    ) -> None:
        super().__init__(speed, record, threshold)
        self.tally = TimeTally()

    def report(self) -> SteadyFigures:
        """The measured, the charged and the rare seconds of blocks on this computer.

        `rare` is the time of blocks that took far longer than usual, and so were charged less.
        """
        tally = self.tally
        return {
            "measured_seconds": tally.measured * 1e-9,
            "charged_seconds": tally.charged * 1e-9,
            "rare_seconds": tally.rare * 1e-9,
        }

    def timer(self, pid: int, speed: float | None) -> Timer:
        write = None if self._stream is None else self._stream.write
        factor = self.factor(speed) * 1e-9
        return SteadyTimer(self.clock, factor, self.tally, pid, write, self.threshold)


class _Quiet:
    """A timing without a clock."""

    def __init__(self) -> None:
        self.stopwatch = Stopwatch()

    def __exit__(self, *exception: object) -> None:
        """Release nothing."""


class NoTiming(_Quiet):
    """`none`: compute takes no time."""

    def __enter__(self) -> NoTiming:
        return self

    def timer(self, pid: int, speed: float | None) -> None:
        return None


class ConstantTiming(_Quiet):
    """Every block takes `seconds` of simulated time."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds
        self.timers: list[ConstantTimer] = []

    def __enter__(self) -> ConstantTiming:
        return self

    def timer(self, pid: int, speed: float | None) -> Timer:
        timer = ConstantTimer(self.seconds)
        self.timers.append(timer)
        return timer

    def report(self) -> BlockFigures | None:
        """The numbers of blocks of the ranks."""
        counts = [timer.blocks for timer in self.timers]
        return {"fewest": min(counts), "most": max(counts)} if counts else None


class ConstantTimer:
    """Gives every block the same time, and work inside calls none; counts the blocks."""

    __slots__ = ("_seconds", "_inside", "blocks")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._inside = False
        self.blocks = 0

    def start(self) -> None:
        self._inside = False

    def resume(self) -> None:
        self._inside = True

    def stop(self) -> float:
        if self._inside:
            return 0.0
        self.blocks += 1
        return self._seconds

    def part(self) -> float | None:
        return None


class PlaybackTimer:
    """Gives the recorded blocks of one rank, in their order."""

    __slots__ = ("_blocks", "position", "_factor", "_name")

    def __init__(self, blocks: array[int], factor: float, name: str) -> None:
        self._blocks = blocks
        self.position = 0  # of the next block
        self._factor = factor
        self._name = name

    def start(self) -> None:
        """A block begins."""

    def resume(self) -> None:
        """A block inside a call begins."""

    def stop(self) -> float:
        position = self.position
        if position >= len(self._blocks):
            raise UsageError(
                f"{self._name}: expected more than {len(self._blocks)} blocks of compute: another "
                "program, input or number of ranks was recorded"
            )
        self.position = position + 1
        return self._blocks[position] * self._factor

    def part(self) -> float | None:
        return None


class PlaybackTiming(_Quiet):
    """Blocks take the times that an earlier run recorded in `file`."""

    def __init__(self, file: str) -> None:
        super().__init__()
        self.file = file
        self.speed, self.job, self._blocks = read_recording(file)
        self._timers: dict[int, PlaybackTimer] = {}
        self.factors: set[float] = set()  # simulated seconds a recorded second

    def __enter__(self) -> PlaybackTiming:
        return self

    @property
    def known_speed(self) -> float:
        """The speed of the machine that was recorded (flop/s)."""
        return self.speed

    def timer(self, pid: int, speed: float | None) -> Timer:
        blocks = self._blocks.get(pid, array("q"))
        factor = 1.0 if speed is None else self.speed / speed
        self.factors.add(factor)
        timer = PlaybackTimer(blocks, factor * 1e-9, f"{self.file}: rank {pid}")
        self._timers[pid] = timer
        return timer

    def check(self, job: JobIdentity) -> list[str]:
        """Remarks on the recording as that of a job; `UsageError` if it is of another one."""
        return check_job(self.file, self.job, job)

    def left_over(self) -> str | None:
        """A remark on blocks that the run has not used, if there are any."""
        used = {pid: timer.position for pid, timer in self._timers.items()}
        return left_over(self.file, self._blocks, used)


_DURATION = r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*[a-z]*"


def find_timing(
    compute: str | float = "native",
    speed: str | float = "auto",
    record: str | None = None,
    threshold: float = 0.0,
) -> ComputeTiming:
    """The timing that `--compute` names: native, steady, none, seconds (`1e-6`, `10us`), a file.

    `speed` is the value of `--host-speed`; `record` is a file in which to record measured blocks.
    Measured blocks shorter than `threshold` seconds take no time. Raises `UsageError`.
    """
    if record is not None and compute not in MEASURED:
        raise UsageError(f"--compute {compute}: only native or steady compute can be recorded")
    if compute == "native":
        return NativeTiming(speed, record, threshold)
    if compute == "steady":
        return SteadyTiming(speed, record, threshold)
    if compute == "none":
        return NoTiming()
    text = str(compute)
    if not os.path.exists(text) and re.fullmatch(_DURATION, text.strip()):
        return ConstantTiming(_seconds(text))
    if isinstance(compute, float | int):
        return ConstantTiming(_seconds(text))
    if not os.path.isfile(text):
        raise UsageError(
            f"--compute {text}: expected native, steady, none, seconds or a recording, got no such "
            "file"
        )
    return PlaybackTiming(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        try:
            seconds = parse_time(text)
        except UsageError as error:
            raise UsageError(f"--compute: {error}") from None
    if not (math.isfinite(seconds) and seconds >= 0.0):
        raise UsageError(f"--compute {text}: expected seconds that are not negative")
    return seconds
