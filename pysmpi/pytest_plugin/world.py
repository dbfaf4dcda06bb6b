"""A world of ranks that live from test to test, each with a session of pytest.

The simulation runs in a greenlet of its own. While ranks wait for the next test, nothing can
happen in the simulation, and it gives the control back to pytest's greenlet. If some ranks wait for
the next test while others wait for messages, the test is stuck: the latter get an exception.
"""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, NamedTuple

import pytest
from _pytest.mark.structures import MARK_GEN
from greenlet import getcurrent, greenlet

from pysmpi import text
from pysmpi.api import run_job
from pysmpi.debugging.prompt import Prompt
from pysmpi.errors import PysmpiError, UsageError
from pysmpi.isolation.loading.loader import RankProgram, install_main
from pysmpi.job.job import Job
from pysmpi.job.options import FIELDS, Options, check
from pysmpi.kernel.requests import KernelRequest, Receive
from pysmpi.mpi.base import ranks
from pysmpi.mpi.base.constants import ERR_PENDING
from pysmpi.mpi.base.exceptions import Exception as MPIException
from pysmpi.pytest_plugin import sharing, worker
from pysmpi.pytest_plugin.examples import Example, Pause
from pysmpi.pytest_plugin.leftovers import Starts, leftovers
from pysmpi.pytest_plugin.outcomes import ItemOutcome
from pysmpi.pytest_plugin.plans import OWN
from pysmpi.ranks.instruments import Instrument, InstrumentedRun
from pysmpi.ranks.outcomes import RankState
from pysmpi.ranks.simulation import Simulation
from pysmpi.reports.deadlock import DeadlockReport, find_deadlock, table
from pysmpi.reports.result import Result
from pysmpi.text import did_you_mean

_signal: Any = importlib.import_module("_signal")

MOST_BREAKS = 20  # times that the ranks of one test may get stuck
REPEAT = 0.05  # (s) between alarms
_AFTER = {"collect": "setup", "setup": "call", "call": "teardown", "teardown": "start"}


class Key(NamedTuple):
    """Tests with the same key can run in the same ranks."""

    size: int
    options: tuple[tuple[str, Any], ...]


class PeerFailed(PysmpiError, MPIException):
    """Raised in ranks that wait, after a test has failed in the rank that they wait for."""

    def __init__(self, what: str) -> None:
        MPIException.__init__(self, ERR_PENDING)
        self.what = what

    def __str__(self) -> str:
        return self.what


class TimedOut(PysmpiError):
    """Raised in the running rank when the time of a test is over."""


def _check_names(given: Iterable[str]) -> None:
    """Refuse arguments of the mark that it does not have."""
    for name in given:
        if name == "nprocs":
            raise UsageError("mark.mpi: unknown argument 'nprocs'; did you mean ranks?")
        if name not in FIELDS:
            names = [*sorted(OWN), *(field for field in FIELDS if field != "nprocs")]
            raise UsageError(f"mark.mpi: unknown argument {name!r}{did_you_mean(name, names)}")


class _Program(RankProgram):
    """The session of pytest in each rank."""

    name = "pytest"

    def __init__(self, world: LivingWorld) -> None:
        self.world = world

    def main(self) -> Callable[[], object]:
        # As under mpiexec, each rank has the module with which pytest began.
        module = ModuleType("__main__")
        vars(module).update(self.world.main)
        install_main(self.exchange, module)
        return partial(worker.live, self.world, ranks.current().index)


class _Waiting(Instrument):
    """Lets ranks that wait for tests go on."""

    def __init__(self, world: LivingWorld) -> None:
        self.world = world

    def attach(self, run: InstrumentedRun) -> None:
        self.world.starts.simulation = run.simulation
        run.simulation.universe.listen(self.world.starts)

    def deadlock_reached(self, simulation: Simulation) -> bool:
        return self.world.at_rest(simulation)


class LivingWorld:
    """Ranks for the tests of one key, whose files are in `folders`.

    `config` is that of the user's session.
    """

    def __init__(self, config: pytest.Config, key: Key, folders: Collection[Path]) -> None:
        self.config = config
        self.key = key
        self.folders = folders
        given = dict(key.options)
        _check_names(given)
        shared = [*sharing.shared_modules(config), *given.pop("shared", ())]
        options = check(
            Options(nprocs=key.size, shared=shared, **{"compute": "none", **given}),
        )
        self.starts = Starts()
        self.job = Job(_Program(self), options, instruments=[_Waiting(self)])
        self.directory = str(config.invocation_params.dir)
        self.main = dict(vars(sys.modules["__main__"]))
        self.hub = greenlet(self._live)
        self.caller: Any = None
        self.result: Result | None = None
        self.error: BaseException | None = None
        self.called = False  # whether there is a new task, or the end
        self.idle: dict[int, Any] = {}  # fibers of ranks that wait for the others
        self.task: tuple[pytest.Item, pytest.Item | None] | None = None
        self.outcome = ItemOutcome(key.size)
        self.failing = False  # some rank has failed in the running test
        self.stage = "start"
        self.begun = 0.0
        self.breaks = 0
        self.before: list[KernelRequest] = []  # that the setup of the test has left
        self.shared_directory: object = None
        self.example: Example | None = None
        self.pause = Pause(None)

    @property
    def ended(self) -> bool:
        """Whether the simulation is over."""
        return self.hub.dead

    @property
    def simulation(self) -> Simulation:
        """The simulation of the ranks."""
        return self.job.simulation

    # Called in pytest's greenlet

    def run(
        self,
        item: pytest.Item,
        following: pytest.Item | None,
        timeout: float | None,
        example: Example | None = None,
    ) -> ItemOutcome:
        """Run a test in all ranks. `following` is the next one for them, if there is one."""
        self.example = example
        self.outcome = outcome = ItemOutcome(self.key.size, timeout=timeout)
        self.task = (item, following)
        self.failing = False
        self.breaks = 0
        self.stage = "start"
        self.pause = Pause(example)
        with self._alarm(timeout):
            self._enter()
        self.pause.end()
        if self.hub.dead and not outcome.ended:
            outcome.ended = self._why_ended()
        return outcome

    def close(self) -> None:
        """End the ranks."""
        if self.hub:  # otherwise it has ended, or not begun
            self.task = None
            self._enter()
        if self.result is not None:
            self.outcome.findings = self.result.findings

    def _enter(self) -> None:
        self.called = True
        marks = MARK_GEN._config
        directory = os.getcwd()
        self.caller = getcurrent()
        try:
            self.hub.parent = self.caller
            self.hub.switch()
        finally:
            MARK_GEN._config = marks
            if self.hub.dead:
                os.chdir(directory)
        if self.error is not None:
            error, self.error = self.error, None
            raise error

    @contextmanager
    def _alarm(self, seconds: float | None) -> Iterator[None]:
        """Raise an exception in the running rank after a (real) time."""
        if seconds is None:
            yield
            return

        def late(number: int, frame: FrameType | None) -> None:
            fiber: Any = getcurrent()
            if isinstance(fiber, ranks.Fiber) and fiber not in self.idle.values():
                _signal.setitimer(_signal.ITIMER_REAL, 0)
                raise TimedOut(f"the test runs for more than {text.seconds(seconds)}")

        handler = _signal.signal(_signal.SIGALRM, late)
        _signal.setitimer(_signal.ITIMER_REAL, seconds, REPEAT)
        try:
            yield
        finally:
            _signal.setitimer(_signal.ITIMER_REAL, 0)
            _signal.signal(_signal.SIGALRM, handler)

    def _why_ended(self) -> str:
        if self.result is not None and self.result.error:
            return self.result.error
        return "the ranks have ended in the middle of the test"

    # Called in the greenlet of the simulation

    def _live(self) -> None:
        try:
            self.result = run_job(self.job)
        except BaseException as error:
            self.error = error

    def at_rest(self, simulation: Simulation) -> bool:
        """No rank can go on: let the next phase begin, or raise an exception in stuck ranks."""
        waiting = {rank.pid for rank in simulation.waiting()}
        stuck = waiting - set(self.idle)
        if stuck:
            return self._break(simulation, stuck)
        if self.stage != "start":
            self._phase_over()
        else:
            if not self.called:
                self.caller.switch()
            self.called = False
            if self.task is not None:
                self.begun = simulation.engine.now
                self.stage = "collect"
        fibers, self.idle = self.idle, {}
        for fiber in fibers.values():
            fiber.wake()
        return True

    def _phase_over(self) -> None:
        """All ranks have ended a phase."""
        outcome = self.outcome
        if self.stage == "collect":
            self.pause.end()
        reports = outcome.reports.get(self.stage, {})
        if any(report.failed for report in reports.values()):
            self.failing = True
        if self.stage == "setup":
            # A fixture of a module may receive until its teardown.
            self.before = [
                one
                for one, _ in leftovers(self.simulation, self.starts)
                if isinstance(one, Receive)
            ]
        elif self.stage == "teardown" and not self.failing and outcome.stuck is None:
            outcome.left = [
                said
                for one, said in leftovers(self.simulation, self.starts)
                if not any(one is other for other in self.before)
            ]
        outcome.seconds = self.simulation.engine.now - self.begun
        self.stage = "start" if outcome.missing else _AFTER[self.stage]

    def _break(self, simulation: Simulation, stuck: set[int]) -> bool:
        """Raise an exception in ranks that wait for messages which never come."""
        self.breaks += 1
        idle = [simulation.outcome(simulation.universe.ranks[pid]) for pid in self.idle]
        for outcome in idle:
            outcome.state = RankState.FINISHED  # for the report, they have ended
        try:
            simulation.command = f"pytest {self.task[0].nodeid}" if self.task is not None else ""
            report = find_deadlock(simulation)
            if self.outcome.stuck is None:
                self.outcome.stuck = report
            self.outcome.stuck_ranks |= stuck
            if self.breaks > MOST_BREAKS:
                self.outcome.ended = str(report)
                return False
            return simulation.break_deadlock(self._exception(report))
        finally:
            for outcome in idle:
                outcome.state = RankState.RUNNING

    def _exception(self, report: DeadlockReport) -> object:
        reports = self.outcome.reports.get(self.stage, {})
        failed = sorted(pid for pid, one in reports.items() if one.failed)
        if failed:
            return _Peers(f"{text.ranks(failed)} failed", table(report.groups, ()))
        return report

    # Called in ranks

    def synchronize(self, index: int, report: pytest.TestReport | None) -> bool:
        """Wait until all ranks have ended a phase; returns whether the test goes on."""
        stage = self.stage
        if report is not None:
            self.outcome.reports.setdefault(stage, {})[index] = report
        self.rest(index)
        return not self.failing

    def rest(self, index: int) -> None:
        """Wait until no rank can go on."""
        fiber: Any = getcurrent()
        self.idle[index] = fiber
        fiber.block()

    def next_task(self, index: int) -> tuple[pytest.Item, pytest.Item | None] | None:
        """Wait for the next test; None is the end."""
        self.rest(index)
        return self.task

    def debug(self, error: BaseException) -> None:
        """Stop in the debugger where the test failed in the running rank."""
        capture = self.config.pluginmanager.getplugin("capturemanager")
        if isinstance(error, PeerFailed) or capture is None:
            return
        capture.suspend(in_=True)
        try:
            stream = sys.__stdout__
            print("".join(traceback.format_exception_only(error)).rstrip(), file=stream)
            prompt = Prompt(
                self.simulation, ranks.current(), lambda prompt: None,
                streams=(sys.__stdin__, stream),
            )  # fmt: skip
            prompt.ask(None, error.__traceback__)
        finally:
            capture.resume()

    def common_directory(self) -> object:
        """A directory for the temporary files of all ranks."""
        if self.shared_directory is None:
            factory = self.config._tmp_path_factory  # type: ignore[attr-defined]
            self.shared_directory = factory.mktemp("ranks", numbered=True)
        return self.shared_directory


class _Peers:
    """The reason for which ranks are stopped, in the form of a report of a deadlock."""

    def __init__(self, what: str, lines: list[str]) -> None:
        self.what, self.lines = what, lines

    def exception(self) -> PeerFailed:
        return PeerFailed("\n".join([self.what, *self.lines]))
