"""Calls after `MPI.Finalize` are refused, as MPI libraries refuse them."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize("compute", ["none", "native"])
@pytest.mark.parametrize(
    "call, name",
    [
        ("comm.Barrier()", "Barrier"),
        ("comm.barrier()", "barrier"),
        ("comm.send(1, 0)", "send"),
        ("comm.Isend(b'1', 0)", "Isend"),
        ("comm.Dup()", "Dup"),
        ("comm.Iprobe()", "Iprobe"),
    ],
)
def test_a_call_after_finalize_is_refused(call, name, compute):
    done = subprocess.run(
        [sys.executable, "-m", "pysmpi", "run", "-n", "2", "--compute", compute, "-c",
         f"from mpi4py import MPI\ncomm = MPI.COMM_WORLD\nMPI.Finalize()\n{call}\nprint('on')"],
        capture_output=True, text=True, timeout=100,
    )  # fmt: skip
    assert done.returncode == 3, done.stderr
    assert done.stdout == ""
    assert f"{name} called after MPI was finalized" in done.stderr


def test_what_is_no_mpi_call_goes_on():
    program = """
import time
from mpi4py import MPI
comm = MPI.COMM_WORLD
comm.Barrier()
MPI.Finalize()
before = time.time()
time.sleep(1)
assert 1 <= time.time() - before < 1.1
assert MPI.Is_finalized() and MPI.Get_version()
try:
    MPI.Init()
except MPI.Exception as error:
    assert "cannot be initialized again" in str(error)
session = MPI.Session.Init()
group = session.Create_group("mpi://WORLD")
MPI.Intracomm.Create_from_group(group).Barrier()
"""
    done = subprocess.run(
        [sys.executable, "-m", "pysmpi", "run", "-q", "-n", "2", "-c", program],
        capture_output=True, text=True, timeout=100,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
