"""Plans of tests from the marks of pysmpi, mpi-pytest, pytest-mpi and pytest-isolate-mpi."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from pysmpi.text import whole

DEFAULT_RANKS = 2  # of `mpi` without a number
DEFAULT_PARALLEL = 3  # of `parallel` without a number, as with mpi-pytest
UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}
MOST_FLAG = "PYTEST_MPI_MAX_NPROCS"  # the environment variable of mpi-pytest
OWN = frozenset("ranks schedules timeout unit min_size".split())

# Variables that the launchers of MPI libraries set.
_LAUNCHERS = (
    "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMI_RANK", "PMIX_RANK", "MV2_COMM_WORLD_SIZE",
    "MPI_LOCALNRANKS", "ALPS_APP_PE", "PALS_NODEID", "PYTEST_ISOLATE_MPI_IS_FORKED",
)  # fmt: skip


def launched() -> bool:
    """Whether this process is a rank already: of a real launcher, or of `pysmpi run`."""
    return any(name in os.environ for name in _LAUNCHERS)


class WrongMark(pytest.UsageError, pytest.Collector.CollectError):  # type: ignore[misc]
    """A mark or an option has a wrong argument: pytest shows the text alone."""


@dataclass(frozen=True)
class ItemPlan:
    """The way in which a test function is run.

    `sizes` are numbers of ranks, a test for each. `parameter` is the name of the parameter that
    has the number, "" if there is only one and the test does not ask for it. `timeout` is in
    seconds, of simulated and of real time; None is without a limit. `options` are those of
    `pysmpi.run`.
    """

    sizes: tuple[int, ...]
    parameter: str = ""
    schedules: int = 1
    timeout: float | None = None
    options: Mapping[str, object] = field(default_factory=dict)


# In sessions of ranks: the worker, see worker.py.
WORKER: pytest.StashKey[object] = pytest.StashKey()
PLAN: pytest.StashKey[ItemPlan | None] = pytest.StashKey()


def plan_of(node: Any, names: Any, config: pytest.Config) -> ItemPlan | None:
    """The plan of a node, which keeps it."""
    plan = node.stash.get(PLAN, False)
    if plan is False:
        plan = node.stash[PLAN] = find_plan(node, names, config)
    result: ItemPlan | None = plan
    return result


def find_plan(node: Any, names: Sequence[str], config: pytest.Config) -> ItemPlan | None:
    """The plan of a function or item with the fixtures `names`; None for one process.

    Raises WrongMark for marks with wrong arguments.
    """
    mark = node.get_closest_marker("parallel")
    if mark is not None:
        return _parallel(mark, node)
    mark = node.get_closest_marker("mpi")
    if mark is None:
        if not everything(config):
            return None
        return ItemPlan(default_sizes(config), "mpi_ranks")
    return _mpi(mark, node, names, config)


def everything(config: pytest.Config) -> bool:
    """Whether all tests run on ranks, as under mpiexec."""
    return bool(config.getoption("with_mpi", False) or config.getoption("only_mpi", False))


def default_sizes(config: pytest.Config) -> tuple[int, ...]:
    """Numbers of ranks where a mark gives none."""
    given = config.getoption("mpi_ranks", None)
    return sizes_of_text(given) if given else (DEFAULT_RANKS,)


def sizes_of_text(text: str) -> tuple[int, ...]:
    """The numbers of `--mpi-ranks 2,4`."""
    words = text.replace(",", " ").split()
    if not words or not all(map(whole, words)):
        raise WrongMark(
            f"--mpi-ranks {text}: expected numbers of at least 1, such as --mpi-ranks 2,4"
        )
    return tuple(int(word) for word in words)


def _sizes(value: object, where: str) -> tuple[int, ...]:
    result = (
        tuple(value) if isinstance(value, Iterable) and not isinstance(value, str) else (value,)
    )
    for size in result:
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            raise WrongMark(
                f"{where}: expected a number of ranks of at least 1, or a list, got {value!r}"
            )
    if not result:
        raise WrongMark(f"{where}: expected at least one number of ranks, got none")
    return result


def _parallel(mark: pytest.Mark, node: Any) -> ItemPlan:
    where = f"{node.nodeid}: @pytest.mark.parallel"
    if len(mark.args) == 1 and not mark.kwargs:
        sizes = _sizes(mark.args[0], where)
    elif set(mark.kwargs) == {"nprocs"} and not mark.args:
        sizes = _sizes(mark.kwargs["nprocs"], where)
    elif not mark.args and not mark.kwargs:
        sizes = (DEFAULT_PARALLEL,)
    else:
        raise WrongMark(f"{where}: expected one argument, nprocs")
    most = os.environ.get(MOST_FLAG)
    if most is not None and max(sizes) > int(most):
        wanted = f"expected at most {most} ranks ({MOST_FLAG}), got {max(sizes)}"
        raise WrongMark(f"{where}: {wanted}")
    return ItemPlan(sizes, "_nprocs" if len(sizes) > 1 else "")


def _mpi(mark: pytest.Mark, node: Any, names: Sequence[str], config: pytest.Config) -> ItemPlan:
    where = f"{node.nodeid}: @pytest.mark.mpi"
    given = dict(mark.kwargs)
    if len(mark.args) > 1 or (mark.args and "ranks" in given):
        raise WrongMark(f"{where}: expected one number of ranks, got {mark.args}")
    if mark.args:
        given["ranks"] = mark.args[0]
    least = given.pop("min_size", None)
    if "ranks" in given:
        sizes = _sizes(given.pop("ranks"), where)
    else:
        sizes = default_sizes(config)
        if least is not None and not config.getoption("mpi_ranks", None):
            sizes = (max(_sizes(least, f"{where}: min_size")[0], *sizes),)
    schedules = given.pop("schedules", 1)
    if not isinstance(schedules, int) or isinstance(schedules, bool) or schedules < 1:
        raise WrongMark(f"{where}: schedules: expected a number of at least 1, got {schedules!r}")
    timeout, unit = given.pop("timeout", None), given.pop("unit", "s")
    if unit not in UNITS:
        raise WrongMark(f"{where}: unit: expected s, m or h, got {unit!r}")
    if timeout is not None:
        if not isinstance(timeout, int | float) or timeout <= 0:
            raise WrongMark(f"{where}: timeout: expected a duration, got {timeout!r}")
        timeout = timeout * UNITS[unit]
    labelled = len(sizes) > 1 or "mpi_ranks" in names
    return ItemPlan(sizes, "mpi_ranks" if labelled else "", schedules, timeout, given)


def size_of(item: object, plan: ItemPlan) -> int:
    """The number of ranks of one test."""
    callspec = getattr(item, "callspec", None)
    if callspec is not None and plan.parameter in callspec.params:
        return int(callspec.params[plan.parameter])
    return plan.sizes[0]
