"""The number of descriptors that a rank has open."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import psutil
from mpi4py import MPI
comm = MPI.COMM_WORLD
process = psutil.Process()
old = open("/dev/null")
comm.barrier()
before = process.num_fds()
comm.barrier()
files = [open("/dev/null") for _ in range(comm.rank + 1)]
comm.barrier()
assert process.num_fds() == before + comm.rank + 1
comm.barrier()
for file in files:
    file.close()
if comm.rank == 1:
    old.close()
comm.barrier()
assert process.num_fds() == before - (comm.rank == 1)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="descriptors are counted in /proc")
def test_a_rank_counts_the_descriptors_that_it_opens(write):
    pytest.importorskip("psutil")
    # In a process of its own: objects of earlier tests may close their descriptors at any time.
    done = subprocess.run(
        [sys.executable, "-m", "pysmpi", "run", "-n", "3", write("program.py", PROGRAM)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
