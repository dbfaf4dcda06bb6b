"""The number of descriptors that a rank has open."""

from __future__ import annotations

import sys

import pytest

import pysmpi

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
    assert pysmpi.run(write("program.py", PROGRAM), nprocs=3).exit_status == 0
