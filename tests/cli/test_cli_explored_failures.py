"""The report of `pysmpi explore` about a failure."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from pysmpi.cli.explore import _show_failure
from pysmpi.cli.main import status_of
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


WRITES_EARLY = """
import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
values = np.zeros(3)
if comm.rank == 0:
    request = comm.Irecv(values, source=1)
    values[0] = 1.0
    request.Wait()
else:
    comm.Send(values, 0)
"""
FAILS = """
import sys
from mpi4py import MPI

sys.exit(MPI.COMM_WORLD.rank)
"""


@pytest.mark.parametrize(
    ("source", "options", "checks"),
    [
        (WRITES_EARLY, [], True),
        (WRITES_EARLY, ["--check", "buffers"], True),
        # A run without checkers fails as well.
        (FAILS, [], False),
    ],
)
def test_the_printed_command_has_the_checker_that_has_found_the_failure(
    source: str,
    options: list[str],
    checks: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("program.py").write_text(source)
    search = ["explore", "-q", "-n", "2", "-j", "1", "--database", "none", "--no-shrink"]
    assert status_of([*search, *options, "--json", "found.json", "program.py"]) == 1
    command = json.loads(Path("found.json").read_text())["failures"][0]["command"]
    assert command.count("--check") == checks
    capsys.readouterr()
    assert status_of(shlex.split(command)[1:]) != 0
    assert ("PSM115" in capsys.readouterr().err) == checks
