"""Guides of runs: they let a strategy make the choices of a job, and tell how to repeat it."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable
from typing import Protocol

from pysmpi.errors import UsageError
from pysmpi.explore.database import Database
from pysmpi.explore.schedule import ChoiceRecord, Decisions, Replayed
from pysmpi.explore.strategies.noise import Noise
from pysmpi.explore.strategy import TIME, Strategy, make_strategy
from pysmpi.job.job import Job
from pysmpi.job.options import Options
from pysmpi.kernel.choices import Alternative, Control
from pysmpi.kernel.engine import Engine
from pysmpi.reports.result import Result

MOST_POLLS = 20_000  # failed tests in a row, of all ranks, that are a livelock without a clock


class Guide(Protocol):
    """Decides the choices of jobs, one after the other."""

    def attach(self, job: Job) -> None:
        """Decide the choices of a job that has not begun."""

    def conclude(self, result: Result) -> None:
        """The job is over: complete its result."""


class StrategyGuide:
    """Lets a strategy decide; `record` holds its decisions in the last run."""

    def __init__(self, strategy: Strategy) -> None:
        self.strategy = strategy
        self.record = ChoiceRecord(strategy)
        self.run = 0
        self.prepare: Callable[[Control], object] | None = None
        self.difference: str | None = None
        self._job: Job | None = None

    def attach(self, job: Job) -> None:
        """Turn the clock off."""
        self.record = ChoiceRecord(self.strategy)
        self.difference = None
        self._job = job
        if isinstance(self.strategy, Replayed):
            text = str(self.strategy.schedule)
            self.record.expected = Database().names(text) or ()
            self.record.differs = self._differs
        self.strategy.begin(self.run, job.options.nprocs)
        self.run += 1
        job.untimed(self._control, MOST_POLLS)

    def _control(self, engine: Engine) -> Control:
        control = Control(engine, self.record.pick)
        control.begin()
        if self.prepare is not None:
            self.prepare(control)
        return control

    def _differs(self, number: int, wanted: str, found: Alternative) -> None:
        """The first decision that is not that of the recorded run."""
        assert self._job is not None
        rank = self._job.simulation.universe.ranks[found.pid]
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

    def conclude(self, result: Result) -> None:
        """Note the schedule; if the run failed, also how to repeat it."""
        result.schedule = str(self.record.schedule())
        result.schedule_note = self.strategy.end(self.record.pids) or None
        if isinstance(self.strategy, Replayed):
            result.schedule_note = self._diverged(self.strategy)
        if result.exit_status:
            result.repeat = repeat(result, ["--replay-schedule", result.schedule])


class NoiseGuide:
    """Perturbs latencies and compute."""

    def __init__(self, noise: Noise, text: str) -> None:
        self.noise = noise
        self.text = text
        self.run = 0

    def attach(self, job: Job) -> None:
        """Perturb the machine of a job."""
        self.noise.begin(self.run, job.options.nprocs)
        self.run += 1
        job.perturbed(self.noise.transport, self.noise.timing())

    def conclude(self, result: Result) -> None:
        """If the run failed, say how to repeat it."""
        result.schedule = f"{self.text}, seed {result.seed}"
        if result.exit_status:
            result.repeat = repeat(result, ["--schedule", self.text])


def guide_of(options: Options) -> Guide | None:
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
