"""Runs the tests that need ranks, in place of pytest's own protocol."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import pytest

from pysmpi.errors import UsageError
from pysmpi.job.options import FIELDS
from pysmpi.pytest_plugin import plans
from pysmpi.pytest_plugin.examples import Example, explore, is_property, notes
from pysmpi.pytest_plugin.merging import PHASES, merged
from pysmpi.pytest_plugin.outcomes import ItemOutcome
from pysmpi.pytest_plugin.world import Key, LivingWorld


class Runner:
    """A plugin of pytest's: keeps a world of ranks while the next tests can use it.

    As under mpiexec, tests in a row with the same number of ranks run in the same ranks, which
    keep their modules and fixtures. After a test that fails they begin anew.
    """

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.world: LivingWorld | None = None
        self.folders: list[Path] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        """The folders of all tests that will need ranks."""
        directories = {item.path.parent for item in session.items if self._plan(item) is not None}
        self.folders = sorted(directories)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> bool | None:
        plan = self._plan(item)
        if plan is None:
            self._close()  # the test may run a program itself
            return None
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for report in self._reports(item, nextitem, plan):
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        # Fixtures of earlier tests without ranks that no later test needs.
        item.session._setupstate.teardown_exact(nextitem)
        return True

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        self._close()

    def pytest_unconfigure(self) -> None:
        self._close()

    def _plan(self, item: pytest.Item) -> plans.ItemPlan | None:
        plan = plans.plan_of(item, getattr(item, "fixturenames", ()), self.config)
        if plan is None or any(not mark.args for mark in item.iter_markers("skip")):
            return None  # pytest skips it without ranks
        return plan

    def _key(self, item: pytest.Item) -> Key | None:
        plan = self._plan(item)
        if plan is None or plan.schedules > 1 or "check" in plan.options:
            return None  # these have ranks of their own
        return _key(item, plan)

    def _reports(
        self, item: pytest.Item, nextitem: pytest.Item | None, plan: plans.ItemPlan
    ) -> list[pytest.TestReport]:
        begun = time.perf_counter()
        key = _key(item, plan)
        follows = nextitem is not None and self._key(item) == self._key(nextitem) == key
        following = nextitem if follows else None
        try:
            if is_property(item):
                return self._property(item, plan, key)
            if plan.schedules > 1 or self.config.getoption("mpi_seed") is not None:
                outcome = self._schedules(item, plan, key)
            else:
                outcome = self._world(key).run(item, following, plan.timeout)
        except UsageError as error:
            self._close()
            return [_broken(item, f"{item.nodeid}: {error}", time.perf_counter() - begun)]
        if outcome.spoiled or following is None:
            self._close()
        return _merged(item, outcome, begun)

    def _property(
        self, item: pytest.Item, plan: plans.ItemPlan, key: Key
    ) -> list[pytest.TestReport]:
        """Run a test with `@given`: Hypothesis draws, and each example runs in ranks."""
        begun = time.perf_counter()

        def run(example: Example) -> ItemOutcome:
            world = self._world(key)
            outcome = world.run(item, item, plan.timeout, example)
            if outcome.stuck or outcome.ended or 0 < len(outcome.errors) < key.size:
                self._close()
            return outcome

        outcome, error = explore(item, run)
        self._close()
        if outcome is None or (error is not None and outcome.error() is None):
            text = "no example was run" if error is None else str(item.repr_failure(error))
            return [_broken(item, text, time.perf_counter() - begun, "call")]
        if error is not None:
            outcome.notes = notes(error.value)
        return _merged(item, outcome, begun)

    def _schedules(self, item: pytest.Item, plan: plans.ItemPlan, key: Key) -> ItemOutcome:
        """Run a test in other orders of events until it fails; each time in new ranks."""
        given = dict(key.options)
        first = self.config.getoption("mpi_seed")
        numbers = range(plan.schedules) if first is None else [first]
        for number in numbers:
            self._close()
            options = {**given, "seed": int(given.get("seed", 0)) + number}
            if "schedule" in FIELDS:
                options.setdefault("schedule", "random")
            outcome = self._world(_sorted(key.size, options)).run(item, None, plan.timeout)
            self._close()
            if outcome.spoiled:
                outcome.schedule = (
                    f"order {number + 1} of {plan.schedules}; again: pytest '{item.nodeid}' "
                    f"--mpi-seed {number}"
                )
                break
        return outcome

    def _world(self, key: Key) -> LivingWorld:
        if self.world is not None and (self.world.ended or self.world.key != key):
            self._close()
        if self.world is None:
            self.world = LivingWorld(self.config, key, self.folders)
        return self.world

    def _close(self) -> None:
        world, self.world = self.world, None
        if world is not None:
            world.close()


def _key(item: pytest.Item, plan: plans.ItemPlan) -> Key:
    return _sorted(plans.size_of(item, plan), plan.options)


def _sorted(size: int, options: Mapping[str, object]) -> Key:
    return Key(size, tuple(sorted(options.items(), key=str)))


def _merged(item: pytest.Item, outcome: ItemOutcome, begun: float) -> list[pytest.TestReport]:
    """The reports of the phases of a test."""
    for warning in outcome.warnings:
        item.ihook.pytest_warning_recorded.call_historic(kwargs=warning)
    seconds = time.perf_counter() - begun
    reports = [merged(item, when, outcome, seconds) for when in PHASES]
    return [report for report in reports if report is not None]


def _broken(
    item: pytest.Item, text: str, seconds: float, when: Literal["setup", "call"] = "setup"
) -> pytest.TestReport:
    """The report of a test that could not begin."""
    keywords: dict[str, Any] = {name: 1 for name in item.keywords}
    return pytest.TestReport(
        item.nodeid, item.location, keywords, "failed", text, when, duration=seconds
    )
