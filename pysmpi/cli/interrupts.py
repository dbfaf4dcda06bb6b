"""Ctrl-C: the first one notes where the ranks are and ends the run."""

from __future__ import annotations

import contextlib
import signal
import threading
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pysmpi.runtime.simulation import Simulation


class Interrupts:
    """A context manager that handles SIGINT while a simulation runs.

    `simulation` is set once there is one; `report` holds where its ranks were.
    """

    def __init__(self) -> None:
        self.simulation: Simulation | None = None
        self.report = ""
        self._before: Any = None

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._interrupt)
        return self

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        # Whoever presses again means it, whatever this is doing.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if self.simulation is not None:
            self.simulation.interrupted = True
            from pysmpi.runtime.whereabouts import whereabouts

            # Ending the run matters more than knowing where it was.
            with contextlib.suppress(Exception):
                self.report = whereabouts(self.simulation, frame)
        raise KeyboardInterrupt

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
