"""`pysmpi run --seeds`: percentiles of the predicted time, and the ranks that end last."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from pysmpi.cli.main import status_of
from pysmpi.cli.seeds import SeededEnd, interval, lines, percentile, report

PROGRAM = """
from mpi4py import MPI
comm = MPI.COMM_WORLD
for _ in range(20):
    comm.Allreduce(bytearray(8), bytearray(8), op=MPI.BOR)
if comm.rank == 0:
    print("printed once")
"""

RUN = ["run", "-n", "4", "--map-by", "node", "--compute", "none"]


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "steps.py"
    path.write_text(PROGRAM)
    return str(path)


def seeds(*words: str) -> int:
    return status_of([*RUN, *words])


def test_the_distribution_of_noisy_runs(program: str, tmp_path: Path, pysmpi: Any) -> None:
    file = tmp_path / "report.json"
    words = ["--fault", "jitter:time=2us", "--seeds", "6", "--seed", "3", "--report", str(file)]
    done = pysmpi(*RUN, *words, program)
    assert done.returncode == 0 and done.stdout == "printed once\n"
    assert "pysmpi: predicted time of 6 seeds: p10 " in done.stderr
    assert "last to end in the slowest 1 run: rank " in done.stderr
    found = json.loads(file.read_text())
    assert found["seeds"] == [3, 4, 5, 6, 7, 8] and len(set(found["seconds"])) == 6
    assert min(found["seconds"]) < found["p10"] < found["p50"] < found["p90"]
    # A run with one of the seeds is the same.
    assert seeds("--fault", "jitter:time=2us", "--seed", "5", "--report", str(file), program) == 0
    assert json.loads(file.read_text())["seconds"] == found["seconds"][2]


def test_runs_without_noise_are_equal(program: str, capfd: Any) -> None:
    assert seeds("--seeds", "2", program) == 0
    assert "all times are equal: --noise linux-cluster and --fault jitter:time=2us add noise" in (
        capfd.readouterr().err
    )
    assert seeds("--seeds", "2", "-q", program) == 0
    assert capfd.readouterr().err == ""


def test_the_first_failure_ends_it(tmp_path: Path, capfd: Any) -> None:
    path = tmp_path / "failing.py"
    path.write_text("import sys\nfrom mpi4py import MPI\nsys.exit(7)\n")
    assert seeds("--seeds", "3", str(path)) == 7
    printed = capfd.readouterr().err
    assert printed.count("the run with --seed") == 1 and "--seed 0 ended with 7" in printed


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--seeds", "1"], "--seeds"),
        (["--seeds", "2", "--trace", "run.jsonl"], "expected no --trace"),
        (["--seeds", "2", "--view", "run.html"], "expected no --view"),
        (["--seeds", "2", "--record-compute", "x.json"], "expected no --record-compute"),
        (["--seeds", "2", "--explain-speed"], "--seeds: expected one program"),
    ],
)
def test_what_cannot_be_repeated_is_refused(
    words: list[str], message: str, program: str, capfd: Any
) -> None:
    assert seeds(*words, program) == 2
    assert message in capfd.readouterr().err


def test_other_commands_have_no_seeds(program: str, capfd: Any) -> None:
    assert status_of(["explore", "-n", "2", "--seeds", "3", program]) == 2
    assert "explore: expected no --seeds" in capfd.readouterr().err


def test_percentiles_and_the_tail() -> None:
    assert percentile([4.0, 1.0, 3.0, 2.0], 50) == 2.5
    assert percentile([1.0, 2.0], 0) == 1.0 and percentile([1.0, 2.0], 100) == 2.0
    ends = [SeededEnd(1.0 + 0.01 * number, 0) for number in range(18)]
    ends += [SeededEnd(5.0, 3), SeededEnd(4.0, 3)]
    first, _, second = lines(ends)
    assert first.startswith("predicted time of 20 seeds: p10 1.019 s, p50 1.095 s, p90 1.453 s")
    assert second == "last to end in the slowest 2 runs: rank 3 in 2"
    assert report(ends, 5)["last_ranks"] == [0] * 18 + [3, 3]


def test_the_interval_of_one_more_seed_contains_it_in_90_percent() -> None:
    """Of log-normal times, whatever the number of seeds."""
    draw = random.Random(4)
    for count in (2, 3, 4, 8, 30):
        inside = 0
        for _ in range(4000):
            times = [draw.lognormvariate(-7.0, 0.1) for _ in range(count + 1)]
            low, high = interval(times[:-1]) or (0.0, 0.0)
            inside += low <= times[-1] <= high
        assert inside / 4000 == pytest.approx(0.9, abs=0.02), count
    assert interval([1.0]) is None


def test_the_interval_is_in_the_text_and_in_the_report() -> None:
    ends = [SeededEnd(1.0, 0), SeededEnd(1.1, 1), SeededEnd(1.05, 1)]
    low, high = interval([1.0, 1.1, 1.05]) or (0.0, 0.0)
    assert low < 1.0 < 1.1 < high
    assert report(ends, 0)["interval"] == (low, high)
    assert any(one.startswith("90 % interval of one more seed: ") for one in lines(ends))
