"""The lessons in notebooks: all cells run, exercises wait for a solution, solutions are right."""

from __future__ import annotations

import json
import linecache
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LESSONS = sorted((ROOT / "docs" / "lessons").glob("*.ipynb"))
NAMES = ("collectives", "contention", "deadlock", "halo", "race", "scaling")


def test_the_page_lists_all_lessons() -> None:
    assert tuple(path.stem for path in LESSONS) == NAMES
    page = (ROOT / "docs" / "howto" / "teach.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"/docs/lessons/(\w+)\.ipynb", page)) == list(NAMES)


def test_binder_and_codespaces_install_what_lessons_need() -> None:
    container = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text())
    requirements = (ROOT / ".binder" / "requirements.txt").read_text().splitlines()
    assert container["postCreateCommand"].startswith("pip install . ") and "." in requirements
    version = re.fullmatch(r"python-(3\.\d+)\n", (ROOT / ".binder" / "runtime.txt").read_text())
    assert version is not None and container["image"].endswith(f"python:{version[1]}")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert f"Programming Language :: Python :: {version[1]}" in project["classifiers"]


@pytest.mark.parametrize("path", LESSONS, ids=NAMES)
def test_the_cells_of_a_lesson_run_in_their_order(path: Path, capsys, monkeypatch) -> None:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    cells = notebook["cells"]
    assert len({cell["id"] for cell in cells}) == len(cells)
    headings = [line for cell in cells for line in cell["source"] if line.startswith("#")]
    assert headings[0].startswith("# Lesson ")
    assert {"## Exercise", "## Solution"} <= {line.strip() for line in headings}
    names: dict[str, object] = {"__name__": "__main__"}
    said = []
    for number, cell in enumerate(cells):
        if cell["cell_type"] != "code":
            continue
        assert cell["outputs"] == [] and cell["execution_count"] is None
        source, file = "".join(cell["source"]), f"<{path.stem} {number}>"
        lines = source.splitlines(keepends=True)
        monkeypatch.setitem(linecache.cache, file, (len(source), None, lines, file))
        exec(compile(source, file, "exec"), names)
        said.append(capsys.readouterr().out)
        if "solution" in cell["metadata"].get("tags", ()):
            return
        if source.rstrip().endswith(")") and "\nattempt(check" in source:
            assert said[-1].startswith("not yet: "), "the exercise is solved already"
    pytest.fail("no solution")
