"""The progress line of a long run on a terminal."""

from __future__ import annotations

import io
import sys
from time import perf_counter
from typing import TYPE_CHECKING

from pysmpi import text

if TYPE_CHECKING:
    from pysmpi.runtime.simulation import Simulation

FIRST = 1.0  # seconds of silence before the first line
AGAIN = 0.25  # seconds between lines


class Screen(io.TextIOWrapper):
    """Standard output on a terminal; hides the progress line while it prints."""

    progress: Progress
    fresh = True  # whether the cursor is at the start of a line

    def write(self, text: str, /) -> int:
        if self.progress.shown:
            self.progress.clear()
        if text:
            self.fresh = text.endswith("\n")
        return super().write(text)


class Progress:
    """Shows the clock of a simulation; called from the engine's `tick`.

    `close` takes the line away for good.
    """

    def __init__(self, simulation: Simulation) -> None:
        self.engine = simulation.engine
        self.simulation = simulation
        self.begun = perf_counter()
        self.due = self.begun + FIRST
        self.shown = False
        self.engine.tick = self.tick
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

    def tick(self) -> None:
        """Show the line if it is due."""
        now = perf_counter()
        if now < self.due or (self._screen is not None and not self._screen.fresh):
            return
        self.due = now + AGAIN
        self.shown = True
        stream = sys.__stderr__
        if stream is not None:
            stream.write(f"\r\x1b[K{self.line(now - self.begun)}\r")
            stream.flush()

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

    def close(self) -> None:
        """Clear the line and restore standard output."""
        self.clear()
        self.engine.tick = None
        if self._screen is not None:
            self._screen.flush()
            self._screen.detach()
            self._screen = None
            sys.stdout = self._stdout
