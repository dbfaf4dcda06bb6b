"""Loops without calls: other ranks continue while a rank spins.

A timer of the operating system looks at the running rank at intervals of processor time. If it has
made no call for some of them, and its code is a poll (see `loops.py`), the rank waits until the
poll would end: another rank has stored into the memory that it reads. The processor time of the
poll is no compute. Otherwise the compute since the last call passes, so that the events up to then
happen; the time of a long computation stays the same.

If no clock measures compute, a run repeats exactly, so the looks of real time must not change it:
no time passes in a loop of unknown form, unless it reads a clock. Loops that read clocks are looked
at after a number of readings (`Rank.poll`) instead.
"""

from __future__ import annotations

import threading
from _thread import get_ident
from types import FrameType
from typing import TYPE_CHECKING, Any

from greenlet import getcurrent

from pysmpi.mpi.base.ranks import Fiber, Rank, fiber_of
from pysmpi.python.frames import is_library, is_ours, program_frame, variables_of
from pysmpi.time import alarms
from pysmpi.waiting.outside.peers import PeerSide, other_children
from pysmpi.waiting.outside.reactor import reactor
from pysmpi.waiting.progress.loops import Poll, poll_at

if TYPE_CHECKING:
    from pysmpi.ranks.simulation import Simulation

LOOK = 0.05  # (s) of processor time between two looks
TURNS = 2  # looks without a call of the rank


class Spins:
    """Looks at the rank that is running; a context manager."""

    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation
        self._mark: object = None
        self._looks = 0

    def __enter__(self) -> Spins:
        main: Any = threading._main_thread  # type: ignore[attr-defined]
        if get_ident() == main.ident:
            alarms.watch(self._look, LOOK)
        self.simulation.universe.on_readings = self._read
        return self

    def __exit__(self, *exception: object) -> None:
        alarms.watch(None)
        self.simulation.universe.on_readings = None

    def _look(self, frame: FrameType) -> None:
        """A little processor time has passed."""
        fiber = fiber_of(getcurrent())
        engine, universe = self.simulation.engine, self.simulation.universe
        mark = (
            fiber, engine.now, engine.events, engine.order, universe.beats, universe.readings
        )  # fmt: skip
        if mark != self._mark:
            self._mark, self._looks = mark, 0
            return
        self._looks += 1
        if self._looks < TURNS or not isinstance(fiber, Fiber):
            return
        self._judge(fiber.rank, frame, False)

    def _read(self, rank: Rank) -> None:
        """The running rank has read clocks many times, and nothing else has happened."""
        frame = program_frame()
        if frame is not None:
            self._judge(rank, frame, True)

    def _judge(self, rank: Rank, frame: FrameType, reads: bool) -> None:
        """Let others go on if the code of a rank may wait for them.

        `reads` says that it has read clocks many times.
        """
        engine, program = self.simulation.engine, rank.program
        file = frame.f_code.co_filename
        if (
            type(rank) is not Rank
            or rank.in_call
            or program is None
            or program.importing
            or engine.stopped
            or engine.controlled
            or is_ours(file)
            or is_library(file)
        ):
            return
        line: int | None = frame.f_lineno  # None in code of the interpreter's own
        poll = None if line is None else poll_at(file, line)
        if poll is None:
            self._pass(rank, reads)
            return
        self._mark = None
        if poll.files:
            self._look_for_files(rank)
        else:
            self._wait_for_memory(rank, poll, frame, reads)

    def _pass(self, rank: Rank, reads: bool) -> None:
        """Let the measured compute since the last call pass, and the time of readings of clocks."""
        seconds: float | None = None if rank.timer is None else rank.timer.part()
        if reads or seconds is not None:
            self._mark = None
            rank.pass_compute(seconds or 0.0)

    def _wait_for_memory(self, rank: Rank, poll: Poll, frame: FrameType, reads: bool) -> None:
        """Wait until the tests of a poll have other results."""
        current = reactor()
        space, variables = variables_of(frame)
        try:
            before = poll.answers(space, variables)
        except Exception:  # of the program's objects: let the program have it
            current = None
        if current is None:
            self._pass(rank, reads)
            return

        def look() -> bool:
            try:
                return poll.answers(space, variables) != before
            except Exception:
                return True

        if rank.timer is not None:
            rank.timer.start()
        spinning = self.simulation.spinning
        fiber = fiber_of(getcurrent())
        spinning.add(fiber)
        try:
            # A process that the rank has started may share the memory.
            side = PeerSide.OUTSIDE if other_children() else PeerSide.INSIDE
            current.wait(look=look, side=side)
        finally:
            spinning.discard(fiber)

    def _look_for_files(self, rank: Rank) -> None:
        """Let time pass up to the next event, or real time if there is none."""
        engine = self.simulation.engine
        if rank.timer is not None:
            rank.timer.start()
        if engine.queue.empty():
            current = reactor()
            if current is not None:
                current.missed((), PeerSide.OUTSIDE)
            return
        rank.sleep(max(0.0, engine.queue.next() - engine.now))
