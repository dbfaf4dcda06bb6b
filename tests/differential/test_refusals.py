"""Wrong arguments are refused with the same type of exception as by the real mpi4py on MPICH."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).resolve().parents[1] / "programs" / "refusals.py"


def run(command: list[str], out: Path) -> dict[str, str]:
    done = subprocess.run(
        [*command, str(PROGRAM), str(out)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(out.read_text())


def test_same_exceptions(tmp_path: Path) -> None:
    if shutil.which("mpiexec") is None:
        pytest.skip("no mpiexec on this machine: there is no real MPI to compare with")
    simulated = [sys.executable, "-m", "pysmpi", "run", "-q", "-n", "1", "--compute", "none"]
    ours = run(simulated, tmp_path / "ours.json")
    theirs = run(["mpiexec", "-n", "1", sys.executable], tmp_path / "theirs.json")
    assert len(theirs) > 150
    differ = [f"{e}: {ours[e]}; MPICH {theirs[e]}" for e in theirs if ours[e] != theirs[e]]
    assert not differ, "\n".join(differ)
