"""`pysmpi run --explain-speed`: the parts of the wall time of a run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pysmpi.kernel.meter import KERNEL, LISTENERS, MPI, PARTS, PROGRAM, SOLVER
from pysmpi.reports import explain_speed
from pysmpi.reports.explain_speed import MeteredTimer, WallMeter

PROGRAM_TEXT = """
import numpy as np
from mpi4py import MPI
comm = MPI.COMM_WORLD
out, into = np.zeros(1000), np.zeros(1000)
for _ in range({exchanges}):
    comm.Sendrecv(out, (comm.rank + 1) % comm.size, 0, into, (comm.rank - 1) % comm.size)
{work}
"""


def run(path: Path, *options: str, exchanges: int = 30, work: str = "") -> str:
    program = path / "program.py"
    program.write_text(PROGRAM_TEXT.format(exchanges=exchanges, work=work))
    done = subprocess.run(
        [sys.executable, "-m", "pysmpi", "run", "-n", "8", "--platform", "graphene",
         "--compute", "none", *options, str(program)],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stderr


def shares(said: str) -> dict[str, int]:
    [line] = re.findall(r"^pysmpi: wall time .*?: (.*)$", said, re.MULTILINE)
    found = {}
    for entry in line.split(", "):
        name, _, percent = entry.rpartition(" ")
        found[name] = int(percent.rstrip("%"))
    return found


def test_the_parts_are_shown_and_the_prediction_stays(tmp_path: Path) -> None:
    explained = run(tmp_path, "--explain-speed", exchanges=2000)
    plain = run(tmp_path, exchanges=2000)
    found = shares(explained)
    assert {"MPI layer", "kernel"} < set(found) <= set(PARTS)
    assert 95 <= sum(found.values()) <= 105
    assert list(found.values()) == sorted(found.values(), reverse=True)
    predicted = [re.findall("predicted time [^:]*", said) for said in (explained, plain)]
    assert predicted[0] and predicted[0] == predicted[1]
    assert "wall time" not in plain


def test_a_program_that_computes_is_the_largest_part(tmp_path: Path) -> None:
    said = run(tmp_path, "--explain-speed", work="sum(range(3_000_000))")
    assert next(iter(shares(said))) == "program"
    assert "--sample" in said


def test_a_trace_counts_as_listener(tmp_path: Path) -> None:
    trace = str(tmp_path / "run.json")
    assert "listeners" in shares(run(tmp_path, "--explain-speed", "--trace", trace, exchanges=1000))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [0.0]
    monkeypatch.setattr(explain_speed, "perf_counter", lambda: now[0])
    return now


def test_each_part_gets_its_time(clock: list[float]) -> None:
    meter = WallMeter()

    class Inner:
        def start(self) -> None:
            clock[0] += 0.25

        def stop(self) -> float:
            clock[0] += 0.25
            return 1.5

    timer: Any = MeteredTimer(meter, Inner())
    timer.start()
    clock[0] += 2.5
    assert timer.stop() == 1.5
    assert meter.enter(KERNEL) == MPI
    clock[0] += 3.0
    assert meter.enter(SOLVER) == KERNEL
    clock[0] += 1.0
    told = []

    def method(value: int) -> None:
        clock[0] += 3.0
        told.append(value)

    meter._metered(method)(7)
    assert told == [7]
    found = meter.shares()
    assert (found[PROGRAM], found[KERNEL], found[SOLVER], found[LISTENERS]) == (0.3, 0.3, 0.1, 0.3)
