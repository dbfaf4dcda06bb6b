"""The programs of the gallery in docs/checkers.md give the reports that it shows."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "checkers.md"
ENTRY = re.compile(r"```python\n(# (\w+\.py)\n.*?)```\n\n```\n\$ pysmpi (.*?)\n(.*?)```", re.S)
ENTRIES = ENTRY.findall(PAGE.read_text())


@pytest.mark.parametrize(("program", "name", "command", "report"), ENTRIES)
def test_entry(program: str, name: str, command: str, report: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(program)
    done = subprocess.run(
        [sys.executable, "-m", "pysmpi", *shlex.split(command)],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 3
    assert done.stderr == report


def test_the_gallery_is_there() -> None:
    assert len(ENTRIES) >= 6
