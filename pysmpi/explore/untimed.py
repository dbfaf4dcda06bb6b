"""Runs without a clock: no event takes time, and a control decides the order of events."""

from __future__ import annotations

from pysmpi.explore import fresh_arrays
from pysmpi.kernel.choices import Control
from pysmpi.kernel.engine import Engine
from pysmpi.mpi.base.ranks import FreeTransport, Rank
from pysmpi.ranks.instruments import Instrument, InstrumentedRun
from pysmpi.ranks.simulation import Simulation
from pysmpi.time.timing import NoTiming

MOST_POLLS = 20_000  # failed tests in a row, of all ranks, that are a livelock without a clock


class Untimed(Instrument):
    """Turns the clock of a run off, and lets a control decide."""

    def control(self, engine: Engine) -> Control:
        """A control of the choices of a run."""
        raise NotImplementedError

    def prepare(self, run: InstrumentedRun) -> None:
        """Let messages and compute take no time."""
        run.time_with(NoTiming())
        run.transport = FreeTransport()
        run.own_orders = True

    def attach(self, run: InstrumentedRun) -> None:
        """Let the control decide."""
        simulation = run.simulation
        simulation.engine.decide_by(self.control(simulation.engine))
        simulation.watch.most = min(simulation.watch.most, MOST_POLLS)

    def thread_begun(self, rank: Rank) -> None:
        """Let new arrays begin with zeros: what memory held before is not of this order."""
        fresh_arrays.clear()

    def deadlock_reached(self, simulation: Simulation) -> None:
        """No rank can go on: the report has no command, since the schedule is part of it."""
        simulation.command = ""
