"""Ctrl-C and signals that end a process: the first records the ranks' lines and ends the run."""

from __future__ import annotations

import _thread
import contextlib
import os
import select
import signal
import threading
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pysmpi.runtime.simulation import Simulation

_SIGNALS = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]


TIMED_OUT = 124  # the exit status of a run that takes too long, as that of timeout(1)
# Ranks get other functions of these names.
_close, _kill, _getpid = os.close, os.kill, os.getpid
_poll: Any = getattr(select, "poll", None)


class Interrupts:
    """A context manager that handles SIGINT, SIGTERM and SIGHUP while a simulation runs.

    `simulation` is set when it exists. After a signal, `report` says how the run ended and shows
    the positions of its ranks, and `status` is the exit status. After `seconds` of wall time the
    run ends in the same way, with the status 124.
    """

    def __init__(self, seconds: float | None = None) -> None:
        self.seconds = seconds
        self._late = False
        self._alarm = (-1, -1)
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
        if self.seconds is not None:
            self._alarm = os.pipe()
            _thread.start_new_thread(self._wait, (self.seconds, self._alarm[0]))
        return self

    def _wait(self, seconds: float, end: int) -> None:
        """End the run after some seconds, unless the other end of a pipe is closed before."""
        poll = _poll()
        poll.register(end, select.POLLIN)
        if not poll.poll(seconds * 1000.0):
            self._late = True
            _kill(_getpid(), signal.SIGTERM)
            poll.poll()  # until the run has ended
        _close(end)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        # The second signal raises again in any code; the third ends the process.
        for other in self._before:
            signal.signal(other, _insist)
        self.status = 128 + number
        if self._late:
            self.status = TIMED_OUT
            self.report = f"ended after {self.seconds:g} s of wall time (--timeout)"
        elif number != signal.SIGINT:
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
        if self._alarm[1] >= 0:
            _close(self._alarm[1])
        for number, handler in self._before.items():
            signal.signal(number, handler)


def _insist(number: int, frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_DFL)
    raise KeyboardInterrupt
