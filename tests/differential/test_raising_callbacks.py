"""Exceptions out of the program's functions that MPI calls end up as with mpi4py on MPICH."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import real_mpich

PROGRAM = Path(__file__).resolve().parents[1] / "programs" / "raising_callbacks.py"
PYSMPI = (sys.executable, "-m", "pysmpi", "run", "-q", "-n", "2", "--compute", "none")

#: Calls from which there is no way back: mpi4py ends the job with status 1.
FATAL = {
    "operator": "comm.Allreduce([b'abcd', MPI.INT], [bytearray(4), MPI.INT], MPI.Op.Create(bad))",
    "local": "MPI.Op.Create(bad).Reduce_local([b'abcd', MPI.INT], [bytearray(4), MPI.INT])",
    "handler": "comm.Set_errhandler(MPI.Comm.Create_errhandler(bad)); comm.Send(b'', 99)",
    "called": "comm.Set_errhandler(MPI.Comm.Create_errhandler(bad)); comm.Call_errhandler(4)",
}


def test_same_outcomes(tmp_path: Path) -> None:
    if not real_mpich.mpich():
        pytest.skip("no mpiexec on this machine: there is no real MPI to compare with")
    ours, theirs = tmp_path / "ours.json", tmp_path / "theirs.json"
    done = subprocess.run([*PYSMPI, str(PROGRAM), str(ours)], capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    real_mpich.run(2, PROGRAM, theirs)
    assert json.loads(ours.read_text()) == json.loads(theirs.read_text())


@pytest.mark.parametrize("name", FATAL)
@pytest.mark.parametrize("how", ("raise LookupError('on purpose')", "sys.exit(5)"))
def test_no_way_back(name: str, how: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import sys\nfrom mpi4py import MPI\ncomm = MPI.COMM_WORLD\n"
        f"def bad(*args):\n    {how}\n{FATAL[name]}\n"
    )
    done = subprocess.run([*PYSMPI, str(program)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert f'program.py", line 5, in bad\n    {how}\n' in done.stderr
    assert "Fatal error: exception in a user-defined" in done.stderr
    assert "PSM103" in done.stderr
    assert "pysmpi/mpi" not in done.stderr
