"""Marks of tests say on how many ranks they run, how often and how long."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pysmpi.pytest_plugin.plans import DEFAULT_RANKS, WrongMark, find_plan, size_of, sizes_of_text


class Options:
    """The command line of pytest."""

    def __init__(self, **options: Any) -> None:
        self.options = options

    def getoption(self, name: str, default: Any = None) -> Any:
        return self.options.get(name, default)


def node_with(mark: pytest.MarkDecorator) -> Any:
    return SimpleNamespace(
        nodeid="test_it", get_closest_marker=lambda name: mark.mark if name == mark.name else None
    )


@pytest.mark.parametrize(
    ("mark", "options", "sizes"),
    [
        (pytest.mark.mpi, {}, (DEFAULT_RANKS,)), (pytest.mark.mpi(3), {}, (3,)),
        (pytest.mark.mpi(ranks=[1, 4]), {}, (1, 4)), (pytest.mark.mpi(min_size=9), {}, (9,)),
        (pytest.mark.mpi(min_size=1), {}, (DEFAULT_RANKS,)),
        (pytest.mark.mpi(min_size=2), {"mpi_ranks": "3,4"}, (3, 4)),
        (pytest.mark.parallel(5), {}, (5,)), (pytest.mark.parallel(nprocs=(2, 3)), {}, (2, 3)),
    ],
)  # fmt: skip
def test_numbers_of_ranks(mark: Any, options: dict[str, Any], sizes: tuple[int, ...]) -> None:
    config: Any = Options(**options)
    plan = find_plan(node_with(mark), [], config)
    assert plan is not None and plan.sizes == sizes
    assert bool(plan.parameter) == (len(sizes) > 1)


@pytest.mark.parametrize(("unit", "seconds"), [("s", 2.0), ("m", 120.0), ("h", 7200.0)])
def test_limits_have_units(unit: str, seconds: float) -> None:
    config: Any = Options()
    plan = find_plan(node_with(pytest.mark.mpi(2, timeout=2, unit=unit)), [], config)
    assert plan is not None and plan.timeout == seconds


@pytest.mark.parametrize(
    "arguments",
    [{"timeout": 0}, {"timeout": "1"}, {"unit": "d"}, {"schedules": 0}, {"schedules": True},
     {"ranks": 0}, {"ranks": []}, {"ranks": "2"}, {"ranks": True}],
    ids=str,
)  # fmt: skip
def test_wrong_values_are_refused(arguments: dict[str, Any]) -> None:
    config: Any = Options()
    with pytest.raises(WrongMark, match="test_it: @pytest.mark.mpi: .*expected"):
        find_plan(node_with(pytest.mark.mpi(**arguments)), [], config)


def test_numbers_on_the_command_line() -> None:
    assert sizes_of_text("2,4") == sizes_of_text("2 4") == (2, 4)
    for wrong in ("", "0", "2,x", "-1"):
        with pytest.raises(WrongMark, match="--mpi-ranks"):
            sizes_of_text(wrong)


def test_a_parametrized_test_has_its_own_number() -> None:
    config: Any = Options()
    plan = find_plan(node_with(pytest.mark.mpi(ranks=[2, 5])), [], config)
    assert plan is not None
    item = SimpleNamespace(callspec=SimpleNamespace(params={plan.parameter: 5}))
    assert size_of(item, plan) == 5
    assert size_of(SimpleNamespace(), plan) == 2
    assert size_of(SimpleNamespace(callspec=SimpleNamespace(params={})), plan) == 2
