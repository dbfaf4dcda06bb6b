"""An exploration: many executions of one program, and their results."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pysmpi.explore.events import DrawnDecision, Trace, steps_of
from pysmpi.explore.executions import Executions, ExecutionsLost, JobFactory, Trial
from pysmpi.explore.executor import Executor
from pysmpi.explore.files import FileWatch
from pysmpi.explore.observer import Observer
from pysmpi.explore.remedies import Remedy, remedies
from pysmpi.explore.schedule import ChoiceRecord, Decisions, Replayed
from pysmpi.explore.shrinking import Shrunk, inevitable, passes_after, shorten
from pysmpi.explore.strategy import Strategy, make_strategy
from pysmpi.explore.systematic import SearchTree, Task, predictions
from pysmpi.kernel.choices import ORDERS, SEND, Alternative, Control
from pysmpi.own_process import interruption
from pysmpi.ranks.simulation import Simulation

SYSTEMATIC = "systematic"
SENDS = ("both", "buffered", "waiting")
REMEDY_RUNS, REMEDY_SECONDS = 300, 20.0  # the bounds of the search with a remedy

# Makes the executor of a job with a number of ranks and arguments of the program.
ExecutorFactory = Callable[[int, Sequence[str], "SearchLimits"], Executions]


def here(make: JobFactory) -> ExecutorFactory:
    """Execute on this computer the jobs that `make(ranks, arguments)` makes."""
    return lambda ranks, arguments, settings: Executor(
        lambda: make(ranks, arguments), settings.jobs, settings.timeout
    )


@dataclass(frozen=True)
class SearchLimits:
    """The way to explore: a strategy or `systematic`, and the bounds.

    `runs` is the largest number of executions, `seconds` of wall time. `sends` says whether
    standard sends are buffered, wait, or both are explored. `timeout` is the wall time (s) after
    which one execution is killed. `symmetric`: ranks that differ only by their numbers count once.
    """

    schedule: str = SYSTEMATIC
    runs: int | None = None
    seconds: float | None = None
    jobs: int = 1
    keep_going: bool = False
    reduction: str = "source"
    sends: str = "both"
    seed: int = 0
    timeout: float = 60.0
    shrink: bool = True
    symmetric: bool = False


@dataclass
class TriedRemedy:
    """A change of the program with which no execution has failed.

    `complete`: in all orders; `buffered`: only if standard sends are buffered.
    """

    text: str
    executions: int
    complete: bool
    buffered: bool = False

    @property
    def verdict(self) -> str:
        """The result of the tries, in words."""
        if self.complete:
            return "all orders with buffered sends pass" if self.buffered else "all orders pass"
        some = " with buffered sends" if self.buffered else ""
        return f"no tried order{some} fails"


@dataclass
class FailingOrder:
    """A failure: its cause, the report of the execution, and the schedule that repeats it.

    `events` are the names of its decisions, `sites` describe them with lines of the program.
    `inevitable` is the number of the decision after which the failure cannot be avoided any more
    (0: from the start, None: unknown). `deviations` is the number of decisions that differ from the
    default; an execution that was killed has no schedule. `unordered` repeats the same failure in
    the default order of a smaller job, if the original one fails in other orders only. If the
    default order passes, or the one of `passing_schedule`, `passing` describes its events,
    `parting` is the first one that differs, and `remedies` let the program pass; `remedy` is the
    first of them. `steps` and `passing_steps` are the events of both orders for a picture.
    """

    cause: str
    schedule: str
    error: str
    ranks: int
    arguments: list[str]
    deviations: int = 0
    events: list[str] = field(default_factory=list)
    sites: list[str] = field(default_factory=list)
    inevitable: int | None = None
    found_after: int = 0
    known: bool = False
    command: str = ""
    unordered: str = ""
    passing: list[str] = field(default_factory=list)
    passing_schedule: str = ""
    parting: int | None = None
    remedy: str = ""
    remedies: list[TriedRemedy] = field(default_factory=list)
    steps: list[DrawnDecision] = field(default_factory=list)
    passing_steps: list[DrawnDecision] = field(default_factory=list)


@dataclass
class SearchResult:
    """The outcome of an exploration.

    `executions` counts executions, `meetings` those of them that ended at a state that another one
    had met before, `redundant` those given up because another one is equivalent. `complete` says
    that nothing is left to explore. `results` has, for each different result of executions that did
    not fail, a schedule and the number of executions. `lost` is a reason outside of the program for
    which the executions ended early; `interrupted` says that the user has ended them. `alike` are
    ranks that were taken as equal but for their numbers.
    """

    executions: int = 0
    redundant: int = 0
    meetings: int = 0
    states: int = 0
    left: int = 0
    estimate: float | None = None
    complete: bool = False
    seconds: float = 0.0
    failures: list[FailingOrder] = field(default_factory=list)
    results: list[tuple[str, int]] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    predictions: list[str] = field(default_factory=list)
    divergence: str | None = None
    note: str | None = None
    interrupted: bool = False
    lost: str | None = None
    alike: list[int] = field(default_factory=list)


class FixedSends:
    """A strategy, but for standard sends: all of them wait, or none does."""

    def __init__(self, strategy: Strategy, wait: bool) -> None:
        self.strategy = strategy
        self.wait = wait

    def pick(self, kind: str, options: Sequence[Alternative]) -> int:
        """Decide."""
        return int(self.wait) if kind == SEND else self.strategy.pick(kind, options)


class StrategyDecider:
    """Lets a strategy decide one execution; `sends` is one of `SENDS`."""

    def __init__(self, strategy: Strategy, sends: str = "both") -> None:
        chosen = strategy if sends == "both" else FixedSends(strategy, sends == "waiting")
        self.record = ChoiceRecord(chosen)

    def pick(self, kind: str, options: Sequence[Alternative]) -> int:
        """Decide, and record it."""
        return self.record.pick(kind, options)

    def attach(self, control: Control) -> None:
        """Do nothing: `Strategy.begin` was called before."""

    def enter(self, simulation: Simulation, output: int, files: FileWatch) -> None:
        """Do nothing."""

    @property
    def given_up(self) -> bool:
        """Every execution counts."""
        return False

    def summary(self) -> list[int]:
        """The ranks of the options that were taken, for `Strategy.end`."""
        return self.record.pids

    def schedule(self) -> Decisions:
        """The schedule that repeats the execution."""
        return self.record.schedule()


class Explorer:
    """Explores one program with one number of ranks.

    `report(exploration)` is called after each execution. `trees` may hold the trees of an earlier,
    interrupted exploration. With a `remedy`, the program is changed.
    """

    def __init__(
        self,
        executor: Executions,
        ranks: int,
        settings: SearchLimits,
        report: Callable[[SearchResult], object] = lambda exploration: None,
        trees: Sequence[SearchTree] = (),
        known: Sequence[str] = (),
        remedy: Remedy | None = None,
    ) -> None:
        self.executor = executor
        self.remedy = remedy
        self.ranks = ranks
        self.settings = settings
        self.report = report
        self.trees = list(trees)
        self.known = list(known)
        self.found = SearchResult()
        self.gone: list[str] = []  # known failures that did not occur
        self._results: dict[object, tuple[str, int, str]] = {}
        self._causes: dict[str, Trial] = {}
        self._begun = 0.0
        self._executor: Executions | None = None

    def run(self) -> SearchResult:
        """Explore, up to the bounds or the first failure."""
        self._begun = time.monotonic()
        return self.executor.serve(self._work)

    def _work(self, executor: Executions) -> SearchResult:
        found = self.found
        try:
            self._try_known(executor)
            if not self._over():
                if self.settings.schedule == SYSTEMATIC:
                    self._systematic(executor)
                else:
                    self._strategy(executor)
        except KeyboardInterrupt:
            found.note = interruption.described(interruption.received() or signal.SIGINT)
            found.interrupted = True
        except ExecutionsLost as error:
            found.lost = str(error)
        for task in executor.stop():
            if isinstance(task, Task):
                self.trees[-1].put_back(task)
        found.seconds = time.monotonic() - self._begun
        found.results = [(schedule, count) for schedule, count, _ in self._results.values()]
        found.outputs = [output for _, _, output in self._results.values()]
        if not found.lost and not found.interrupted:
            for failure in found.failures:
                self._explain(executor, failure)
        return found

    # Executions.

    def _over(self) -> bool:
        found, settings = self.found, self.settings
        if found.failures and not settings.keep_going:
            return True
        if settings.runs is not None and found.executions >= settings.runs:
            return True
        passed = time.monotonic() - self._begun
        return settings.seconds is not None and passed >= settings.seconds

    def _note(self, execution: Trial, known: bool = False) -> None:
        """Take in a complete execution."""
        found = self.found
        if execution.failed:
            cause = execution.cause
            before = self._causes.get(cause)
            if before is None:
                self._causes[cause] = execution
                decisions = Decisions.parse(execution.schedule or "default")
                found.failures.append(
                    FailingOrder(
                        cause,
                        execution.schedule,
                        execution.error or cause,
                        self.ranks,
                        [],
                        decisions.deviations,
                        found_after=found.executions + 1,
                        known=known,
                    )  # fmt: skip
                )
        else:
            output = execution.output.decode(errors="replace")
            schedule, count, text = self._results.get(
                execution.result, (execution.schedule, 0, output)
            )
            self._results[execution.result] = schedule, count + 1, text
        self._progressed()

    def _progressed(self) -> None:
        """An execution has ended."""
        found = self.found
        found.executions += 1
        found.seconds = time.monotonic() - self._begun
        self.report(found)

    def _try_known(self, executor: Executions) -> None:
        for text in self.known:
            execution = self._once(executor, Observer(strategy=Replayed(Decisions.parse(text))))
            if execution.failed:
                self._note(execution, known=True)
            else:
                self.gone.append(text)

    @staticmethod
    def _once(executor: Executions, decider: Any) -> Trial:
        executor.submit(decider, None)
        return executor.next()[1]

    def _systematic(self, executor: Executions) -> None:
        settings, found = self.settings, self.found
        if not self.trees:
            self.trees = [self._tree(settings.sends != "waiting")]
        before = found.executions
        sends = files = False
        while True:
            tree = self.trees[-1]
            while not executor.busy and not self._over():
                task = tree.next()
                if task is None:
                    break
                executor.submit(tree.observer(task), task)
            if executor.idle:
                if tree.left:
                    break
                if settings.sends == "both" and sends and tree.buffered and not tree.order:
                    self.trees.append(self._tree(False))
                    continue
                if not files or tree.order + 1 >= ORDERS:
                    break
                buffered = settings.sends != "waiting"
                self.trees.append(self._tree(buffered, tree.order + 1))
                continue
            task, execution = executor.next()
            files = files or execution.shares_files
            trace = execution.trace
            if isinstance(trace, Trace):
                tree.learn(task, trace)
                sends = sends or trace.sends > 0
                self._diverged(task, trace)
                if len(self.trees) == 1 and tree.executions + tree.redundant == 1:
                    self._predict(trace)
            self._count(before)
            if trace is not None and trace.met is not None:
                self._progressed()
            elif trace is None or not (trace.redundant or trace.diverged):
                self._note(execution)
        self._count(before)
        found.complete = all(not tree.left for tree in self.trees)

    def _tree(self, buffered: bool, order: int = 0) -> SearchTree:
        settings = self.settings
        return SearchTree(settings.reduction, buffered, order, settings.symmetric, self.remedy)

    def _count(self, before: int) -> None:
        found = self.found
        found.alike = sorted(set().union(*(tree.alike for tree in self.trees)))
        found.redundant = sum(tree.redundant for tree in self.trees)
        found.meetings = sum(tree.meetings for tree in self.trees)
        found.states = sum(tree.states for tree in self.trees)
        found.left = sum(tree.left for tree in self.trees)
        estimates = [tree.estimate() for tree in self.trees]
        known = [estimate for estimate in estimates if estimate is not None]
        found.estimate = sum(known) if len(known) == len(estimates) else None

    def _predict(self, trace: Trace) -> None:
        for i, event in predictions(trace):
            taken = trace.events[i].name
            self.found.predictions.append(f"step {i}: {event.name} instead of {taken}")

    def _diverged(self, task: Task, trace: Trace) -> None:
        if trace.diverged is not None and self.found.divergence is None and not task.asked:
            step, expected, got = trace.diverged
            self.found.divergence = (
                f"step {step}: expected {expected}, got {got}: the same decisions have led to "
                "different events, so the program depends on something else: wall time, random "
                "numbers of the system, files that an execution changes, or real threads"
            )

    def _strategy(self, executor: Executions) -> None:
        settings, found = self.settings, self.found
        strategy = make_strategy(settings.schedule, settings.seed)
        run = 0
        bound = settings.runs or (100 if settings.seconds is None else None)
        while True:
            while not executor.busy and not self._over() and (bound is None or run < bound):
                strategy.begin(run, self.ranks)
                executor.submit(StrategyDecider(strategy, settings.sends), run)
                run += 1
            if executor.idle:
                break
            _, execution = executor.next()
            found.note = strategy.end(execution.trace or []) or None
            self._note(execution)

    # Explanations.

    def _explain(self, executor: Executions, failure: FailingOrder) -> None:
        """Shrink a failure, describe its events, and find when it became inevitable."""
        execution = self._causes[failure.cause]
        if not execution.schedule:
            return
        try:
            shrunk = Shrunk(Decisions.parse(execution.schedule), execution)
            if self.settings.shrink:
                shrunk = shorten(executor, shrunk, failure.cause)
            found = self._once(
                executor, Observer(strategy=Replayed(shrunk.decisions), located=True)
            )
            trace = found.trace
            if found.cause != failure.cause or not isinstance(trace, Trace):
                return
            failure.schedule = found.schedule
            failure.deviations = shrunk.decisions.deviations
            failure.error = found.error or failure.error
            failure.events = [event.name for event in trace.events]
            failure.sites = trace.sites or []
            failure.steps = steps_of(trace)
            if self.settings.shrink:
                failure.inevitable = inevitable(executor, shrunk.decisions, trace)
            self._compare(executor, failure, shrunk.decisions, trace)
        except KeyboardInterrupt:
            self.found.interrupted = True
            executor.stop()
        except ExecutionsLost:
            executor.stop()

    def _compare(
        self, executor: Executions, failure: FailingOrder, decisions: Decisions, trace: Trace
    ) -> None:
        """Hold a failing order against the default one, or against another one that passes."""
        passing = None
        if failure.deviations:
            passing = self._passing(executor, Decisions())
        if passing is None and failure.inevitable:
            names = failure.events[: failure.inevitable - 1]
            failure.passing_schedule = passes_after(executor, decisions, names)
            if failure.passing_schedule:
                passing = self._passing(executor, Decisions.parse(failure.passing_schedule))
        if passing is None:
            return
        assert passing.sites is not None
        failure.passing = passing.sites
        failure.passing_steps = steps_of(passing)
        names = [event.name for event in passing.events]
        pairs = zip(names, failure.events)
        failure.parting = next((i for i, (one, other) in enumerate(pairs) if one != other), None)
        if self.settings.shrink and failure.parting is not None:
            for one in remedies(passing, trace, self.ranks):
                tried = self._tried(executor, one, decisions)
                if tried is not None:
                    failure.remedies.append(tried)
            failure.remedy = failure.remedies[0].text if failure.remedies else ""

    def _passing(self, executor: Executions, decisions: Decisions) -> Trace | None:
        """The events of an order, with their lines; None if it fails."""
        execution = self._once(executor, Observer(strategy=Replayed(decisions), located=True))
        trace = execution.trace
        if execution.failed or not isinstance(trace, Trace) or not trace.sites:
            return None
        return trace

    def _tried(
        self, executor: Executions, remedy: Remedy, decisions: Decisions
    ) -> TriedRemedy | None:
        """Explore the program with a remedy; None if an execution fails.

        Sends that wait may fail for another reason. Then the remedy counts if the failure needs no
        such sends.
        """
        sends = self.settings.sends
        found = self._with(executor, remedy, sends)
        if found.failures and sends == "both" and decisions.sends == frozenset():
            sends = "buffered"
            found = self._with(executor, remedy, sends)
        if found.failures or found.divergence or not found.executions:
            return None
        some = sends == "buffered" != self.settings.sends
        return TriedRemedy(remedy.text, found.executions, found.complete, some)

    def _with(self, executor: Executions, remedy: Remedy, sends: str) -> SearchResult:
        limits = replace(
            self.settings, runs=REMEDY_RUNS, seconds=REMEDY_SECONDS, keep_going=False, sends=sends
        )
        return Explorer(executor, self.ranks, limits, remedy=remedy).explore(executor)

    def explore(self, executor: Executions) -> SearchResult:
        """Explore systematically with a prepared job; explain nothing."""
        self._begun = time.monotonic()
        self._systematic(executor)
        executor.stop()
        return self.found
