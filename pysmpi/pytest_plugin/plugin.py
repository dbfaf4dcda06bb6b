"""The hooks of the plugin in every session; everything else is loaded when a test needs ranks."""

from __future__ import annotations

from importlib import import_module
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

import pytest

from pysmpi.own_process import interruption
from pysmpi.pytest_plugin import outer_mpi, plans

_RUNNER = "pysmpi-runner"
_ISOLATING = "pytest_isolate_mpi"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("mpi", "tests on simulated MPI ranks (pysmpi)")
    group.addoption(
        "--mpi-ranks", metavar="N,...", default=None,
        help="Numbers of ranks of tests whose mark gives none (default: 2).",
    )  # fmt: skip
    group.addoption(
        "--mpi-seed", metavar="K", type=int, default=None,
        help="Run tests in one order of events, the one that a failure names.",
    )  # fmt: skip
    group.addoption(
        "--mpi-real", action="store_true", default=False,
        help="Do not simulate: use the installed MPI library, in one process.",
    )  # fmt: skip
    if _other_plugin() != "pytest-mpi":
        group.addoption(
            "--with-mpi", action="store_true", default=False,
            help="Run all tests on ranks, as mpiexec does.",
        )  # fmt: skip
        group.addoption(
            "--only-mpi", action="store_true", default=False,
            help="As --with-mpi, but skip tests without the mark mpi.",
        )  # fmt: skip


def _other_plugin() -> str:
    """The one of the two plugins with a module `pytest_mpi` that is installed."""
    spec = PathFinder.find_spec("pytest_mpi")
    if spec is None or spec.origin is None:
        return ""
    inner = Path(spec.origin).parent
    return "mpi-pytest" if (inner / "parallel_assert.py").exists() else "pytest-mpi"


def _simulates(config: pytest.Config) -> bool:
    return not config.getoption("mpi_real", False) and not plans.launched()


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config, args: list[str]) -> None:
    if "--mpi-real" not in args and not plans.launched():
        outer_mpi.install()
        early_config.add_cleanup(outer_mpi.remove)


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    for line in (
        "mpi(ranks, schedules=1, timeout=None, unit='s', min_size=None, **options): run the test "
        "on simulated MPI ranks; options are those of pysmpi.run",
        "parallel(nprocs=3): run the test on nprocs simulated MPI ranks",
        "mpi_skip: skip the test on ranks", "mpi_break: skip the test on ranks",
        "mpi_xfail: the test fails on ranks",
    ):  # fmt: skip
        config.addinivalue_line("markers", line)
    if _simulates(config):
        # It starts mpirun for each test; its marks, fixtures and options work without it.
        for plugin in config.pluginmanager.get_plugins():
            kind = type(plugin)
            if kind.__name__ == "MPIPlugin" and kind.__module__.startswith(_ISOLATING):
                config.pluginmanager.unregister(plugin)
                break


def pytest_report_header(config: pytest.Config) -> str | None:
    if plans.WORKER in config.stash or not _simulates(config) or not plans.everything(config):
        return None
    sizes = ", ".join(str(size) for size in plans.default_sizes(config))
    return f"pysmpi: all tests run on simulated ranks ({sizes})"


@pytest.hookimpl(trylast=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    plan = plans.plan_of(metafunc.definition, metafunc.fixturenames, metafunc.config)
    if plan is None or not plan.parameter:
        return
    given = getattr(metafunc, "_calls", ())
    if any(plan.parameter in call.params for call in given):
        return  # another plugin, or the test itself, has done so
    if plan.parameter not in metafunc.fixturenames:
        metafunc.fixturenames.append(plan.parameter)
    word = "nprocs" if plan.parameter == "_nprocs" else "ranks"
    metafunc.parametrize(
        plan.parameter, plan.sizes, ids=[f"{word}={size}" for size in plan.sizes], scope="module"
    )


def pytest_itemcollected(item: pytest.Item) -> None:
    """Let `-m "parallel[2]"` select tests by their number of ranks, as with mpi-pytest."""
    config = item.config
    if "parallel[" not in (config.getoption("markexpr", "") or ""):
        return
    if _other_plugin() == "mpi-pytest":
        return
    plan = plans.plan_of(item, getattr(item, "fixturenames", ()), config)
    name = f"parallel[{1 if plan is None else plans.size_of(item, plan)}]"
    config.addinivalue_line("markers", f"{name}: tests on this number of ranks")
    item.add_marker(name)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    own_rules = _other_plugin() != "pytest-mpi"
    for item in items:
        plans.plan_of(item, getattr(item, "fixturenames", ()), config)
        if own_rules and plans.everything(config):
            _mark_for_ranks(config, item)
    if plans.WORKER in config.stash:
        return
    if not _simulates(config):
        return
    if any(item.stash[plans.PLAN] is not None for item in items):
        if not config.pluginmanager.has_plugin(_RUNNER):
            with interruption.held():
                module = import_module("pysmpi.pytest_plugin.runner")
            config.pluginmanager.register(module.Runner(config), _RUNNER)


def _mark_for_ranks(config: pytest.Config, item: pytest.Item) -> None:
    """The marks of pytest-mpi, where all tests run on ranks."""
    if config.getoption("only_mpi", False):
        if "mpi" not in item.keywords:
            item.add_marker(pytest.mark.skip(reason="test does not use mpi"))
        return
    if "mpi_skip" in item.keywords or "mpi_break" in item.keywords:
        item.add_marker(pytest.mark.skip(reason="test does not work under mpi"))
    if "mpi_xfail" in item.keywords:
        item.add_marker(pytest.mark.xfail(reason="test fails under mpi"))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """In a rank, and under a real launcher: skip tests for other numbers of ranks."""
    config = item.config
    inner = plans.WORKER in config.stash
    if not inner and not plans.launched():
        return
    plan = plans.plan_of(item, getattr(item, "fixturenames", ()), config)
    mark = item.get_closest_marker("mpi")
    if plan is None or mark is None:
        return
    size = _world().size
    least = mark.kwargs.get("min_size")
    if least is not None and size < least:
        pytest.skip(
            f"Test requires {least} MPI processes, only {size} MPI processes specified, "
            "skipping test"
        )
    named = mark.args or "ranks" in mark.kwargs
    if not inner and named and size != plans.size_of(item, plan):
        pytest.skip(f"the test is for {plans.size_of(item, plan)} ranks, and there are {size}")


# Fixtures


def _world() -> Any:
    """The communicator of all ranks."""
    return import_module("mpi4py.MPI").COMM_WORLD


@pytest.fixture(scope="session")
def comm() -> object:
    """The communicator of all ranks, `MPI.COMM_WORLD`."""
    return _world()


@pytest.fixture
def mpi_ranks() -> int:
    """The number of ranks that run the test."""
    return int(_world().size)


def _from_first(make: Any) -> Any:
    """The value that `make()` returns in rank 0."""
    world = _world()
    return world.bcast(make() if world.rank == 0 else None, root=0)


@pytest.fixture
def mpi_tmp_path(request: pytest.FixtureRequest) -> Path:
    """A temporary directory, the same in all ranks."""
    return Path(_from_first(lambda: str(request.getfixturevalue("tmp_path"))))


@pytest.fixture
def mpi_tmpdir(request: pytest.FixtureRequest) -> object:
    """A temporary directory, the same in all ranks, as an object of `py.path`."""
    kind = type(request.getfixturevalue("tmpdir"))
    return kind(_from_first(lambda: str(request.getfixturevalue("tmpdir"))))


@pytest.fixture
def mpi_file_name(mpi_tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """The name of a temporary file, the same in all ranks."""
    return str(mpi_tmp_path / f"{request.node}.hdf5")
