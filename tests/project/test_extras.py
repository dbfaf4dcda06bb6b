"""Each extra has one name, in pyproject.toml, in messages and in the documents."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from pathlib import Path

import pytest

from pysmpi.cli.main import status_of
from pysmpi.python.extras import EXTRAS, installs

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
DECLARED = PROJECT["optional-dependencies"]

PROGRAM = "from mpi4py import MPI\nMPI.COMM_WORLD.barrier()\n"
STUDY = "programs: [{run: program.py}]\nranks: [2]\n"

# A command that needs the extra.
COMMANDS = {
    "png": ("collectives", "draw", "allreduce", "rab_rdb", "-n", "4", "-o", "picture.png"),
    "plots": ("view", "run.jsonl", "-o", "picture.svg"),
    "parquet": ("trace", "convert", "run.jsonl", "run.parquet"),
    "otf2": ("trace", "convert", "run.jsonl", "run.otf2"),
    "memory": ("coherence", "study", "barrier-central", "--set", "processes=4"),
    "sweep": ("explore", "-n", "2", "--scheduler", "tcp://127.0.0.1:1", "program.py"),
}


def test_the_table_of_extras_is_that_of_the_project() -> None:
    for name, extra in EXTRAS.items():
        packages = [re.split(r"[<>=\[ ]", line)[0] for line in DECLARED[name]]
        assert packages == [extra.package]
    assert set(COMMANDS) == set(EXTRAS) - {"debug"}, "debugpy imports pysmpi, not the reverse"


def test_only_the_table_spells_the_command_that_installs_an_extra() -> None:
    for path in (ROOT / "pysmpi").rglob("*.py"):
        tree = ast.parse(path.read_text())
        documentation = {
            id(node.body[0].value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
            and node.body
            and isinstance(node.body[0], ast.Expr)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                if path.name == "extras.py" or id(node) in documentation:
                    continue
                assert "pysmpi[" not in node.value, f"{path}:{node.lineno}"


def test_documents_name_extras_that_exist() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "pysmpi").rglob("*.py")]
    named = {
        (page.name, extra)
        for page in pages
        for given in re.findall(r"pysmpi\[([a-z0-9, -]+)\]", page.read_text())
        for extra in given.replace(" ", "").split(",")
    }
    assert named
    assert [one for one in named if one[1] not in DECLARED] == []


@pytest.mark.parametrize("extra", COMMANDS)
def test_a_command_without_its_extra_names_it(
    extra: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("program.py").write_text(PROGRAM)
    if "run.jsonl" in COMMANDS[extra]:
        assert status_of(["run", "-n", "2", "--trace", "run.jsonl", "program.py"]) == 0
    package = EXTRAS[extra].package
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, package, None)
    assert status_of(COMMANDS[extra]) == 2
    assert f"needs the package {package}, which is not installed: {installs(extra)}" in (
        capsys.readouterr().err
    )
