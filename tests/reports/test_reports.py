"""Reports of runs: one name for one thing, as in the schema."""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import pysmpi
from pysmpi.cli.main import status_of
from pysmpi.reports import glances
from pysmpi.reports import result as results

SCHEMA = json.loads((Path(results.__file__).parent / "report.schema.json").read_text())

PROGRAM = """
import numpy as np
from mpi4py import MPI

def work(x):
    return np.ones(100_000) * x

for x in range(20):
    work(x)
MPI.COMM_WORLD.allreduce(1)
"""


def check(report: dict[str, Any]) -> dict[str, Any]:
    """Check a report, as JSON holds it, against the schema."""
    report = json.loads(json.dumps(report))
    jsonschema.Draft202012Validator(SCHEMA).validate(report)
    return report


def test_the_schema_is_one_and_of_this_version() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["properties"]["schema"]["const"] == results.SCHEMA


def test_keys_are_the_attributes_of_results() -> None:
    report = check(pysmpi.run(lambda: None, 2, compute="none").report())
    attributes = {one.name for one in fields(pysmpi.Result)}
    assert set(report) - attributes == {"schema", "pysmpi"}
    assert attributes - set(report) == {"returns", "deadlock", "scene"}


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"compute": "steady"},
        {"compute": 1e-6, "platform": "graphene"},
        {"compute": "none", "sample": ["__main__:work"], "once": "files"},
        {"sample": "auto"},
        {"compute": "none", "once": ["__main__:work"]},
        {"compute": "none", "fold": ["64KiB"]},
        {"compute": "none", "data": "1KiB", "cfg": {"smpi/wtime": "1us"}, "private": ("json",)},
    ],
    ids=str,
)
def test_reports_are_what_the_schema_says(
    options: dict[str, Any], write: Callable[..., str], tmp_path: Path
) -> None:
    path = tmp_path / "report.json"
    result = pysmpi.run(write("program.py", PROGRAM), 2, report=path, **options)
    report = check(json.loads(path.read_text()))
    assert report == check(result.report())
    assert (report["wall_seconds"] is None) == (result.compute not in ("native", "steady"))
    assert report["seconds"] == result.seconds
    assert report["nprocs"] == len(report["ranks"]) == 2
    assert report["options"].keys() == {"nprocs", *options}


def test_so_are_those_of_failures() -> None:
    def wait() -> None:
        from mpi4py import MPI

        MPI.COMM_WORLD.recv()

    def fail() -> None:
        raise ValueError("wrong")

    for main, status in ((wait, 3), (fail, 1)):
        result = pysmpi.run(main, 2, compute="none", check=False)
        assert check(result.report())["exit_status"] == status


def test_those_of_the_command_line(write: Callable[..., str], tmp_path: Path) -> None:
    path, program = tmp_path / "r.json", write("program.py", PROGRAM)
    line = ["run", "-q", "-n", "2", "--compute", "none", "--report", str(path)]
    assert status_of([*line, program, "--report", "own"]) == 0
    report = check(json.loads(path.read_text()))
    again = ["pysmpi", "run", "-n", "2", "--compute", "none", program, "--report", "own"]
    assert report["command"].split() == again  # without the files that it writes
    assert report["options"] == {"nprocs": 2, "compute": "none"}
    assert status_of([*line, "--check-shadow", program]) == 0
    assert check(json.loads(path.read_text()))["check"]["passed"] is True


def test_the_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of(["run", "-q", "--compute", "none", "--report", "-", "-c", "print(1)"]) == 0
    first, report = capsys.readouterr().out.split("\n", 1)
    assert first == "1"
    assert check(json.loads(report))["nprocs"] == 1


def test_a_report_that_cannot_be_completed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def full(figures: Any, path: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pysmpi.reports.report_file.write_report", full)
    path = tmp_path / "r.json"
    result = pysmpi.run(lambda: None, compute="none", report=path, check=False)
    assert result.exit_status == 2
    assert str(result.error) == (
        f"pysmpi: error: --report {path}: cannot be written: No space left on device"
    )
    assert list(tmp_path.iterdir()) == []


def test_results_are_short_to_look_at() -> None:
    result = pysmpi.run(lambda: None, 64, compute="none")
    assert len(repr(result)) < 200 and repr(result).startswith("<Result: 64 ranks on ")
    alone = pysmpi.run(lambda: None, compute="none")
    assert str(alone).startswith("1 rank on 1 host of cluster ended")
    again = pickle.loads(pickle.dumps(result))
    assert again == result and again.report() == result.report()


def _shares_of_time(compute: str) -> tuple[str, pysmpi.Result]:
    from pysmpi.cli.summary import summary

    def main() -> None:
        import time

        from mpi4py import MPI

        if MPI.COMM_WORLD.rank == 0:
            time.sleep(0.25)
        MPI.COMM_WORLD.Barrier()

    result = pysmpi.run(main, 2, compute=compute)
    (line,) = [one for one in summary(result).splitlines() if "communication" in one]
    return line, result


@pytest.mark.parametrize("compute", ["0.25", "none"])
def test_the_summary_and_the_report_mean_the_same_by_communication(compute: str) -> None:
    line, result = _shares_of_time(compute)
    whole = sum(rank["end_seconds"] for rank in result.ranks)
    for name, pattern in (
        ("communication_seconds", r"communication ([0-9.]+)%"),
        ("wait_seconds", r"\(([0-9.]+)% waiting\)"),
        ("compute_seconds", r"compute ([0-9.]+)%"),
    ):
        share = 100.0 * sum(rank[name] for rank in result.ranks) / whole
        found = re.search(pattern, line)
        if compute == "none" and name == "compute_seconds":
            assert found is None and line.endswith("no compute was timed")
        else:
            assert found is not None and float(found[1]) == pytest.approx(share, abs=0.06)
    assert "sleep and waits outside MPI" in line


@pytest.mark.parametrize(
    "computing, waiting, said",
    [(0.92, 0.08, "92% computing"), (0.55, 0.40, "55% computing"), (0.40, 0.55, "most in Wait"),
     (0.02, 0.90, "most in Wait"), (0.10, 0.02, None)],
)  # fmt: skip
def test_the_limit_line_says_what_limits(
    computing: float, waiting: float, said: str | None
) -> None:
    class Looked:
        def limit(self, share: float) -> str:
            assert share == pytest.approx(waiting)
            return "most in Wait"

    ranks: Any = [
        {
            "rank": rank, "begin_seconds": 2.0, "end_seconds": 3.0,
            "compute_seconds": computing, "wait_seconds": waiting,
        }
        for rank in range(4)
    ]  # fmt: skip
    looked: Any = Looked()
    assert glances.limit(ranks, looked) == said
    ranks[2]["compute_seconds"] = 1.5 * computing
    assert "rank 2 computes" in str(glances.limit(ranks, looked)) or computing < 0.2
