"""Debugging a job: its stops, and further runs to go back."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from pysmpi.debugging.breakpoints import Breakpoint
from pysmpi.debugging.prompt import Prompt
from pysmpi.isolation.program_errors import format_error, strip
from pysmpi.mpi.base.ranks import Rank
from pysmpi.mpi.calls import MpiCall
from pysmpi.python.frames import debug, program_frame, suspended_frame
from pysmpi.ranks.instruments import Instrument, InstrumentedRun
from pysmpi.ranks.simulation import Simulation
from pysmpi.reports.deadlock import find_deadlock


class DebugSession(Instrument):
    """Stops a job at breakpoints and, with `failures`, where a rank fails or a deadlock is found.

    MPI calls are numbered over all ranks, in the order in which they begin. `target` is the number
    of the call at which a run that goes back stops. `ended` is true if the user has ended the run,
    and `again` if the job has to run again.
    """

    def __init__(self, breakpoints: Sequence[Breakpoint], failures: bool) -> None:
        self.breakpoints = list(breakpoints)
        self.failures = failures
        self.number = 0
        self.target: int | None = None
        self.again = False
        self.simulation: Any = None
        self._next: Rank | None = None
        self._any = False
        self.ended = False

    def attach(self, run: InstrumentedRun) -> None:
        """Begin to debug a run."""
        debug()
        self.simulation = run.simulation
        self.number = 0
        self.again = self._any = self.ended = False
        self._next = None
        for breakpoint_ in self.breakpoints:
            breakpoint_.seen = 0

    # Places to stop

    def call_begun(self, call: MpiCall) -> None:
        """An MPI call begins."""
        self.number += 1
        rank = call.rank
        stop = self._any or self._next is rank
        for breakpoint_ in self.breakpoints:
            stop = breakpoint_.hit(call) or stop
        if self.target is not None:
            stop = self.number == self.target
            if stop:
                self.target = None
        if not stop or self.ended:
            return
        frame = program_frame()
        self._say(f"call {self.number}: rank {rank.pid} calls {call.name}")
        Prompt(self.simulation, rank, self._go_on).ask(frame, None)

    def rank_failed(self, rank: Rank, error: BaseException) -> None:
        """A rank ends with an exception."""
        if not self.failures or self.ended or self.target is not None:
            return
        self._say(f"{format_error(error)}rank {rank.pid} has failed".rstrip())
        self.number += 1  # the failure is after the last call
        Prompt(self.simulation, rank, self._go_on).ask(None, strip(error.__traceback__))

    def deadlock_reached(self, simulation: Simulation) -> bool | None:
        """No rank can go on."""
        if self.failures:
            self._show_deadlock(simulation)
        return False if self.ended else None

    def _show_deadlock(self, simulation: Simulation) -> None:
        report = find_deadlock(simulation)
        self._say(str(report))
        waiting = [rank for rank in simulation.waiting() if rank.fiber is not None]
        odd = [pid for group in report.groups if group.odd for pid in group.pids]
        rank = next((one for one in waiting if one.pid in odd), waiting[0] if waiting else None)
        if rank is None:
            return
        self.number += 1
        prompt = Prompt(simulation, None, self._go_on)
        prompt.shown = rank
        prompt.ask(suspended_frame(rank.fiber), None)

    # Going on

    def _go_on(self, prompt: Prompt) -> None:
        rank = prompt.here
        self._any = prompt.wish == "message all"
        self._next = rank if prompt.wish == "message" else None
        if prompt.wish == "back":
            self.target = max(1, self.number - prompt.back)
            self.again = True
            self._say(f"back to call {self.target}: running the program again")
        if prompt.wish in ("back", "quit"):
            self.ended = True
            self.simulation.engine.stop()
            if rank is not None and prompt.origin[0] is not None:
                rank.abort(1)

    def _say(self, what: str) -> None:
        """Print on the terminal, even if the rank has replaced its streams."""
        stream = sys.__stdout__ or sys.stdout
        with suppress(OSError, ValueError):
            sys.stdout.flush()
            stream.write(f"{what}{os.linesep}")
            stream.flush()
