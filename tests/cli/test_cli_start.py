"""The modules that a plain run loads: a start has to be short."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

# Modules that only some options need, and that take long to load.
LATER = ("pysmpi.trace.recorder", "pysmpi.trace.formats", "pysmpi.analysis.observation", "unittest")


def test_a_plain_run_loads_nothing_that_it_does_not_need(tmp_path: Path) -> None:
    program = tmp_path / "hello.py"
    program.write_text("from mpi4py import MPI\nprint(MPI.COMM_WORLD.rank)\n")
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "pysmpi", "run", "-n", "2", str(program)],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0
    loaded = set(re.findall(r"^import time:.*\| +(\S+)$", done.stderr, re.MULTILINE))
    assert "pysmpi.runtime.job" in loaded
    assert loaded.isdisjoint(LATER)
