"""Arguments that MPI ignores, null and empty ones, and IN_PLACE: the same data as under MPICH."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import real_mpich

PROGRAM = Path(__file__).resolve().parents[1] / "programs" / "ignored_arguments.py"
PYSMPI = (sys.executable, "-m", "pysmpi", "run", "-q", "-n", "2", "--compute", "none")

#: Calls with another outcome, each with its reason.
OTHERWISE = {
    r"Fetch_and_op \w+ .* True": "mpi4py gives MPICH null addresses, which it refuses",
    r"\w+ (\w+ )?(.*null\]|uncommitted) True": "MPICH looks at datatypes of messages to PROC_NULL",
    r"Fetch_and_op \w+ uncommitted False": "both arguments are wrong",
    r"R?[Gg]et_accumulate NO_OP BOTTOM False": "without a datatype it is no message for mpi4py",
    r"tag \d+( recv)?": "MPICH has fewer tags",
    r"\w+ into IN_PLACE": "MPICH does not look at it",
}


def test_same_outcomes(tmp_path: Path) -> None:
    if not real_mpich.mpich():
        pytest.skip("no mpiexec on this machine: there is no real MPI to compare with")
    ours, theirs = tmp_path / "ours.json", tmp_path / "theirs.json"
    command = [*PYSMPI, str(PROGRAM), str(ours)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-3000:]
    real_mpich.run(2, PROGRAM, theirs)
    everything = json.loads(ours.read_text())
    for rank, expected in enumerate(json.loads(theirs.read_text())):
        assert len(expected) > 1000
        got = everything[rank]
        differ = [
            f"rank {rank}: {name}: {got.get(name)}; MPICH {outcome}"
            for name, outcome in expected.items()
            if got.get(name) != outcome
            and not any(re.fullmatch(pattern, name) for pattern in OTHERWISE)
        ]
        assert not differ, "\n".join(differ)
        # MPICH reads the address 0, which MPI 4.1 (12.3.4) ignores.
        assert got["Fetch_and_op NO_OP address 0 False"] == [[6 - rank], 5 + rank]
