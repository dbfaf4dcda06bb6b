"""`pysmpi coherence tune` from the command line."""

import json

import pytest
from click.testing import CliRunner

from pysmpi.cli.main import command, status_of


def tune(*args):
    result = CliRunner().invoke(command, ["coherence", "tune", *args], standalone_mode=False)
    assert result.exception is None, result.exception
    return result.output


def test_the_table_of_the_documentation():
    from pathlib import Path

    page = (Path(__file__).resolve().parents[2] / "docs" / "papers" / "lines.md").read_text()
    assert tune("--machine", "xeon-phi-5110p", "--threads", "30") in page


@pytest.mark.parametrize(
    ("threads", "broadcast", "reduction", "barrier"),
    [
        (30, "d=2, k=5,5", "d=3, k=3,3,2", "m=6, r=2"),
        (60, "d=3, k=4,4,3", "d=3, k=4,4,3", "m=4, r=3"),
    ],
)
@pytest.mark.parametrize("slope", ["48ns", "115ns"])
def test_printed_parameters(threads, broadcast, reduction, barrier, slope):
    found = json.loads(tune("--threads", str(threads), "--contention", slope, "--json"))
    rows = {row["collective"]: row for row in found["collectives"]}
    assert rows["small broadcast"]["parameters"] == broadcast
    assert rows["small reduction"]["parameters"] == reduction
    assert rows["barrier, r=ceil(log_m n)"]["parameters"] == barrier
    assert all(row["best_ns"] <= row["worst_ns"] for row in rows.values())


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--threads", "1"], "expected at least 2"),
        (["--machine", "cluster"], "expected a computer with a node that has latencies"),
        (["--contention", "fast"], "fast"),
    ],
)
def test_bad_input_is_one_line(args, message, capsys):
    assert status_of(["coherence", "tune", *args]) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1


def test_pingpongs_of_the_paper():
    args = ["coherence", "pingpong", "--lines", "1,100", "--json"]
    result = CliRunner().invoke(command, args, standalone_mode=False)
    assert result.exception is None, result.exception
    found = json.loads(result.output)
    assert found["one_line_ns"]["exclusive"]["exclusive"] == pytest.approx(479.1)
    # Printed as 748.1, from a table with one decimal.
    assert found["one_line_ns"]["invalid"]["exclusive"] == pytest.approx(748.1, abs=0.15)
    assert found["lines_ns"]["100"]["exclusive"] == pytest.approx(7600 + 1521.0 - 10.96)
    assert found["lines_ns"]["100"]["invalid"] == pytest.approx(9490 + 2750.0 - 20.175)


def test_pingpongs_as_a_table(capsys):
    assert status_of(["coherence", "pingpong", "--machine", "xeon-e5-2650", "--cores", "2"]) == 0
    near = capsys.readouterr().out
    assert status_of(["coherence", "pingpong", "--machine", "xeon-e5-2650"]) == 0
    assert near.count("\n") == 11 and capsys.readouterr().out != near
    assert status_of(["coherence", "pingpong", "--lines", "0"]) == 2
    assert "expected whole numbers above 0" in capsys.readouterr().err
