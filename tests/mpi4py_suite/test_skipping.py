"""A run without mpi4py's suite says so in its last line, or fails where the suite is required."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def run(tmp_path: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    empty = tmp_path / "empty"
    empty.mkdir(exist_ok=True)
    environment = {**os.environ, "PYSMPI_MPI4PY_SOURCE": str(empty), **variables}
    options = ["-q", "-p", "no:cacheprovider"]
    return subprocess.run(
        [sys.executable, "-m", "pytest", *options, str(HERE / "test_demos.py")],
        capture_output=True, text=True, timeout=120, env=environment, cwd=HERE.parents[1],
    )  # fmt: skip


def test_the_last_line_says_what_was_skipped(tmp_path: Path) -> None:
    done = run(tmp_path, PYSMPI_REQUIRE_SUITES="")
    assert done.returncode == 0
    last = done.stdout.strip().splitlines()[-1]
    assert last.startswith("NOT ACCEPTED: the folder of mpi4py's demos is not available")


def test_a_required_suite_must_be_there(tmp_path: Path) -> None:
    done = run(tmp_path, PYSMPI_REQUIRE_SUITES="1")
    assert done.returncode == 1
    assert "is not available" in done.stdout
