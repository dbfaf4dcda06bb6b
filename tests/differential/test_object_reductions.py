"""Reductions of objects raise in the ranks where mpi4py's do, and with the same exceptions."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import real_mpich

PROGRAM = Path(__file__).resolve().parents[1] / "programs" / "object_reductions.py"
#: Cython has its own words for values that are no pairs.
UNPACKING = re.compile(
    r"(Value|Type)Error: (need more|not enough|too many|cannot unpack|.*iterable).*"
)
ADDRESS = re.compile(r"0x[0-9a-f]+")


def normal(outcome: str) -> str:
    return ADDRESS.sub("0x", UNPACKING.sub(r"\1Error: unpacking", outcome))


@pytest.mark.parametrize("fast", ("1", "0"))
def test_same_outcomes(fast: str, tmp_path: Path) -> None:
    if not real_mpich.mpich():
        pytest.skip("no mpiexec on this machine: there is no real MPI to compare with")
    ours, theirs = tmp_path / "ours.json", tmp_path / "theirs.json"
    command = [sys.executable, "-m", "pysmpi", "run", "-q", "-n", "2", "--compute", "none"]
    subprocess.run([*command, str(PROGRAM), str(ours), fast], check=True, timeout=120)
    real_mpich.run(2, PROGRAM, theirs, fast)
    raised = 0
    for rank, (got, expected) in enumerate(
        zip(json.loads(ours.read_text()), json.loads(theirs.read_text()), strict=True)
    ):
        assert got.keys() == expected.keys()
        differ = [
            f"rank {rank}: {call}: {got[call]}; MPICH {outcome}"
            for call, outcome in expected.items()
            if normal(got[call]) != normal(outcome)
        ]
        assert not differ, "\n".join(differ)
        raised += sum("Error: " in outcome for outcome in expected.values())
    assert raised > 500


def test_uncaught_exceptions_are_the_programs(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "from mpi4py import MPI\ncomm = MPI.COMM_WORLD\ncomm.allreduce({'a': comm.rank})\n"
    )
    command = [sys.executable, "-m", "pysmpi", "run", "-q", "-n", "3", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "unsupported operand type(s) for +: 'dict' and 'dict'" in done.stderr
    assert 'program.py", line 3' in done.stderr
    assert "/pysmpi/" not in done.stderr
