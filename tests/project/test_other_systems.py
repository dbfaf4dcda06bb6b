"""pysmpi runs where what only Linux has is missing.

No other system is at hand here, so `without_linux/sitecustomize.py` takes away from Python what
macOS lacks: functions, constants, `/proc` and `/sys`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

MISSING = Path(__file__).parent / "without_linux"

PROGRAM = """
import numpy
from mpi4py import MPI

comm = MPI.COMM_WORLD
mine, theirs = numpy.ones(100_000), numpy.empty(100_000)
comm.Sendrecv(mine, (comm.rank + 1) % comm.size, 0, theirs, (comm.rank - 1) % comm.size, 0)
assert comm.allreduce(comm.rank) == 6 and theirs.sum() == 100_000
"""
TEST = """
import pytest

@pytest.mark.mpi(ranks=[2])
def test_sum(comm):
    assert comm.allreduce(1) == 2
"""


def run(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *words], capture_output=True, text=True, cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(MISSING), "XDG_CACHE_HOME": str(cwd / "cache")},
        timeout=300,
    )  # fmt: skip


def test_the_commands_run_without_the_parts_of_linux(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "test_program.py").write_text(TEST)
    doctor = run("pysmpi", "doctor", "--json", cwd=tmp_path)
    conditions = {one["subject"]: one for one in json.loads(doctor.stdout)}
    assert doctor.returncode == 0, doctor.stderr
    assert conditions["a run of four ranks"]["text"] == "right"
    assert "--fold is not available" in conditions["parts for Linux"]["remedy"]
    for words, status, text in [
        (("pysmpi", "run", "-n", "4", "--explain", "--trace", "run.jsonl", "program.py"), 0, ""),
        (("pysmpi", "view", "run.jsonl"), 0, ""),
        (("pysmpi", "explore", "-n", "4", "program.py"), 0, ""),
        (("pysmpi", "run", "-n", "4", "--fold", "1MiB", "program.py"), 2, "expected Linux"),
        (("pysmpi", "calibrate", "memory"), 2, ""),
        (("pytest", "-q", "test_program.py"), 0, ""),
    ]:
        done = run(*words, cwd=tmp_path)
        assert done.returncode == status, (words, done.stdout + done.stderr)
        assert text in done.stderr and "Traceback" not in done.stderr
