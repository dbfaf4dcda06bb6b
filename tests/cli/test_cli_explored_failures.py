"""The report of `pysmpi explore` about a failure."""

from __future__ import annotations

import pytest

from pysmpi.cli.explore import _show_failure
from pysmpi.explore.exploration import FailingOrder

FIRST, SECOND = "rank 0 takes the message of rank 2", "rank 1 takes the message of rank 0"


@pytest.mark.parametrize(
    ("number", "schedule", "lines"),
    [
        (None, "o1", []),
        (0, "o1", ["every tried order fails"]),
        (0, "s1", ["every tried order fails, if no standard send is buffered"]),
        (1, "o1", ["inevitable after event 1 of 2:", FIRST]),
        (2, "o1", ["inevitable after event 2 of 2:", SECOND]),
        (3, "o1", []),
    ],
)
def test_where_a_failure_becomes_inevitable(
    capsys: pytest.CaptureFixture[str], number: int | None, schedule: str, lines: list[str]
) -> None:
    failure = FailingOrder(
        "PSM101", schedule, "PSM101 deadlock\n", 3, [], deviations=1, sites=[FIRST, SECOND],
        inevitable=number, found_after=4, command="pysmpi run program.py",
    )  # fmt: skip
    _show_failure(failure)
    shown = [line.strip() for line in capsys.readouterr().err.splitlines()]
    assert shown == [
        "PSM101 deadlock",
        "found by execution 4; 1 decision differs from the default order",
        *lines,
        "repeat: pysmpi run program.py",
    ]
