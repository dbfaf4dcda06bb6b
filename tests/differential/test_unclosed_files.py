"""Files that a program leaves open have the same contents at its end as under a real MPICH."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import TextIO

import numpy
import pytest
import real_mpich

import pysmpi

PROGRAM = Path(__file__).resolve().parents[1] / "programs" / "unclosed_files.py"
RANKS = 3
TEXTS = {
    "plain": "plain",
    "binary": "binary",
    "listed": "listed",
    "cycle": "in a cycle",
    "shared": "shared",
    "log": "logged\n",
}


def check(folder: Path) -> None:
    """All files of all ranks are there and complete."""
    for rank in range(RANKS):
        for name, text in TEXTS.items():
            assert (folder / f"{name}{rank}.txt").read_text() == text, name
        assert gzip.decompress((folder / f"packed{rank}.gz").read_bytes()) == b"packed"
        with zipfile.ZipFile(folder / f"archive{rank}.zip") as archive:
            assert archive.read("inner") == b"archived"


def start(folder: Path, *command: str) -> None:
    done = subprocess.run(
        [*command, str(PROGRAM)],
        cwd=folder, capture_output=True, text=True, timeout=120,
        env={**os.environ, **real_mpich.QUIET},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_under_mpich(tmp_path: Path) -> None:
    if not real_mpich.mpich():
        pytest.skip("no MPICH with mpi4py on this machine")
    start(tmp_path, "mpiexec", "-n", str(RANKS), sys.executable)
    check(tmp_path)


def test_from_the_command_line(tmp_path: Path) -> None:
    start(tmp_path, sys.executable, "-m", "pysmpi", "run", "-n", str(RANKS))
    check(tmp_path)


def test_when_run_returns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pysmpi.run(str(PROGRAM), RANKS)
    check(tmp_path)
    for file in vars(numpy).pop("kept"):
        file.close()


def test_a_number_of_a_descriptor_may_be_given_again(tmp_path: Path) -> None:
    spare = os.open(os.devnull, os.O_RDONLY)
    path = tmp_path / "again.txt"

    def program() -> None:
        os.close(spare)
        kept.append(open(path, "w"))
        kept[0].write("again")

    kept: list[TextIO] = []
    pysmpi.run(program, 1)
    with kept[0] as file:
        assert file.fileno() == spare
        assert path.read_text() == "again"


READ = """
import time
from mpi4py import MPI

def name():
    return "early.txt"

if MPI.COMM_WORLD.rank == 0:
    file = open(name(), "w")
    file.write("early")
else:
    time.sleep(1)  # rank 0 has ended
    with open(name()) as file:
        assert file.read() == "early"
"""


def test_a_file_of_a_module_is_closed_when_its_rank_ends(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(READ)
    done = subprocess.run(
        [sys.executable, "-m", "pysmpi", "run", "-n", "2", "--compute", "none", "program.py"],
        cwd=tmp_path, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
