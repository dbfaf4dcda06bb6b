"""Event loops that would keep all ranks waiting are refused in one line."""

from __future__ import annotations

import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

TEXT = "{package}, imported at prog.py:1 in <module>, cannot be simulated"


def run(tmp_path: Path, package: str, text: str) -> subprocess.CompletedProcess[str]:
    # The file need not be one that can be loaded: it is not opened.
    folder = tmp_path / package
    folder.mkdir()
    (folder / "__init__.py").write_text("from . import loop")
    (folder / f"loop{EXTENSION_SUFFIXES[0]}").write_text("")
    (tmp_path / "prog.py").write_text(text)
    return subprocess.run(
        [sys.executable, "-m", "pysmpi", "run", "-q", "-n", "2", "prog.py"],
        capture_output=True, text=True, timeout=100, cwd=tmp_path,
    )  # fmt: skip


@pytest.mark.parametrize("package", ["gevent", "uvloop"])
def test_they_are_refused_in_one_line(tmp_path: Path, package: str) -> None:
    done = run(tmp_path, package, f"import {package}")
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert TEXT.format(package=package) in line and "asyncio" in line


@pytest.mark.parametrize("package", ["gevent", "uvloop"])
def test_programs_go_on_without_them(tmp_path: Path, package: str) -> None:
    text = f"try:\n    import {package}\nexcept ImportError:\n    print('without')\n"
    done = run(tmp_path, package, text)
    assert (done.stdout, done.stderr, done.returncode) == ("without\n" * 2, "", 0)
