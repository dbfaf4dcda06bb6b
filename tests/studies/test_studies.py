"""Every study runs in its quick form; the framework's tables, pictures and page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pysmpi.cli.main import status_of
from pysmpi.studies import framework
from pysmpi.studies.applications import application
from pysmpi.studies.drawing import draw
from pysmpi.studies.framework import (
    FigureRow,
    Panel,
    PaperStudy,
    PictureCurve,
    StudyResult,
    registry,
)
from pysmpi.studies.page import link, pages, place
from pysmpi.studies.runs import SPREAD, grid

ROOT = Path(__file__).resolve().parents[2]

# Claims that do not hold at the quick sizes, as expected: docs/papers/studies.md says why.
KNOWN = {
    "fame.misses": {"A1: of them on pointers", "A1: of them on locks"},
    "smpi.cg": {"class B, 32 ranks: efficiency with loggps, 8 ranks = 1"},
    "smpi.dft": {"speed-up on 16 ranks, loggps"},
}

# Their averages are over all sizes, their curves between the printed figures are assumed, or their
# times are measured on this computer.
UNJUDGED = {"mlogp.middleware", "smpi.ep"}


@pytest.mark.parametrize("name", registry())
def test_quick_form(name: str, tmp_path: Path) -> None:
    study = registry()[name]
    result = study.run(True)
    assert {row.what for row in result.rows if row.holds is False} == KNOWN.get(name, set())
    assert any(row.holds for row in result.rows) or name in UNJUDGED
    assert not result.holds or name not in KNOWN
    if name in KNOWN:
        assert result.remark
    if result.panels:
        picture = tmp_path / "picture.svg"
        draw(study, result, picture)
        assert "<svg" in picture.read_text()


def found(quick: bool) -> StudyResult:
    """The result of a study of a straight line."""
    curve = PictureCurve("a", (1, 2, 4), (1.0, 2.0, 4.0))
    rows = [
        FigureRow("slope", "1", "1.0", holds=True),
        FigureRow("a | b", "2", "3", "fitted", False, "4"),
    ]
    return StudyResult(rows, [Panel("line", "x", "y", [curve], "xy")], "No wonder.")


LINE = PaperStudy("papers.line", "A paper", "Figure 1", "The line is straight", found)


@pytest.fixture
def one_study(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(framework, "registry", lambda: {LINE.name: LINE})


@pytest.mark.usefixtures("one_study")
def test_a_run_prints_a_table_and_a_verdict_and_leaves_files(tmp_path, capsys) -> None:
    output = tmp_path / "out"
    assert status_of(["study", "papers", "--output", str(output), "--format", "png"]) == 0
    printed = capsys.readouterr().out
    assert "figure  paper  fitted  predicted  holds" in printed
    assert "slope   1              1.0        yes" in printed
    assert "a | b   2      3       4          NO" in printed
    assert "finding does not hold in full: The line is straight" in printed
    assert (output / "papers.line.png").read_bytes().startswith(b"\x89PNG")
    record = json.loads((output / "papers.line.json").read_text())
    assert record["rows"][0]["ours"] == "1.0" and record["holds"] is False


@pytest.mark.usefixtures("one_study")
def test_the_page_has_what_does_not_hold_and_what_was_not_run(tmp_path) -> None:
    text = pages([LINE], tmp_path)[""]
    shown = "[papers.line](studies/papers.md#papersline)"
    assert f"| {shown} | Figure 1 | not run |" in text
    path = tmp_path / "page.md"
    assert status_of(["study", "papers.line", "--output", str(tmp_path), "--page", str(path)]) == 0
    text = path.read_text()
    assert f"| {shown} | No wonder. |" in text and f"| {shown} | Figure 1 | in part |" in text
    assert "**0 of 1 studies find what the paper found.** The other 1 find" in text
    text = (tmp_path / "studies" / "papers.md").read_text()
    assert "| slope | 1 |  | 1.0 | yes |" in text
    assert "| a \\| b | 2 | 3 | 4 | **no** |" in text
    assert "**The finding does not hold in full.** No wonder." in text


@pytest.mark.usefixtures("one_study")
def test_the_list_and_unknown_names(capsys) -> None:
    assert status_of(["study"]) == 0
    assert "papers.line" in capsys.readouterr().out
    assert status_of(["study", "papers.circle"]) == 2
    assert "study papers.circle: no such study" in capsys.readouterr().err


def test_applications_are_installed_or_in_the_clone(tmp_path, monkeypatch) -> None:
    assert application("npb_ep.py").read_text().startswith('"""')
    package = tmp_path / "pysmpi"
    monkeypatch.setattr("pysmpi.studies.applications.PACKAGE", package)
    assert application("dft.py") == tmp_path / "apps" / "dft.py"
    (package / "apps").mkdir(parents=True)
    (package / "apps" / "dft.py").write_text("")
    assert application("dft.py") == package / "apps" / "dft.py"


def test_pictures_are_the_same_each_time(tmp_path) -> None:
    for name in ("one.svg", "two.svg"):
        draw(LINE, found(False), tmp_path / name)
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()


def broadcast(size: int) -> float:
    """Seconds of a broadcast of some bytes."""
    from mpi4py import MPI

    begin = MPI.Wtime()
    MPI.COMM_WORLD.Bcast(bytearray(1000 * size))
    return MPI.COMM_WORLD.allreduce(MPI.Wtime() - begin, op=MPI.MAX)


def test_a_grid_is_the_same_as_a_sweep_on_two_workers(monkeypatch) -> None:
    models, ranks = ("hybrid", "loggps"), (2, 4)
    here = grid(broadcast, ranks, 5, models=models)
    monkeypatch.setattr(SPREAD, "workers", 2)
    assert grid(broadcast, ranks, 5, models=models) == here
    assert list(here["hybrid"]) == [2, 4]


def test_the_page_of_the_documentation_has_every_study() -> None:
    folder = ROOT / "docs" / "papers"
    first = (folder / "studies.md").read_text()
    for name, study in registry().items():
        text = (folder / place(study)).read_text()
        assert f"## {name}\n\n{study.figure}. {study.finding}.\n" in text, name
        assert "Not run" not in text
        assert f"| {link(study)} | {study.figure} |" in first
