"""The pages that a new user follows: each file and command of them, one after the other.

A page begins in an empty directory, as its reader does. Its blocks are carried out in their order:
a block that begins with `# NAME` is a file, one that begins with `# in NAME` is a function that
takes the place of another, and commands print what the page shows. The pages of the tutorial share
a directory.
"""

from __future__ import annotations

import ast
import errno
import os
import re
import shutil
from pathlib import Path

import pytest

from tests.cli.test_commands_of_pages import FENCE, PATH, Example, check, examples, run
from tests.differential.real_mpich import mpich

DOCS = Path(__file__).resolve().parents[2] / "docs"
PACKAGE = DOCS.parent / "pysmpi"
TUTORIAL = [
    DOCS / "start" / f"tutorial{part}.md"
    for part in ("", "-cluster", "-slow", "-deadlock", "-test", "-thousand")
]
OTHERS = [page for page in PATH if page not in TUTORIAL]

# Commands that do not run here, and the reason.
ELSEWHERE = {
    "pip ": "tests/project installs pysmpi",
    "venv": "an environment of its own",
    "mpiexec -n 16": "a cluster",
    "--hosts node-0,node-1": "a cluster",
    "-m debugpy": "waits for an editor: tests/debugging",
}
FILE = re.compile(r"(?:#|<!--|/\*) (in )?([\w./-]+\.\w+)(?: -->| \*/)?\n")


def files(page: Path) -> list[tuple[int, str, str, bool]]:
    """The blocks of a page that are files: line, name, text, and whether it is a part of one."""
    text = page.read_text(encoding="utf-8")
    found = []
    for block in FENCE.finditer(text):
        if name := FILE.match(block[2]):
            line = text.count("\n", 0, block.start()) + 1
            found.append((line, name[2], block[2], bool(name[1])))
    return found


def put(place: Path, text: str, part: bool) -> None:
    """Write a file, or replace the function that `text` defines."""
    if part:
        _, _, new = text.partition("\n")
        old = place.read_text()
        (wanted,) = ast.parse(new).body
        assert isinstance(wanted, ast.FunctionDef)
        (found,) = (
            node
            for node in ast.parse(old).body
            if isinstance(node, ast.FunctionDef) and node.name == wanted.name
        )
        lines = old.splitlines(keepends=True)
        lines[found.lineno - 1 : found.end_lineno] = new.splitlines(keepends=True)
        text = "".join(lines)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)


def follow(page: Path, directory: Path) -> None:
    """Do what a page says."""
    steps: list[tuple[int, Example | tuple[Path, str, bool]]] = [
        (one.line, one)
        for one in examples(page)
        if not any(part in one.words for part in ELSEWHERE)
    ]
    steps += [(line, (directory / name, text, part)) for line, name, text, part in files(page)]
    for _, step in sorted(steps, key=lambda step: step[0]):
        if not isinstance(step, Example):
            put(*step)
            continue
        tool = step.words.split()[0]
        if tool == "mpiexec" and not mpich() or tool == "smpirun" and not shutil.which(tool):
            continue
        check(step, run(step, directory, {}))


def test_the_tutorial(tmp_path: Path) -> None:
    for page in TUTORIAL:
        follow(page, tmp_path)


@pytest.mark.parametrize("page", OTHERS, ids=lambda page: page.stem)
def test_a_page(page: Path, tmp_path: Path) -> None:
    follow(page, tmp_path)


def test_commands_that_are_left_out_exist() -> None:
    every = "\n".join(one.words for page in PATH for one in examples(page))
    assert [part for part in ELSEWHERE if part not in every] == []
    assert sum(len(examples(page)) for page in PATH) > 80


def test_messages_of_the_page_about_trouble_are_those_of_pysmpi() -> None:
    text = " ".join((DOCS / "troubleshooting.md").read_text(encoding="utf-8").split())
    quoted = re.findall(r'\*\*"([^"]+)"|with "([^"]+)"', text)
    sources = "".join(path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py"))
    sources = re.sub(r'"\s+f?"|\{[^}]*\}', "", sources)  # texts of several lines, and values
    foreign = (os.strerror(errno.EMFILE), "cannot load MPI library")  # of mpi4py
    for one in map("".join, quoted):
        part = one.partition(" ...")[0]
        assert part in sources or part in foreign, one
    assert len(quoted) >= 7


def is_environment(node: ast.AST) -> bool:
    return ast.unparse(node) in ("os.environ", "environ")


def variables(path: Path) -> set[str]:
    """The names of the environment variables that a file reads or sets."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = {
        target.id: node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    found: list[ast.AST] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            method = node.func.attr in ("get", "setdefault", "pop")
            if method and is_environment(node.func.value) or node.func.attr == "getenv":
                found.append(node.args[0])
        elif isinstance(node, ast.Subscript) and is_environment(node.value):
            found.append(node.slice)
        elif isinstance(node, ast.Compare) and any(map(is_environment, node.comparators)):
            found.append(node.left)
        elif isinstance(node, ast.For) and isinstance(node.iter, ast.Tuple):
            body = "".join(map(ast.unparse, node.body))
            if "environ" in body:  # a loop over several variables
                found += node.iter.elts
    values = (names.get(node.id) if isinstance(node, ast.Name) else node for node in found)
    return {
        re.sub(r"\{.*\}", "...", ast.unparse(value).lstrip("f").strip("\"'"))
        for value in values
        if isinstance(value, (ast.Constant, ast.JoinedStr))
    }


def test_the_page_about_installation_has_every_environment_variable() -> None:
    page = (DOCS / "start" / "install.md").read_text(encoding="utf-8")
    part = page.partition("## Environment variables\n")[2].partition("\n## ")[0]
    described = set(re.findall(r"`([A-Z_][A-Z0-9_]+(?:\.\.\._?)?)(?:=\w+)?`", part))
    described -= {"OMPI_COMM_WORLD_RANK"}  # ranks have it
    read = {name for path in PACKAGE.rglob("*.py") for name in variables(path)}
    read |= variables(PACKAGE.parent / "setup.py")
    # In heap.py a test of names, in click and in texts of child processes.
    read |= {"MALLOC_..._", "_PYSMPI_COMPLETE"}
    assert described == read | {"PYSMPI_JOB", "PYSMPI_PIN"}
    texts = "".join(path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py"))
    assert set(re.findall(r"\bPYSMPI_[A-Z_]+", texts)) <= described
