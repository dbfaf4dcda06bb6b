"""Exploring a program from its options: known failures first, then new ones, then smaller ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from pysmpi.explore.database import Database
from pysmpi.explore.exploration import (
    SYSTEMATIC,
    ExecutorFactory,
    Explorer,
    FailingOrder,
    SearchLimits,
    SearchResult,
)
from pysmpi.explore.systematic import SearchTree

SMALLER = 150  # executions with fewer ranks or smaller arguments, each
MOST_RANKS = 8  # with more ranks, not every smaller number is tried


@dataclass
class Campaign:
    """The exploration of one program: with a database, and resumed if `resume` is true.

    `executors` makes the executors of its jobs, and `command(failure)` the command that repeats a
    failure.
    """

    executors: ExecutorFactory
    ranks: int
    arguments: Sequence[str]
    settings: SearchLimits
    name: str
    command: Callable[[FailingOrder], str]
    database: Database | None = None
    resume: bool = False
    report: Callable[[SearchResult], object] = lambda exploration: None
    resumed: int = field(default=0, init=False)  # executions of earlier explorations

    def run(self) -> SearchResult:
        """Explore, and keep the failures."""
        database, settings = self.database, self.settings
        key = Database.key(self.name, self.arguments)
        state_key = f"{key}-{self.ranks}"
        known = []
        trees: list[SearchTree] = []
        if database is not None:
            known = [one for one in database.failures(key) if one["ranks"] == self.ranks]
            if self.resume and settings.schedule == SYSTEMATIC:
                trees = database.load_state(state_key)
                self.resumed = sum(tree.executions for tree in trees)
        explorer = Explorer(
            self.executors(self.ranks, self.arguments, settings), self.ranks, settings,
            self.report, trees, [one["schedule"] for one in known],
        )  # fmt: skip
        found = explorer.run()
        for failure in found.failures:
            failure.arguments = list(self.arguments)
        if database is not None:
            for one in known:
                if one["schedule"] in explorer.gone:
                    database.forget(key, one)
            if settings.schedule == SYSTEMATIC and explorer.trees:
                if found.complete:
                    database.drop_state(state_key)
                else:
                    database.save_state(state_key, explorer.trees)
        if settings.shrink and not found.lost and not found.interrupted:
            try:
                for number, failure in enumerate(found.failures):
                    found.failures[number] = self._smaller(failure)
            except KeyboardInterrupt:
                found.interrupted = True
        for failure in found.failures:
            if not failure.schedule:
                continue  # it was killed
            failure.command = self.command(failure)
            if database is not None:
                entry = {
                    "ranks": failure.ranks, "schedule": failure.schedule, "cause": failure.cause,
                    "arguments": failure.arguments, "events": failure.events,
                    "command": failure.command,
                }  # fmt: skip
                database.add(Database.key(self.name, failure.arguments), entry)
        return found

    def _smaller(self, failure: FailingOrder) -> FailingOrder:
        """The same failure with fewer ranks and smaller numbers as arguments, if there is one."""
        best = failure
        for ranks in range(2, min(failure.ranks, MOST_RANKS)):
            found = self._again(ranks, best.arguments, best)
            if found is not None:
                best = found
                break
        for i, word in enumerate(best.arguments):
            if not word.isdigit() or int(word) < 2:
                continue
            for smaller in dict.fromkeys((1, 2, int(word) // 4, int(word) // 2)):
                if 0 < smaller < int(word):
                    arguments = [*best.arguments[:i], str(smaller), *best.arguments[i + 1 :]]
                    found = self._again(best.ranks, arguments, best)
                    if found is not None:
                        best = found
                        break
        return best

    def _again(
        self, ranks: int, arguments: Sequence[str], failure: FailingOrder
    ) -> FailingOrder | None:
        """The failure with other ranks or arguments; None if a short exploration finds none."""
        settings = replace(self.settings, runs=SMALLER, keep_going=True, seconds=10.0)
        found = Explorer(self.executors(ranks, arguments, settings), ranks, settings).run()
        if found.interrupted:
            raise KeyboardInterrupt
        for other in found.failures:
            if other.cause == failure.cause:
                other.arguments = list(arguments)
                if failure.deviations and not other.deviations:
                    # Perhaps another error: the order does not matter here.
                    if not failure.unordered:
                        failure.unordered = self.command(other)
                    return None
                other.unordered = failure.unordered
                return other
        return None
