"""Ctrl-C and signals that end a process: the first records the ranks' lines and ends the run."""

from __future__ import annotations

import contextlib
import signal
import threading
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pysmpi.runtime.simulation import Simulation

_SIGNALS = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]


class Interrupts:
    """A context manager that handles SIGINT, SIGTERM and SIGHUP while a simulation runs.

    `simulation` is set when it exists. After a signal, `report` says how the run ended and shows
    the positions of its ranks, and `status` is the exit status.
    """

    def __init__(self) -> None:
        self.simulation: Simulation | None = None
        self.report = "interrupted"
        self.status = 128 + signal.SIGINT
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                # The parent process may ignore them, as nohup does.
                if signal.getsignal(number) is not signal.SIG_IGN:
                    self._before[number] = signal.signal(number, self._interrupt)
        return self

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        # The second signal raises again in any code; the third ends the process.
        for other in self._before:
            signal.signal(other, _insist)
        self.status = 128 + number
        if number != signal.SIGINT:
            self.report = f"ended by {signal.Signals(number).name}"
        if self.simulation is not None:
            from pysmpi.runtime.reports.whereabouts import whereabouts

            # Ending the run is more important than the position of the ranks.
            with contextlib.suppress(Exception):
                self.report += f" {whereabouts(self.simulation, frame)}"
            self.simulation.interrupt()
        raise KeyboardInterrupt

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)


def _insist(number: int, frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_DFL)
    raise KeyboardInterrupt
