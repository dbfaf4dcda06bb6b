"""Buffers that begin at one address are refused in the calls in which MPICH refuses them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import real_mpich

PROGRAM = Path(__file__).resolve().parents[1] / "programs" / "aliased_buffers.py"
PYSMPI = (sys.executable, "-m", "pysmpi", "run", "-q", "--compute", "none")

#: The root alone finds the alias; the next calls of the others match its own.
ROOT_ALONE = """
from mpi4py import MPI
import numpy as np
comm = MPI.COMM_WORLD
x = np.ones(4)
try:
    comm.Reduce(x, x if comm.rank == 0 else None)
    print("sent")
except MPI.Exception as error:
    print(error.Get_error_class() == MPI.ERR_BUFFER, error)
comm.Barrier()
print(comm.allreduce(1))
"""


def test_same_refusals(tmp_path: Path) -> None:
    if not real_mpich.mpich():
        pytest.skip("no mpiexec on this machine: there is no real MPI to compare with")
    ours, theirs = tmp_path / "ours.json", tmp_path / "theirs.json"
    subprocess.run([*PYSMPI, "-n", "1", str(PROGRAM), str(ours)], check=True, timeout=60)
    real_mpich.run(1, PROGRAM, theirs)
    expected = json.loads(theirs.read_text())
    assert sum(outcome != "accepted" for outcome in expected.values()) > 200
    assert json.loads(ours.read_text()) == expected


def test_the_root_alone(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(ROOT_ALONE)
    command = [*PYSMPI, "-n", "3", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    lines = sorted(done.stdout.splitlines())
    assert lines[:3] == ["3", "3", "3"]
    assert lines[3].startswith("True Invalid buffer: the buffers begin at the same address")
    assert lines[4:] == ["sent", "sent"]
