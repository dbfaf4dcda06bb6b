"""The progress line of a long run on a terminal."""

from __future__ import annotations

import io
import os
import sys
from _thread import LockType, allocate_lock, get_native_id, start_new_thread
from time import perf_counter
from typing import TYPE_CHECKING

from pysmpi import text
from pysmpi.kernel.engine import Engine
from pysmpi.ranks.instruments import Instrument, InstrumentedRun
from pysmpi.ranks.simulation import Simulation

if TYPE_CHECKING:
    from pysmpi.isolation.kinds.rank_output import RankOutput

FIRST = 1.0  # seconds of silence before the first line
AGAIN = 0.25  # seconds between lines
END = 5.0  # seconds for the thread to end; a terminal that is stopped holds it longer


class Screen(io.TextIOWrapper):
    """Standard output on a terminal; hides the progress line while it prints."""

    progress: Progress
    fresh = True  # whether the cursor is at the start of a line

    def write(self, text: str, /) -> int:
        drawing = self.progress.drawing
        # In the child of a fork, nobody releases a lock that the other thread of the parent has
        # taken.
        taken = drawing.acquire(timeout=AGAIN)
        try:
            if self.progress.shown:
                self.progress.clear()
            if text:
                self.fresh = text.endswith("\n")
            return super().write(text)
        finally:
            if taken:
                drawing.release()


class OutputOfRanks(Instrument):
    """Lets the output of ranks follow their switches; there is no line then."""

    def __init__(self, output: RankOutput) -> None:
        self.output = output

    def ranks_ready(self, simulation: Simulation) -> None:
        """Follow the switches."""
        exchange = simulation.door.exchange
        assert exchange is not None
        self.output.attach(exchange)


class Progress(Instrument):
    """Shows the clock of a simulation, between events and from a thread of its own.

    The engine notifies it between events only, and a program may compute for long; the thread does
    not run while compiled code computes. `close` takes the line away for good.
    """

    simulation: Simulation
    engine: Engine

    def __init__(self) -> None:
        self._attached = False

    def attach(self, run: InstrumentedRun) -> None:
        """Begin to show the clock."""
        self._attached = True
        self.simulation = run.simulation
        self.engine = run.simulation.engine
        self.begun = perf_counter()
        self.due = self.begun + FIRST
        self.shown = False
        self.drawing: LockType = allocate_lock()  # held while the terminal is written to
        self._watched = allocate_lock()  # held by the thread
        self._over = False
        self._thread = 0
        self._stdout = sys.stdout
        self._screen: Screen | None = None
        if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.isatty():
            out = sys.stdout
            out.flush()
            screen = Screen(
                out.buffer, out.encoding, out.errors, None, out.line_buffering, out.write_through
            )
            screen.progress = self
            self._screen = sys.stdout = screen
        self._watched.acquire()
        start_new_thread(self._watch, ())
        # Python warns of a fork in a process with several threads.
        os.register_at_fork(before=self._end_watch)

    def ticked(self) -> None:
        """Show the line if it is due."""
        now = perf_counter()
        if now < self.due or not self.drawing.acquire(False):
            return
        try:
            stream = sys.__stderr__
            if stream is None or (self._screen is not None and not self._screen.fresh):
                return
            self.due = now + AGAIN
            self.shown = True
            stream.write(f"\r\x1b[K{self.line(now - self.begun)}\r")
            stream.flush()
        finally:
            self.drawing.release()

    def _watch(self) -> None:
        self._thread = get_native_id()
        pause = allocate_lock()
        pause.acquire()
        try:
            while not self._over:
                pause.acquire(timeout=AGAIN / 4)
                if not self._over:
                    self.ticked()
        finally:
            self._watched.release()

    def _end_watch(self) -> None:
        if not self._over:
            self._over = True
            if not self._watched.acquire(timeout=END):
                return
            # The thread exists a moment longer than it holds the lock, and is counted.
            task = f"/proc/self/task/{self._thread}"
            limit = perf_counter() + END
            while os.path.exists(task) and perf_counter() < limit:
                self._watched.acquire(timeout=0.001)

    def line(self, wall: float) -> str:
        """The text of the line."""
        events = self.engine.events
        return (
            f"pysmpi: t={text.seconds(self.engine.now)} simulated, "
            f"{text.count(self.simulation.running, 'rank')} running, "
            f"{text.count(events, 'event')}, {events / max(wall, 1e-9):,.0f} a second"
        )

    def clear(self) -> None:
        """Clear the line until it is due again."""
        if self.shown and sys.__stderr__ is not None:
            sys.__stderr__.write("\r\x1b[K")
            sys.__stderr__.flush()
        self.shown = False

    def close(self, error: BaseException | None = None) -> None:
        """Clear the line and restore standard output."""
        if not self._attached:
            return
        self._attached = False
        self._end_watch()
        self.clear()
        if self._screen is not None:
            self._screen.flush()
            self._screen.detach()
            self._screen = None
            sys.stdout = self._stdout
