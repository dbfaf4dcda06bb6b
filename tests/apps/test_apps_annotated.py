"""A program with annotations runs unchanged under a real MPI, where they do nothing."""

from __future__ import annotations

PROGRAM = """
import sys

import pysmpi
from mpi4py import MPI

comm = MPI.COMM_WORLD
passes = 0
for _ in pysmpi.sample(range(50), iters=3):
    passes += 1
with pysmpi.sample(iters=1):
    passes += 1


@pysmpi.sample(scope="collective")
def total(x):
    return comm.allreduce(x)


light = ("python", "python.frames", "hints", "text", "version")
names = [name[7:] for name in sys.modules if name.startswith("pysmpi.")]
heavy = [name for name in names if name not in light]
found = comm.gather((passes, [total(i) for i in range(9)], heavy))
if comm.rank == 0:
    print(found)
"""


def test_annotations_do_nothing_under_a_real_mpi(mpiexec, tmp_path):
    program = tmp_path / "annotated.py"
    program.write_text(PROGRAM)
    done = mpiexec(2, str(program))
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{[(51, [2 * i for i in range(9)], [])] * 2}\n"
