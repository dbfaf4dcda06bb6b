"""The session of pytest in a rank: collects the files of tests, and runs tests on request."""

from __future__ import annotations

import os
from collections.abc import Collection, Generator
from pathlib import Path
from typing import Any, Protocol

import pytest
from _pytest.assertion import util
from _pytest.config import Config
from _pytest.runner import call_and_report

from pysmpi.isolation.program_errors import internal_error, strip
from pysmpi.pytest_plugin import plans
from pysmpi.pytest_plugin.examples import Example, applied
from pysmpi.pytest_plugin.outcomes import ItemOutcome
from pysmpi.pytest_plugin.sharing import options_of_ranks
from pysmpi.ranks.simulation import Simulation

# Names that pytest sets for the running test: each rank has others.
_OF_A_TEST = ("_reprcompare", "_assertion_pass", "_config")


class RanksWorld(Protocol):
    """The world of the ranks (see `world.py`), for the session of a rank."""

    directory: str
    config: Config
    outcome: ItemOutcome
    example: Example | None
    folders: Collection[Path]

    @property
    def simulation(self) -> Simulation:
        """The simulation of the ranks."""

    def next_task(self, index: int) -> tuple[pytest.Item, pytest.Item | None] | None:
        """Wait for the next test; None is the end."""

    def rest(self, index: int) -> None:
        """Wait until no rank can go on."""

    def synchronize(self, index: int, report: pytest.TestReport | None) -> bool:
        """Wait until all ranks have ended a phase; returns whether the test goes on."""

    def debug(self, error: BaseException) -> None:
        """Stop in the debugger where the test failed in the running rank."""

    def common_directory(self) -> Any:
        """The directory of the temporary directories of all ranks."""


def live(world: RanksWorld, index: int) -> None:
    """The life of a rank."""
    exchange = world.simulation.door.exchange
    if exchange is not None:
        for name in _OF_A_TEST:
            exchange.watch(vars(util), name)
    os.chdir(world.directory)
    options = options_of_ranks(world.config)
    args = [str(arg) for arg in world.config.args]
    config = Config.fromdictargs(options, args)
    try:
        config.args = [str(folder) for folder in world.folders]
        worker = config.stash[plans.WORKER] = Worker(world, index)
        config.pluginmanager.register(worker, "pysmpi-worker")
        config.hook.pytest_cmdline_main(config=config)
        if worker.failure:
            raise RuntimeError(worker.failure)
    finally:
        config._ensure_unconfigure()


class Worker:
    """A plugin of the session of a rank."""

    def __init__(self, world: RanksWorld, index: int) -> None:
        self.world = world
        self.index = index
        self.items: dict[tuple[str, ...], pytest.Item] = {}
        self.files: set[Path] = set()
        self.wanted: Path | None = None  # the file that is collected from its folder
        self.directories: dict[Path, pytest.Directory] = {}
        self.ways = {*world.folders, *(up for folder in world.folders for up in folder.parents)}
        self.unusable: dict[str, pytest.CollectReport] = {}  # by path, as in nodeids
        self.failure = ""

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        if hasattr(config, "_tmp_path_factory"):
            config._tmp_path_factory = _Directories(self.world)

    def pytest_internalerror(self, excrepr: object) -> None:
        self.failure = f"INTERNALERROR> {excrepr}"

    # A session collects once: fixtures of a `conftest.py` belong to the object of its directory,
    # and are dropped after the collection. So the ranks first collect the directories of all
    # their tests, without the files, and keep these objects. A file is collected, and its module
    # imported, with its first test.

    @pytest.hookimpl(tryfirst=True)
    def pytest_ignore_collect(self, collection_path: Path) -> bool:
        return collection_path not in self.ways and collection_path != self.wanted

    @pytest.hookimpl(tryfirst=True)
    def pytest_collect_directory(self, path: Path) -> pytest.Directory | None:
        return self.directories.get(path)

    def pytest_collectstart(self, collector: pytest.Collector) -> None:
        if isinstance(collector, pytest.Directory):
            self.directories.setdefault(collector.path, collector)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        world, index = self.world, self.index
        while (task := world.next_task(index)) is not None:
            test, following = task
            item = self._find(session, test)
            after: object = None if following is None else self._find(session, following)
            if after is item and item is not None:
                after = item.parent  # another example: only its own fixtures end
            if item is None:
                world.outcome.missing[index] = self._why(test.nodeid)
            world.rest(index)
            if item is not None and not world.outcome.missing:
                session.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
        return True

    def _find(self, session: pytest.Session, test: pytest.Item) -> pytest.Item | None:
        """The item of this rank for one of the user's session."""
        name = _identity(test)
        if name not in self.items and test.path not in self.files:
            self.files.add(test.path)
            self._collect(session, test.path)
            outermost = test.listchain()[1].path
            if name not in self.items and outermost != test.path:
                # Outside of pytest's root folder, parents depend on the argument.
                self.wanted = test.path
                self._collect(session, outermost)
        return self.items.get(name)

    def _collect(self, session: pytest.Session, path: Path) -> None:
        for item in session.perform_collect([str(path)]):
            if isinstance(item, pytest.Item):
                self.items[_identity(item)] = item

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.outcome != "passed":
            self.unusable[report.nodeid] = report

    def _why(self, name: str) -> tuple[str, object]:
        parts = name.split("::")
        for end in range(len(parts), 0, -1):
            report = self.unusable.get("::".join(parts[:end]))
            if report is not None:
                return report.outcome, report.longrepr
        return "failed", "this rank has no test of this name"

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        world, index = self.world, self.index
        request: Any = item
        if hasattr(request, "_request") and not request._request:
            request._initrequest()
        setup = call_and_report(item, "setup", log=False)
        together = world.synchronize(index, setup)
        report = None
        if setup.passed and together:
            with applied(item, world.example):
                report = call_and_report(item, "call", log=False)
        together = world.synchronize(index, report)
        # After a failure, the ranks end: nothing is kept for other tests.
        after = nextitem if together else None
        world.synchronize(index, call_and_report(item, "teardown", log=False, nextitem=after))
        if hasattr(request, "_request"):
            request._request = False
            request.funcargs = None
        return True

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[object]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        if call.excinfo is not None and internal_error(call.excinfo.value) is None:
            _strip(call.excinfo.value)
            call.excinfo = pytest.ExceptionInfo.from_exception(call.excinfo.value)
        report = yield
        if call.excinfo is not None:
            vars(report)["kind"] = type(call.excinfo.value).__name__
            if report.failed and self.world.config.getoption("usepdb"):
                self.world.debug(call.excinfo.value)
            if not hasattr(report, "wasxfail"):
                self.world.outcome.errors.setdefault(self.index, call.excinfo.value)
        return report

    def pytest_warning_recorded(
        self, warning_message: Any, when: str, nodeid: str, location: object
    ) -> None:
        known = self.world.outcome.warnings
        for other in known:
            message = other["warning_message"]
            if (message.filename, message.lineno, str(message.message)) == (
                warning_message.filename, warning_message.lineno, str(warning_message.message)
            ):  # fmt: skip
                return
        known.append(
            {
                "warning_message": warning_message,
                "when": when,
                "nodeid": nodeid,
                "location": location,
            }
        )


def _identity(item: pytest.Item) -> tuple[str, ...]:
    """The common part of an item of the user's session and that of a rank.

    Some suites put the rank into the identifiers of their tests.
    """
    return (str(item.path), *(node.name for node in item.listchain()[1:]))


def _strip(error: BaseException | None) -> None:
    """Take pysmpi's frames out of the tracebacks of an exception and of its causes."""
    seen: set[int] = set()
    pending = [error]
    while pending:
        one = pending.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        kept = strip(one.__traceback__)
        if kept is not None:
            one.__traceback__ = kept
        pending += [one.__cause__, one.__context__]
        if isinstance(one, BaseExceptionGroup):
            pending += one.exceptions


class _Directories:
    """Makes temporary directories that are the same in all ranks; see pytest.TempPathFactory."""

    def __init__(self, world: RanksWorld) -> None:
        self._world = world
        self._numbers: dict[str, int] = {}
        self._retention_policy = "all"
        self._retention_count = 3
        self._basetemp = None  # nothing to remove at the end

    def getbasetemp(self) -> Path:
        """The directory of the ranks."""
        return Path(self._world.common_directory())

    def mktemp(self, basename: str, numbered: bool = True) -> Path:
        """A directory; the n-th call with a name returns the same one in every rank."""
        name = basename
        if numbered:
            number = self._numbers.get(basename, 0)
            self._numbers[basename] = number + 1
            name = f"{basename}{number}"
        path = self.getbasetemp() / name
        path.mkdir(mode=0o700, exist_ok=True)
        return path
