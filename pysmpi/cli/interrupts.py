"""Signals that end a run: the first one notes the ranks' lines and ends the simulation."""

from __future__ import annotations

import _thread
import contextlib
import os
import select
import signal
from types import FrameType, TracebackType
from typing import Any

from pysmpi.own_process import interruption
from pysmpi.ranks.instruments import Instrument, InstrumentedRun
from pysmpi.ranks.simulation import Simulation

TIMED_OUT = 124  # the exit status of a run that takes too long, as that of timeout(1)
# Ranks get other functions of these names.
_close, _kill, _getpid = os.close, os.kill, os.getpid
_poll: Any = getattr(select, "poll", None)


class Interrupts(Instrument):
    """A context manager that ends a simulation at SIGINT, SIGTERM and SIGHUP.

    `command` is the command of the run, for reports. After a signal, `report` says how the run
    ended and shows the positions of its ranks, and `status` is the exit status. After `seconds` of
    wall time the run ends in the same way, with the status 124.
    """

    def __init__(self, seconds: float | None = None) -> None:
        self.seconds = seconds
        self._late = False
        self._alarm = (-1, -1)
        self.simulation: Simulation | None = None
        self.command = ""
        self.report = "interrupted"
        self.status = interruption.status_of(signal.SIGINT)
        self._context = contextlib.ExitStack()

    def __enter__(self) -> Interrupts:
        self._context.enter_context(interruption.ending_by(self._interrupt))
        if self.seconds is not None:
            self._alarm = os.pipe()
            _thread.start_new_thread(self._wait, (self.seconds, self._alarm[0]))
        return self

    def attach(self, run: InstrumentedRun) -> None:
        """The simulation can be ended."""
        self.simulation = run.simulation
        self.simulation.command = self.command
        self.simulation.interrupted = False

    def _wait(self, seconds: float, end: int) -> None:
        """End the run after some seconds, unless the other end of a pipe is closed before."""
        poll = _poll()
        poll.register(end, select.POLLIN)
        if not poll.poll(seconds * 1000.0):
            self._late = True
            _kill(_getpid(), signal.SIGTERM)
            poll.poll()  # until the run has ended
        _close(end)

    def how(self, number: int) -> tuple[str, int]:
        """How a signal ends the run, and the exit status."""
        if self._late:
            return f"ended after {self.seconds:g} s of wall time (--timeout)", TIMED_OUT
        return interruption.described(number), interruption.status_of(number)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        simulation = self.simulation
        if simulation is None or not simulation.under_way:
            if self._late:
                interruption.leave(number, *self.how(number))
            interruption.leave(number)
        self.report, self.status = self.how(number)
        from pysmpi.reports.whereabouts import whereabouts

        # Ending the run is more important than the position of the ranks.
        with contextlib.suppress(Exception):
            self.report += f" {whereabouts(simulation, frame)}"
        simulation.interrupt()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._alarm[1] >= 0:
            _close(self._alarm[1])
        self._context.close()
