"""Commands that run a job use the instruments of its options, or refuse them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pysmpi.instruments import INSTRUMENTS, TABLE, Instrument, InstrumentKind
from pysmpi.reports.result import Result

Status = Callable[..., tuple[int, str, str]]

VALUES = {
    "trace": ["--trace", "t.jsonl"], "trace_format": ["--trace-format", "csv"],
    "report": ["--report", "r.json"], "instrument": ["--instrument", "counting"],
    "explain": ["--explain"], "view": ["--view", "v.html"], "schedule": ["--schedule", "random"],
    "replay_schedule": ["--replay-schedule", "o1"], "check": ["--check", "all"],
    "fault": ["--fault", "rank=0@1s"], "noise": ["--noise", "linux-tuned"],
}  # fmt: skip
NAMES = [name for names, _ in TABLE for name in names]
ends: list[float] = []


class Counting(Instrument):
    """Notes the ends of runs."""

    def __init__(self, argument: str | None) -> None:
        self.argument = argument

    def finish(self, result: Result) -> None:
        ends.append(result.seconds)


@pytest.fixture(autouse=True)
def counting() -> Iterator[None]:
    """An instrument of another distribution."""
    INSTRUMENTS.add(InstrumentKind("counting", "counts the ends of runs", Counting))
    ends.clear()
    yield
    INSTRUMENTS.discard("counting")


@pytest.fixture
def program(tmp_path: Path) -> str:
    """A program of two messages."""
    text = "from mpi4py import MPI\nMPI.COMM_WORLD.allreduce(1)\n"
    (tmp_path / "program.py").write_text(text)
    return "program.py"


def test_every_option_has_a_value_here() -> None:
    assert set(VALUES) == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_explore_refuses_what_it_does_not_use(status: Status, program: str, name: str) -> None:
    code, _, err = status("explore", "--runs", "1", "-n", "2", *VALUES[name], program)
    option = VALUES[name][0]
    if name in ("schedule", "check"):
        assert code == 0, err
    else:
        assert code == 2
        assert f"explore: {option} is for one run" in err


@pytest.mark.parametrize("name", NAMES)
def test_check_shadow_refuses_what_it_does_not_use(status: Status, program: str, name: str) -> None:
    line = ["run", "-q", "-n", "2", "--compute", "none", "--check-shadow"]
    code, _, err = status(*line, *VALUES[name], program)
    if name == "report":
        assert code == 0, err
    else:
        assert code == 2
        assert f"--check-shadow: runs a program twice, expected no {VALUES[name][0]}" in err


def test_run_uses_an_instrument(status: Status, program: str) -> None:
    line = ["-n", "2", "--compute", "none", "--instrument", "counting"]
    assert status("run", *line, program)[0] == 0
    assert len(ends) == 1
