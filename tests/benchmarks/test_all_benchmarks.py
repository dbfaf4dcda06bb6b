"""`python -m benchmarks`: a missing peer is named, and figures become a page."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    spec = importlib.util.spec_from_file_location("benchmarks_all", ROOT / "benchmarks/__main__.py")
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "benchmarks_all", made)
    spec.loader.exec_module(made)
    return made


def test_missing_peers_are_named(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "--quick", "--only", "ring", "--only", "real ring",
         "--page", str(page)],
        cwd=ROOT, capture_output=True, text=True, env={**os.environ, "PATH": str(tmp_path)},
        timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for reason in ("no SMPI: smpicc and smpirun", "no MPICH: mpiexec"):
        assert sum(line.startswith(reason) for line in done.stderr.splitlines()) == 1
        assert reason in page.read_text()


def contest(module: ModuleType, ours: list[float], theirs: list[float]) -> Any:
    sides = [module.Measurement(["x"], wall=wall, processor=wall) for wall in (ours, theirs)]
    return module.Contest("ring", "a ring", 16, "SMPI", *sides, 1.0)


def test_the_ratio_is_that_of_medians_and_has_a_spread(module: ModuleType) -> None:
    found = contest(module, [2.0, 9.0, 3.0], [1.0, 6.0, 2.0])
    assert found.ratio == 1.5
    assert found.spread == (1.5, 2.0)


def test_a_page_has_all_figures_also_those_that_are_worse(module: ModuleType) -> None:
    worse = contest(module, [5.0], [1.0])
    operations = [("bcast", 1024, 1.0, 2.0), ("reduce", 1024, 2.0, 1.0)]
    costs = [module.MessageCost("halo", 16, 4.5, 9.0), module.MessageCost("halo", 65536, 5.5, None)]
    text = module.page([worse], operations, costs, ["no MPICH: nothing"])
    assert "| a ring | 16 | SMPI | 1.00 | 5.00 | 5.00 | 5.00 to 5.00 | 5.00 | 1 |" in text
    assert "| bcast | 1,024 | 1.00 | 2.00 | 2.00 |" in text
    assert "geometric mean of the ratios is 1.00" in text
    assert "| pattern | ranks | us a message | SMPI |" in text
    assert "| halo | 16 | 4.5 | 9.0 |" in text
    assert "| halo | 65,536 | 5.5 |  |" in text
    assert "Not measured: no MPICH: nothing." in text


def test_a_chart_is_drawn(module: ModuleType, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="charts need matplotlib, an extra")
    path = tmp_path / "chart.svg"
    contests = [contest(module, [5.0], [1.0]), contest(module, [1.0], [5.0])]
    operations = [("bcast", 1024, 1.0, 2.0), ("reduce", 1024, 4.0, 2.0), ("scan", 102400, 1.0, 3.0)]
    bars = list(module.bars(contests, operations))
    assert [bar.ratio for bar in bars] == pytest.approx([5.0, 0.2, 1.0, 3.0])
    assert bars[2].spread == (0.5, 2.0)
    module.draw(bars, path)
    assert path.read_text().count("<svg") == 1


def test_figures_are_read_back(module: ModuleType) -> None:
    found = contest(module, [2.0, 9.0, 3.0], [1.0, 6.0, 2.0])
    found.predicted = 1.0, 1.001
    again = module.restored(json.loads(json.dumps(found.record())))
    assert again.cells() == found.cells()
    assert again.predicted == found.predicted
