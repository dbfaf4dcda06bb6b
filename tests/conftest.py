"""The common part of all tests.

Property tests draw the same examples in every run, unless others are asked for. The end of a run
says how many tests of mpi4py's suite passed, and which suites are missing.
"""

from __future__ import annotations

import builtins
import faulthandler
import gc
import os
import signal
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from fast_tests import nothing_else
from hypothesis import HealthCheck, settings

# A test that fails once in a thousand draws should not stop an unrelated change.
# PYSMPI_HYPOTHESIS=random draws new examples, and more of them.
# The machine may be busy: no test fails because it is slow.
settings.register_profile(
    "same",
    derandomize=True,
    max_examples=50,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "random", max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(os.environ.get("PYSMPI_HYPOTHESIS", "same"))

# The real MPI to compare with is the one of this environment, whether or not it is activated.
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])

# A shell without job control lets background commands ignore some of these, and nohup the last;
# programs inherit that.
for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(
            number, signal.default_int_handler if number is signal.SIGINT else signal.SIG_DFL
        )

# A line for each number of ranks on which mpi4py's suite ran.
SUMMARIES = pytest.StashKey[list[str]]()

# The kind of a test is the mark that it bears itself, or that of its folder or file here; all
# others are slow. Fast tests need no other process, no network and only the extra `test-fast`.
TESTS = Path(__file__).parent
FAST = {"collectives", "faults", "kernel", "memory", "mpi", "network", "patching", "platform"}
PEERS = {"differential", "mpi4py_suite", "packages", "record"}
SLOW = {"collectives/test_background_and_nodes.py", "collectives/test_collective_board.py"}
EXPLORE = TESTS / "explore"
KINDS = ("peers", "slow", "fast")  # in the order of the time that their files take

_missing: set[str] = set()  # reasons for which acceptance suites were skipped


def pytest_configure(config: pytest.Config) -> None:
    config.stash[SUMMARIES] = []
    config.option.loadscopereorder = False  # pytest-xdist keeps the order of the tests


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the folders without fast tests where only these are wanted."""
    if config.option.markexpr == "fast" and collection_path.parent == TESTS:
        return collection_path.is_dir() and collection_path.name not in FAST or None
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests; several processes begin with the files that take long, so none ends late."""
    rank: dict[Path, int] = {}
    for item in items:
        place = item.path.relative_to(TESTS)
        places = {place.parts[0], place.as_posix()}
        kind = next((kind for kind in KINDS if item.get_closest_marker(kind)), "")
        if not kind:
            peers = "mpiexec" in getattr(item, "fixturenames", ()) or places & PEERS
            fast = places & FAST and not places & SLOW
            kind = "peers" if peers else "fast" if fast else "slow"
            item.add_marker(kind)
        rank[item.path] = min(KINDS.index(kind), rank.get(item.path, len(KINDS)))
    if hasattr(config, "workerinput"):  # a process of pytest-xdist
        # Explorations fork often, which takes longer the more other tests have loaded.
        items.sort(key=lambda item: (EXPLORE not in item.path.parents, rank[item.path]))


@pytest.fixture(scope="module", autouse=True)
def few_objects_to_search() -> None:
    """Let searches for cycles, of which runs make some, not look at all tests and modules."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    with nothing_else() if item.get_closest_marker("fast") else nullcontext():
        return (yield)


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., str]:
    """Write a file with dedented text; returns its path."""

    def write(name: str, text: str) -> str:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return str(path)

    return write


@pytest.fixture
def burn(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Compute some nanoseconds: nothing else moves the clock that measures compute.

    Programs find it among the builtin functions.
    """
    now = 0

    def burn(nanoseconds: int) -> None:
        nonlocal now
        now += nanoseconds

    for module, names in {
        "pysmpi.time.cpu_clock": ("thread_time_ns", "perf_counter_ns"),
        "pysmpi.shadow.passes": ("thread_time_ns",),
        "pysmpi.shadow.automatic": ("thread_time_ns",),
    }.items():
        for name in names:
            monkeypatch.setattr(f"{module}.{name}", lambda: now)
    monkeypatch.setattr(builtins, "burn", burn, raising=False)
    return burn


@pytest.fixture
def site(write, tmp_path, monkeypatch):
    """A directory of installed packages."""
    from pysmpi.isolation.loading.rules import Rules

    directory = tmp_path / "site"
    directory.mkdir()
    monkeypatch.syspath_prepend(str(directory))
    original = Rules.__init__

    def init(self, *args, **kwargs):
        original(self, *args, **kwargs)
        self.site = (*self.site, str(directory) + "/")

    monkeypatch.setattr(Rules, "__init__", init)
    return lambda name, text: write(f"site/{name}", text)


@pytest.fixture(scope="session")
def summaries(pytestconfig: pytest.Config) -> list[str]:
    """Lines to show at the end."""
    return pytestconfig.stash[SUMMARIES]


def pytest_sessionfinish(session: pytest.Session) -> None:
    output = getattr(session.config, "workeroutput", None)  # in a process of pytest-xdist
    if output is not None:
        output["summaries"] = session.config.stash[SUMMARIES]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    node.config.stash[SUMMARIES] += getattr(node, "workeroutput", {}).get("summaries", [])


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    for line in config.stash[SUMMARIES]:
        terminalreporter.write_line(line)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.skipped and isinstance(report.longrepr, tuple):
        reason = report.longrepr[2].removeprefix("Skipped: ")
        if " is not available: " in reason:
            _missing.add(reason)


def pytest_unconfigure() -> None:
    # The first process of pytest-xdist ends the others, which may wait for it for long.
    if sys.__stderr__ is not None and "PYTEST_XDIST_WORKER" not in os.environ:
        # A thread that never ends would keep the process, and with it the run, for ever.
        faulthandler.dump_traceback_later(60, exit=True, file=sys.__stderr__)
    # After all other output, so that such a run is not taken for a complete one.
    for reason in sorted(_missing):
        print(f"NOT ACCEPTED: {reason}")
