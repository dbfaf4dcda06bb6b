"""Guides of runs: they let a strategy make the choices of a job, and tell how to repeat it."""

from __future__ import annotations

import os
import shlex
import sys

from pysmpi.errors import UsageError
from pysmpi.explore.database import Database
from pysmpi.explore.schedule import ChoiceRecord, Decisions, Replayed
from pysmpi.explore.strategies.noise import Noise
from pysmpi.explore.strategy import TIME, Strategy, make_strategy
from pysmpi.explore.untimed import Untimed
from pysmpi.job.options import Options
from pysmpi.kernel.choices import Alternative, Control
from pysmpi.kernel.engine import Engine
from pysmpi.ranks.instruments import Instrument, InstrumentedRun
from pysmpi.ranks.simulation import Simulation
from pysmpi.reports.result import Result


class StrategyGuide(Untimed):
    """Lets a strategy decide; `record` holds its decisions in the last run."""

    def __init__(self, strategy: Strategy) -> None:
        self.strategy = strategy
        self.record = ChoiceRecord(strategy)
        self.number = 0  # of the next run
        self.difference: str | None = None
        self._simulation: Simulation | None = None

    def prepare(self, run: InstrumentedRun) -> None:
        """Turn the clock off, and begin to record."""
        self.record = ChoiceRecord(self.strategy)
        self.difference = None
        if isinstance(self.strategy, Replayed):
            text = str(self.strategy.schedule)
            self.record.expected = Database().names(text) or ()
            self.record.differs = self._differs
        self.strategy.begin(self.number, run.options.nprocs)
        self.number += 1
        super().prepare(run)

    def attach(self, run: InstrumentedRun) -> None:
        """Let the strategy decide."""
        self._simulation = run.simulation
        super().attach(run)

    def control(self, engine: Engine) -> Control:
        """A control that asks the strategy."""
        control = Control(engine, self.record.pick)
        control.begin()
        return control

    def _differs(self, number: int, wanted: str, found: Alternative) -> None:
        """The first decision that is not that of the recorded run."""
        assert self._simulation is not None
        rank = self._simulation.universe.ranks[found.pid]
        call = rank.call
        site = None if call is None else call.site
        where = "" if site is None else f" at {site}"
        self.difference = (
            f"decision {number} differs: expected {wanted}, got {found.name}; rank "
            f"{found.pid}{where}"
        )

    def _diverged(self, strategy: Replayed) -> str | None:
        """The reason why a replay is not the recorded run; None if it is."""
        what = self.difference
        if what is None and strategy.impossible is not None:
            number, wanted, count = strategy.impossible
            what = f"step {number} has {count} options, expected option {wanted}"
        checksum = strategy.schedule.checksum
        if what is None and checksum and checksum != self.record.checksum():
            what = "the names of its decisions differ"
        if what is None:
            return None
        hashes = sys.flags.hash_randomization and os.environ.get("PYTHONHASHSEED", "random")
        order = (
            "the order of sets, because PYTHONHASHSEED is not set, " if hashes == "random" else ""
        )
        return (
            f"this is not the recorded run: {what}. The program, its input or pysmpi has changed, "
            f"or the program depends on {order}wall time, files, or threads outside of pysmpi"
        )

    def finish(self, result: Result) -> None:
        """Note the schedule; if the run failed, also how to repeat it."""
        result.schedule = str(self.record.schedule())
        result.schedule_note = self.strategy.end(self.record.pids) or None
        if isinstance(self.strategy, Replayed):
            result.schedule_note = self._diverged(self.strategy)
        if result.exit_status:
            result.repeat = repeat(result, ["--replay-schedule", result.schedule])


class NoiseGuide(Instrument):
    """Perturbs latencies and compute."""

    def __init__(self, noise: Noise, text: str) -> None:
        self.noise = noise
        self.text = text

    def prepare(self, run: InstrumentedRun) -> None:
        """Perturb the machine of a run."""
        self.noise.begin(0, run.options.nprocs)
        run.time_with(self.noise.timing())
        run.transport = self.noise.transport(run.machine_transport())

    def deadlock_reached(self, simulation: Simulation) -> None:
        """No rank can go on: the report has no command, since the noise is part of it."""
        simulation.command = ""

    def finish(self, result: Result) -> None:
        """If the run failed, say how to repeat it."""
        result.schedule = f"{self.text}, seed {result.seed}"
        if result.exit_status:
            result.repeat = repeat(result, ["--schedule", self.text])


def guide_of(options: Options) -> Instrument | None:
    """The guide that the options of a run ask for; None if the clock decides."""
    if options.replay_schedule is not None:
        if options.schedule != TIME:
            raise UsageError(
                "--replay-schedule: expected no --schedule: the schedule that is replayed decides"
            )
        return StrategyGuide(Replayed(Decisions.parse(options.replay_schedule)))
    if options.schedule == TIME:
        return None
    strategy = make_strategy(options.schedule, options.seed)
    if isinstance(strategy, Noise):
        return NoiseGuide(strategy, options.schedule)
    return StrategyGuide(strategy)


def repeat(result: Result, words: list[str]) -> str:
    """The command that repeats a run with other words for its schedule."""
    command = result.command
    if command is None:
        name = words[0].removeprefix("--").replace("-", "_")
        return f"pysmpi.run(..., nprocs={result.nprocs}, {name}={words[1]!r})"
    kept = []
    given = shlex.split(command)
    skip = False
    for i, word in enumerate(given):
        name = word.partition("=")[0]
        if skip:
            skip = False
        elif i > 1 and name in ("--schedule", "--replay-schedule"):
            skip = "=" not in word
        else:
            kept.append(word)
    return shlex.join([*kept[:2], *words, *kept[2:]])
