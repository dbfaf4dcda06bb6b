"""The same seed gives the same trace, byte for byte.

`PYSMPI_REPEATS=100 pytest tests/explore/test_repeats.py` repeats each run more often than 2 times.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

REPEATS = int(os.environ.get("PYSMPI_REPEATS", "2"))

PROGRAM = """
import random
import threading

import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size


def serve():
    for _ in range(size - 1):
        status = MPI.Status()
        comm.recv(source=MPI.ANY_SOURCE, tag=1, status=status)
        comm.send(random.random(), dest=status.Get_source(), tag=2)


thread = threading.Thread(target=serve)
thread.start()
for peer in {(rank + step) % size for step in range(1, size)}:
    comm.send(str(peer), dest=peer, tag=1)
got = [comm.recv(source=MPI.ANY_SOURCE, tag=2) for _ in range(size - 1)]
thread.join()
total = np.zeros(500)
comm.Allreduce(np.full(500, sum(got)), total)
"""


def _trace(directory: Path, number: int, schedule: str) -> bytes:
    """The trace of one run; every second one is interpreted, and each has its own hashes."""
    trace = directory / f"{number}.json"
    done = subprocess.run(
        [
            sys.executable, "-m", "pysmpi", "run", "-q", "-n", "4", "--compute", "none",
            "--seed", "7", "--schedule", schedule, "--trace", str(trace), "program.py",
        ],
        capture_output=True, text=True, cwd=directory,
        env={
            **os.environ, "PYTHONHASHSEED": str(number),
            "PYSMPI_INTERPRETED": "1" if number % 2 else "",
        }, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return trace.read_bytes().replace(trace.name.encode(), b"")


@pytest.mark.parametrize("schedule", ["time", "random"])
def test_traces_are_the_same_bytes(tmp_path: Path, schedule: str) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    first = _trace(tmp_path, 0, schedule)
    assert len(first) > 1000
    for number in range(1, REPEATS):
        assert _trace(tmp_path, number, schedule) == first, f"run {number}"
