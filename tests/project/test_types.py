"""Types: `Any` is for objects of programs and of libraries without types, and becomes rarer."""

import re
from collections import Counter
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "pysmpi"

# The most lines with Any in a room, in tens; those outside of rooms are ".". Lower a figure when
# you can.
MOST = {
    ".": 30,
    "analysis": 20,
    "calibrate": 10,
    "checkers": 70,
    "cli": 30,
    "cluster": 10,
    "collectives": 20,
    "debugging": 10,
    "explore": 30,
    "faults": 10,
    "kernel": 50,
    "memory": 30,
    "mpi": 460,
    "network": 20,
    "platform": 40,
    "pytest_plugin": 50,
    "record": 40,
    "replay": 30,
    "runtime": 520,
    "sweeps": 40,
    "trace": 70,
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
