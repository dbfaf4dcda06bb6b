"""The line of a program in which code of pysmpi, or of another package, is called."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pysmpi.python.frames import line_outside


@pytest.mark.parametrize("levels", [0, 1, 3])
@pytest.mark.parametrize(
    ("skipped", "line"),
    [({"inner.py"}, ("outer.py", 2)), (set(), ("inner.py", 2)), ({"outer.py"}, ("inner.py", 2))],
)
def test_the_innermost_line_that_is_not_skipped(
    levels: int, skipped: set[str], line: tuple[str, int]
) -> None:
    """Calls of any depth count as one."""
    inner = "def call(levels):\n    return call(levels - 1) if levels else find()\n"
    outer = "\nfound = call(levels)\n"
    space: dict[str, Any] = {
        "levels": levels, "find": lambda: line_outside(lambda file: file in {__file__, *skipped}),
    }  # fmt: skip
    for text, file in ((inner, "inner.py"), (outer, "outer.py")):
        exec(compile(text, file, "exec"), space)
    assert space["found"] == line


def test_there_may_be_none() -> None:
    assert line_outside(lambda file: True) is None
    here = line_outside(lambda file: False)
    assert here is not None and here[0] == __file__


def test_a_site_directory_of_another_environment_has_libraries(tmp_path: Path) -> None:
    """Modules of clusters put such directories into PYTHONPATH."""
    site = tmp_path / "site-packages"
    site.mkdir()
    (site / "library.py").write_text("def wait(comm):\n    comm.recv()\n")
    (tmp_path / "prog.py").write_text(
        "from mpi4py import MPI\nimport library\nlibrary.wait(MPI.COMM_WORLD)\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pysmpi", "run", "prog.py"],
        cwd=tmp_path, capture_output=True, text=True, timeout=100,
        env={**os.environ, "PYTHONPATH": str(site)},
    )  # fmt: skip
    assert "prog.py:3" in done.stderr, done.stderr
    assert "library.py" not in done.stderr
