"""Common tools read pysmpi's traces."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from test_trace_formats import exchange

import pysmpi
from pysmpi.trace.lines import read_lines


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run in several formats."""
    found = tmp_path_factory.mktemp("run")
    for suffix in ("jsonl", "paje", "csv", "json"):
        pysmpi.run(exchange, 4, trace=found / f"run.{suffix}", platform="graphene", compute="2us")
    return found


@pytest.mark.skipif(shutil.which("pj_dump") is None, reason="needs pajeng (apt install pajeng)")
def test_pajeng_reads_paje(folder):
    run = subprocess.run(
        ["pj_dump", folder / "run.paje"], capture_output=True, text=True, check=True, timeout=300
    )
    assert run.stderr == ""
    rows = [line.split(", ") for line in run.stdout.splitlines()]
    recording = read_lines(folder / "run.jsonl")
    states = Counter((row[1], row[-1]) for row in rows if row[0] == "State")
    assert states == Counter((f"rank {call.rank}", call.name) for call in recording.calls)
    links = Counter((row[-3], row[-2]) for row in rows if row[0] == "Link")
    assert links == Counter(
        (f"rank {one.source}", f"rank {one.destination}") for one in recording.messages
    )
    assert max(float(row[4]) for row in rows if row[0] == "Container") == pytest.approx(
        recording.seconds, rel=1e-5
    )


@pytest.mark.skipif(shutil.which("vite") is None, reason="needs ViTE (apt install vite)")
def test_vite_draws_paje(folder, monkeypatch, tmp_path):
    monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen")
    picture = tmp_path / "run.svg"
    run = subprocess.run(
        ["vite", "-e", picture, folder / "run.paje"],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert "0 errors and 0 warnings" in run.stdout + run.stderr
    assert all(f"rank {rank}" in picture.read_text() for rank in range(4))


def test_pandas_reads_the_table(folder):
    pandas = pytest.importorskip("pandas", reason="needs pandas (pip install pandas)")
    table = pandas.read_csv(folder / "run.csv")
    calls = table[(table["Event Type"] == "Leave") & (table["Name"] != "program")]
    recording = read_lines(folder / "run.jsonl")
    assert calls["Sent"].sum() == sum(call.sent for call in recording.calls)
    assert calls.groupby("Name").size().to_dict() == Counter(c.name for c in recording.calls)
    assert table["Timestamp (ns)"].is_monotonic_increasing


# The phases that Chrome's format has, with the fields that each must have.
FIELDS = {
    "X": {"name", "ts", "dur", "pid", "tid"},
    "M": {"name", "pid", "args"},
    "s": {"name", "cat", "id", "ts", "pid", "tid"},
    "f": {"name", "cat", "id", "ts", "pid", "tid"},
    "C": {"name", "ts", "pid", "args"},
    "i": {"name", "ts", "pid", "tid"},
}


def test_events_are_those_of_chromes_format(folder):
    document = json.loads((folder / "run.json").read_text())
    events = document["traceEvents"]
    slices = {}
    for event in events:
        assert event.keys() >= FIELDS[event["ph"]], event
        assert all(isinstance(event[key], int) for key in ("pid", "tid") if key in event)
        if event["ph"] == "X":
            slices.setdefault((event["pid"], event["tid"]), []).append(event)
    # An arrow is bound to the slice around its date, or is not drawn.
    for event in events:
        if event["ph"] in "sf":
            around = slices[event["pid"], event["tid"]]
            assert any(
                one["ts"] - 1e-3 <= event["ts"] <= one["ts"] + one["dur"] + 1e-3 for one in around
            )
        if event["ph"] == "f":
            assert event.get("bp") == "e"
