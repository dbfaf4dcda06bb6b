"""Temporary files of ranks have free names, also where earlier runs have left files."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

import pysmpi

PROGRAM = """
import os
import tempfile
from mpi4py import MPI

for _ in range(15):
    number, path = tempfile.mkstemp(dir=".")
    os.close(number)
print(MPI.COMM_WORLD.rank, os.path.basename(path))
"""


@pytest.mark.parametrize("tries", [20, 1_000_000])
def test_files_that_earlier_runs_have_left(
    tries: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "TMP_MAX", tries)
    Path("program.py").write_text(PROGRAM)
    for run in (1, 2, 3):
        pysmpi.run("program.py", 2, compute="none")
        assert tries == tempfile.TMP_MAX
        assert len(list(tmp_path.glob("tmp*"))) == run * 2 * 15
