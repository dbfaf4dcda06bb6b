"""A collective call reaches its schedule as docs/contributing/collectives.md says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import groupby
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# Writes the functions that each call enters until it has its schedule: file and name.
PROGRAM = """
import json
import sys

import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
a, b, blocks = np.ones(4), np.zeros(4), np.zeros(16)
root = comm.rank == 1
CALLS = {
    "Barrier": comm.Barrier,
    "Bcast": lambda: comm.Bcast(a, 1),
    "Allreduce": lambda: comm.Allreduce(a, b),
    "Reduce": lambda: comm.Reduce(a, b if root else None, root=1),
    "Gather": lambda: comm.Gather(a, blocks if root else None, 1),
    "Scatter": lambda: comm.Scatter(blocks if root else None, b, 1),
}


def entered(call):
    functions = []

    def profile(frame, event, _):
        code = frame.f_code
        if event == "call" and "/pysmpi/" in code.co_filename:
            functions.append([code.co_filename.split("/pysmpi/")[-1], code.co_name])

    sys.setprofile(profile)
    call()
    sys.setprofile(None)
    return functions


result = {}
for name, call in CALLS.items():
    for time in ("first", "again"):
        if comm.rank == 0:
            result[f"{name} {time}"] = entered(call)
        else:
            call()
if comm.rank == 0:
    print(json.dumps(result))
"""


def stays_and_files(functions: list[list[str]]) -> tuple[int, int]:
    """The stays in a file, one after another, and the different files."""
    files = [file for file, _ in groupby(function[0] for function in functions)]
    return len(files), len(set(files))


@pytest.mark.slow
def test_a_collective_call_needs_few_files_and_returns_until_it_has_its_schedule(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, "-m", "pysmpi", "run", "-n", "4", str(program)],
        cwd=ROOT, capture_output=True, text=True, timeout=120,
        env={**os.environ, "PYSMPI_INTERPRETED": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    calls = json.loads(done.stdout)
    assert len(calls) == 12
    for call, functions in calls.items():
        names = [name for _, name in functions]
        start = next(i for i, (file, _) in enumerate(functions) if file.endswith("/calls.py"))
        # The algorithm that builds a schedule is another subject.
        end = names.index("cached" if "cached" in names else "schedule_of")
        path = functions[start : end + 1]
        stays, files = stays_and_files(path)
        assert files <= 10 and stays - files <= 4, (call, path)
