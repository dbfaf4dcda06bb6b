"""Handles and the module `mpi4py.MPI` look to a program as they do under a real MPICH."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import real_mpich

PROGRAM = Path(__file__).resolve().parents[1] / "programs" / "handles.py"


@pytest.mark.parametrize("ranks", [2, 4])
def test_facts_are_the_same(ranks: int) -> None:
    if not real_mpich.mpich():
        pytest.skip("no MPICH with mpi4py on this machine")
    starters = (
        ["mpiexec", "-n", str(ranks), sys.executable],
        [sys.executable, "-m", "pysmpi", "run", "-n", str(ranks)],
    )
    expected, found = (
        subprocess.run(
            [*starter, str(PROGRAM)],
            capture_output=True, text=True, timeout=120, env={**os.environ, **real_mpich.QUIET},
        )
        for starter in starters
    )  # fmt: skip
    assert expected.returncode == 0, expected.stderr
    assert (found.returncode, found.stdout) == (0, expected.stdout), found.stderr
