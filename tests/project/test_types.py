"""Types: `Any` is for objects of programs and of libraries without types, and becomes rarer."""

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "pysmpi"

# The most lines with Any in a room, in tens; those outside of rooms are ".". Lower a figure when
# you can.
MOST = {
    ".": 30,
    "abi": 111,
    "analysis": 10,
    "calibrate": 10,
    "checkers": 30,
    "cli": 40,
    "cluster": 10,
    "collectives": 20,
    "debugging": 10,
    "explore": 34,
    "faults": 10,
    "folding": 10,
    "io": 10,
    "isolation": 348,
    "job": 40,
    "kernel": 50,
    "memory": 20,
    "mpi": 350,
    "network": 20,
    "own_process": 10,
    "patches": 73,
    "patching": 10,
    "platform": 20,
    "pytest_plugin": 30,
    "python": 20,
    "ranks": 40,
    "record": 40,
    "replay": 30,
    "reports": 21,
    "shadow": 53,
    "studies": 20,
    "sweeps": 40,
    "time": 30,
    "trace": 80,
    "validate": 10,
    "waiting": 110,
}


def lines_with_any(root: Path) -> Counter[str]:
    """The lines of each room that say Any, without imports."""
    found: Counter[str] = Counter()
    for path in root.rglob("*.py"):
        room = path.relative_to(root).parts[0] if path.parent != root else "."
        for line in path.read_text(encoding="utf-8").splitlines():
            found[room] += bool(re.search(r"\bAny\b", line)) and "import " not in line
    return found


def test_no_room_says_any_more_often_than_it_did() -> None:
    more = {
        room: count for room, count in lines_with_any(PACKAGE).items() if count > MOST.get(room, 0)
    }
    assert not more, "use the true type, object, a Protocol or a TypeVar"


def test_lines_are_counted(tmp_path: Path) -> None:
    (tmp_path / "room").mkdir()
    (tmp_path / "room" / "one.py").write_text(
        "from typing import Any\n\nx: Any = 1\nAnything = 2\n\n\ndef f(a: Any) -> Any: ...\n"
    )
    (tmp_path / "top.py").write_text("def f(a: Any) -> None: ...\n")
    assert lines_with_any(tmp_path) == {"room": 2, ".": 1}


PROGRAMS = ["typed_program.py", "mistyped_program.py"]


@pytest.fixture(scope="module")
def errors() -> list[str]:
    """The output of a strict check of the package and of two programs, in one run."""
    here = Path(__file__).parent
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "pysmpi",
         *(str(here / name) for name in PROGRAMS)],
        cwd=PACKAGE.parent, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    return re.findall(r"^(.+?:\d+): error", done.stdout, re.MULTILINE)


def test_all_is_strictly_typed(errors: list[str]) -> None:
    assert not [line for line in errors if line.startswith("pysmpi")]


def test_programs_are_checked_against_the_types_that_ship(errors: list[str]) -> None:
    wrong = set()
    for name in PROGRAMS:
        text = (Path(__file__).parent / name).read_text(encoding="utf-8")
        lines = enumerate(text.splitlines(), 1)
        wrong |= {f"tests/project/{name}:{at}" for at, line in lines if line.endswith("# error")}
    assert len(wrong) == 10 and set(errors) == wrong
    assert (PACKAGE / "py.typed").exists()
