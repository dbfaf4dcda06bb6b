"""What docs/coherence.md shows works as written."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pysmpi.cli.main import status_of
from pysmpi.memory.coherence import protocol

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "coherence.md").read_text()


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def commands():
    lines = "".join(blocks("")).splitlines()
    return [line.partition("#")[0].split()[1:] for line in lines if line.startswith("pysmpi ")]


def test_the_table_is_the_one_that_ships(tmp_path):
    (text,) = blocks("yaml")
    path = tmp_path / "table.yaml"
    path.write_text(text)
    assert protocol(path).rules == protocol("MESI").rules


def test_the_code_runs():
    (code,) = [block for block in blocks("python") if "assert" in block]
    exec(code, {})


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_the_commands_run(words, tmp_path, monkeypatch, capsys):
    (code,) = [block for block in blocks("python") if block.startswith("# flags.py")]
    (tmp_path / "flags.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    assert status_of(words) == 0
    assert capsys.readouterr().out


def test_the_figures_are_true(capsys):
    rows = {}
    for name in ("sr1", "sr2"):
        rows[name] = []
        for table in ("FAME-A", "FAME-B"):
            words = ["coherence", "study", name, "--protocol", table]
            assert status_of([*words, "--distance", "0", "--distance", "2"]) == 0
            found = re.findall(r"hold +([\d.]+) us +([\d.]+)", capsys.readouterr().out)
            rows[name].append([float(latency) for latency, _ in found])
    for line, position in (("protocol A", 0), ("protocol B", 1)):
        (shown,) = re.findall(rf"^\| {line} \| (.*) \| (.*) \|$", PAGE, re.MULTILINE)
        for cell, name in zip(shown, ("sr1", "sr2")):
            near, _, far = (float(part) for part in cell.split(" / "))
            assert [near, far] == pytest.approx(rows[name][position], abs=0.0051)
