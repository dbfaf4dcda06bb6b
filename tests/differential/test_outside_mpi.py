"""Before Init and after Finalize, the calls are refused with which MPICH ends the process."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import real_mpich

PROGRAM = Path(__file__).resolve().parents[1] / "programs" / "outside_mpi.py"
PYSMPI = (sys.executable, "-m", "pysmpi", "run", "-q", "--compute", "none")

#: Calls with another outcome, each with its reason.
OTHERWISE = {
    r"(Topo|Cart|Graph|Distgraph)comm\..*": "MPICH ends where the object is made",
    r"Comm\.(fromhandle|fromint|f2py): .*": "mpi4py asks MPI for the kind of the communicator",
    r"(Info|Session)\.\w+: .*": "MPICH ends because the handle is null",
    r"Comm\.Revoke: .*": "MPICH does not look",
}

BEFORE = """
import mpi4py
mpi4py.rc.initialize = False
from mpi4py import MPI
info = MPI.Info.Create({"a": "1"})
assert MPI.Get_version() and not MPI.Is_initialized() and info["a"] == "1"
comm = MPI.COMM_WORLD
try:
    comm.Get_rank()
except MPI.Exception as error:
    assert str(error).endswith("Get_rank called before MPI was initialized"), error
else:
    raise AssertionError
try:
    comm.rank
except MPI.Exception as error:
    assert str(error).endswith("rank read before MPI was initialized"), error
else:
    raise AssertionError
session = MPI.Session.Init()
group = session.Create_group("mpi://WORLD")
derived = MPI.Intracomm.Create_from_group(group)
assert derived.allreduce(derived.size) == 4
session.Finalize()
MPI.Init()
assert comm.allreduce(1) == 2
MPI.Finalize()
comm.Get_rank()
"""


@pytest.mark.parametrize("when", ("before", "after"))
def test_same_calls_are_refused(when: str, tmp_path: Path) -> None:
    if not real_mpich.mpich():
        pytest.skip("no mpiexec on this machine: there is no real MPI to compare with")
    ours, theirs = tmp_path / "ours.json", tmp_path / "theirs.json"
    command = [*PYSMPI, str(PROGRAM), when, str(ours)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr[-2000:]
    real = [sys.executable, "-W", "ignore", str(PROGRAM), when, str(theirs)]
    subprocess.run(
        real, check=True, timeout=300, capture_output=True, env={**os.environ, **real_mpich.QUIET}
    )
    expected, got = json.loads(theirs.read_text()), json.loads(ours.read_text())
    assert len(expected) > 500
    differ = [
        f"{call}: {got[call]}; MPICH {outcome}"
        for call, outcome in expected.items()
        if got[call] != outcome and not any(re.fullmatch(pattern, call) for pattern in OTHERWISE)
    ]
    assert not differ, "\n".join(differ)


def test_a_program_from_before_to_after(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(BEFORE)
    command = [*PYSMPI, "-n", "2", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 3, done.stderr
    assert "PSM105" in done.stderr
    assert f'program.py", line {len(BEFORE.splitlines())}' in done.stderr
    assert "Get_rank called after MPI was finalized" in done.stderr
