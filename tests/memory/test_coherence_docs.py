"""The examples of the pages on coherence work as written."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pysmpi.cli.main import status_of
from pysmpi.memory.coherence import protocol
from pysmpi.memory.primitives.placement import TransferType, latencies

pytestmark = pytest.mark.slow  # scipy solves the chains

PAPERS = Path(__file__).resolve().parents[2] / "docs" / "papers"
PAGE = "\n".join(path.read_text() for path in sorted(PAPERS.glob("coherence*.md")))


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_the_table_is_the_one_that_ships(tmp_path):
    path = tmp_path / "table.yaml"
    path.write_text(blocks("yaml")[0])
    assert protocol(path).rules == protocol("MESI").rules


def test_the_file_of_latencies_is_one(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(blocks("yaml")[1])
    priced = latencies(path)
    assert priced.of(TransferType("upgrade", 0)) == pytest.approx(30e-9)
    assert priced.of(TransferType("lookup", 0)) == pytest.approx(80e-9)
    assert priced.of(TransferType("upgrade", 1)) == pytest.approx(150e-9)


def test_the_code_runs(capsys):
    codes = [block for block in blocks("python") if "assert" in block]
    assert len(codes) == 2
    for code in codes:
        exec(code, {})
    assert "'index'" in capsys.readouterr().out


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


def test_the_figures_of_barriers_are_true(capsys):
    for name, cells in re.findall(
        r"^\| [a-z ]*\(`(barrier-\w+)`\) \| (.*) \|$", PAGE, re.MULTILINE
    ):
        shown = re.findall(r"([\d.]+) \(([\d.]+)\)", cells)
        computed = []
        for processes in ("2", "3"):
            words = ["coherence", "study", name, "--set", f"processes={processes}"]
            assert status_of([*words, "--protocol", "FAME-A", "--protocol", "FAME-B"]) == 0
            out = capsys.readouterr().out
            for latency, unit, misses in re.findall(r"hold +([\d.]+) (ns|us) +([\d.]+)", out):
                computed.append((float(latency) * {"ns": 1e-3, "us": 1}[unit], float(misses)))
        assert len(shown) == len(computed) == 4
        for (latency, misses), figures in zip(shown, computed):
            assert (float(latency), float(misses)) == pytest.approx(figures, abs=0.051)
            assert float(latency) == pytest.approx(figures[0], abs=0.00051)
