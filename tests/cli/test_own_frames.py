"""Tracebacks of a program's errors show the program, also where pysmpi is compiled."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    "call, message",
    [
        ("comm.Allreduce(np.zeros(3), np.zeros(2))", "mismatch in send count 3"),
        ("comm.Send(np.zeros(3), dest=99)", "Invalid rank"),
        ("comm.Bcast(np.zeros(6)[::2])", "not contiguous"),
    ],
)
def test_reports_have_no_frames_of_pysmpi(write, pysmpi, call, message):
    program = f"import numpy as np\nfrom mpi4py import MPI\n\ncomm = MPI.COMM_WORLD\n{call}\n"
    done = pysmpi("run", "-n", "1", str(write("program.py", program)))
    assert message in done.stderr
    assert "program.py" in done.stderr
    assert 'File "pysmpi' not in done.stderr
    assert "boundary" not in done.stderr
