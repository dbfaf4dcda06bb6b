"""A limit of the memory ends a run with a message, not with the process."""

from __future__ import annotations

import subprocess
import sys

import pytest

resource = pytest.importorskip("resource")

# Ranks that wait in a call, in a process that may use `room` MiB more than it does.
PROGRAM = """
import resource, sys
import pysmpi
from pysmpi.ranks import address_space

def wait():
    from mpi4py import MPI
    MPI.COMM_WORLD.Barrier()

room, ranks = int(sys.argv[1]), int(sys.argv[2])
pysmpi.run(wait, 2)
limit = address_space._used() + (room << 20)
resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
try:
    pysmpi.run(wait, ranks)
except MemoryError as error:
    print(error)
    sys.exit(error.exit_status)
"""


def run(room: int, ranks: int) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, str(room), str(ranks)],
        capture_output=True, text=True, timeout=100,
    )  # fmt: skip


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="its use is read from /proc")
def test_too_many_ranks():
    done = run(120, 20_000)
    assert done.returncode == 1, done.stderr[-1000:]
    assert done.stdout.startswith("out of memory: ")
    assert "of 20,000 ranks have begun" in done.stdout
    assert "expected a limit of about " in done.stdout


def test_few_ranks_fit():
    assert run(40, 100).returncode == 0
