"""The parts of the wall time of a run: `pysmpi run --explain-speed`.

A meter is notified when another part of the simulation begins to work, and adds up the time of each
part. The time for reading the clock is measured at the start and subtracted.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from time import perf_counter
from typing import Any

from pysmpi import text
from pysmpi.kernel import engine
from pysmpi.kernel.meter import (
    KERNEL,
    LISTENERS,
    MPI,
    PARTS,
    PROGRAM,
    SOLVER,
    START,
    SWITCHES,
    Meter,
)
from pysmpi.mpi.base.ranks import Rank
from pysmpi.ranks.instruments import Instrument, InstrumentedRun

LARGE = 0.25  # share of the wall time from which on a part has an advice

ADVICE = {
    PROGRAM: "the program's own code: --sample or --once skips code that repeats itself, see "
    f"{text.manual('Shadow execution')}; imports of the program's modules, once for each rank, "
    "count here: --shared MODULE imports a module once",
    MPI: "MPI calls in Python: fewer and larger messages, buffers (Send) in place of objects "
    "(send), and collective operations in place of loops of messages",
    SWITCHES: "switches of ranks: several Isend and Irecv with one Waitall, or a collective "
    "operation, switch once for many messages",
    KERNEL: "messages and events: fewer messages; --sample skips passes of a loop with their "
    "messages",
    SOLVER: "fair sharing of links: --cfg network/crosstraffic:no (predictions change by up to "
    "5 %), or a model without contention (pysmpi models)",
    LISTENERS: "listeners: leave out --trace or --check",
    START: "start and end: several simulations in one process (pysmpi.run) start once",
}


class WallMeter(Meter, Instrument):
    """Adds up the wall time of each part (s)."""

    def __init__(self) -> None:
        self._seconds = [0.0] * len(PARTS)
        self._changes = [0] * len(PARTS)
        self._part = START
        self._begun = self._since = perf_counter()
        self._cost = self._calibrate()

    def _calibrate(self) -> float:
        """Seconds of one change."""
        count = 2000
        begun = perf_counter()
        for _ in range(count):
            self.enter(START)
        cost = (perf_counter() - begun) / count
        self._seconds = [0.0] * len(PARTS)
        self._changes = [0] * len(PARTS)
        return cost

    def enter(self, part: int) -> int:
        """Another part begins to work; return the one that ends."""
        now = perf_counter()
        before = self._part
        self._seconds[before] += now - self._since
        self._changes[before] += 1
        self._since = now
        self._part = part
        return before

    def shares(self) -> list[float]:
        """The share of each part in the wall time until now."""
        self.enter(self._part)
        parts = [
            max(0.0, seconds - changes * self._cost)
            for seconds, changes in zip(self._seconds, self._changes)
        ]
        total = sum(parts) or 1.0
        return [seconds / total for seconds in parts]

    def lines(self) -> list[str]:
        """The report: the shares, the largest first, and advice."""
        shares = self.shares()
        largest = sorted(range(len(PARTS)), key=lambda part: -shares[part])
        shown = [f"{PARTS[part]} {shares[part]:.0%}" for part in largest if shares[part] >= 0.005]
        wall = text.seconds(perf_counter() - self._begun)
        lines = [f"wall time {wall}: {', '.join(shown)}"]
        lines += [ADVICE[part] for part in largest[:2] if shares[part] >= LARGE]
        if not engine.__file__.endswith((".so", ".pyd")):
            lines.append("the kernel is not compiled: install pysmpi where there is a C compiler")
        return lines

    def attach(self, run: InstrumentedRun) -> None:
        """Meter a run. The listeners that are metered are those of later instruments."""
        engine = run.simulation.engine
        engine.meter = self
        engine.listeners.wrap = self._metered

    def _metered(self, method: Callable[..., Any]) -> Callable[..., object]:
        @wraps(method)
        def metered(*arguments: Any) -> object:
            before = self.enter(LISTENERS)
            try:
                return method(*arguments)
            finally:
                self.enter(before)

        return metered

    def timer_for(self, rank: Rank, timer: Any) -> MeteredTimer:
        """The timer of a rank, which also reports the work of its program."""
        return MeteredTimer(self, timer)


class MeteredTimer:
    """The timer of a rank, None if compute takes no time; reports each start and stop."""

    def __init__(self, meter: WallMeter, timer: Any) -> None:
        self._meter = meter
        self._timer = timer

    def start(self) -> None:
        """A block begins."""
        self._meter.enter(PROGRAM)
        if self._timer is not None:
            self._timer.start()

    def resume(self) -> None:
        """Work of the program inside a call begins."""
        self._meter.enter(PROGRAM)
        if self._timer is not None:
            self._timer.resume()

    def stop(self) -> float:
        """The block ends; returns its seconds on the simulated core."""
        seconds: float = 0.0 if self._timer is None else self._timer.stop()
        self._meter.enter(MPI)
        return seconds

    def part(self) -> float | None:
        """The seconds of the block up to here; None if no clock measures it."""
        return None if self._timer is None else self._timer.part()

    def __getattr__(self, name: str) -> object:
        return getattr(self._timer, name)
