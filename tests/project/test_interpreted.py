"""The kernel gives the same results compiled and interpreted."""

import json
import os
import re
import subprocess
import sys
from importlib.machinery import (
    EXTENSION_SUFFIXES,
    ExtensionFileLoader,
    PathFinder,
    SourceFileLoader,
)
from pathlib import Path

import pytest

from pysmpi._interpreted import SourceFinder, prefer_source

ROOT = Path(__file__).parents[2]

PROGRAM = """
import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
out, into = np.full(5000, rank), np.empty(5000, int)
for step in range(1, 4):
    comm.Sendrecv(out, (rank + step) % size, 0, into, (rank - step) % size, 0)
    assert into[0] == (rank - step) % size
comm.Allreduce(out, into)
requests = [comm.isend(rank, peer) for peer in range(size)]
assert sorted(comm.recv() for _ in range(size)) == list(range(size))
MPI.Request.waitall(requests)
comm.Alltoall(np.zeros((size, 3000)), np.zeros((size, 3000)))
"""


def simulate(tmp_path, interpreted):
    report = tmp_path / f"report-{interpreted}.json"
    trace = tmp_path / f"trace-{interpreted}.json"
    done = subprocess.run(
        [
            sys.executable, "-m", "pysmpi", "run", "-n", "24", "--platform", "graphene",
            "--compute", "none", "--selector", "ompi", "--report", str(report),
            "--trace", str(trace), "-c", PROGRAM,
        ],
        capture_output=True, text=True, timeout=120,
        env={**os.environ, "PYSMPI_INTERPRETED": "1" if interpreted else ""},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(report.read_text()), trace.read_bytes()


@pytest.mark.parametrize("interpreted", ["", "1"])
def test_the_summary_says_that_the_kernel_is_interpreted(interpreted):
    command = [sys.executable, "-m", "pysmpi"]
    environment = {**os.environ, "PYSMPI_INTERPRETED": interpreted}
    version, done = (
        subprocess.run(
            [*command, *words], capture_output=True, text=True, env=environment, timeout=60
        )
        for words in (["--version"], ["run", "-c", "pass"])
    )
    sources = "kernel interpreted" in version.stdout
    assert sources or not interpreted
    assert ("the kernel is interpreted, not compiled" in done.stderr) == sources


def test_same_predictions(tmp_path):
    (compiled, one), (interpreted, other) = (simulate(tmp_path, which) for which in (False, True))
    for report in (compiled, interpreted):
        report.pop("wall_seconds", None)
    assert compiled == interpreted
    assert one == other


@pytest.mark.skipif(
    os.environ.get("PYSMPI_INTERPRETED") == "1", reason="this run is the interpreted one"
)
def test_kernel_tests_pass_interpreted():
    done = subprocess.run(
        # Properties are tried compiled; what they draw takes minutes here.
        [sys.executable, "-m", "pytest", "-q", "-m", "not hypothesis", "tests/kernel"],
        cwd=ROOT, capture_output=True, text=True, timeout=300,
        env={**os.environ, "PYSMPI_INTERPRETED": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert int(re.findall(r"(\d+) passed", done.stdout)[-1]) > 80


def test_the_finder_prefers_sources_of_pysmpi(tmp_path):
    suffix = EXTENSION_SUFFIXES[0]
    for name in ("both.py", f"both{suffix}", "source.py", f"library{suffix}"):
        (tmp_path / name).touch()
    find = SourceFinder().find_spec
    found = {name: find(f"pysmpi.{name}", [str(tmp_path)]) for name in ("both", "source")}
    for name, spec in found.items():
        assert isinstance(spec.loader, SourceFileLoader)
        assert spec.origin == str(tmp_path / f"{name}.py") and spec.name == f"pysmpi.{name}"
    library = find("pysmpi.library", [str(tmp_path)])
    assert isinstance(library.loader, ExtensionFileLoader)
    assert find("pysmpi.missing", [str(tmp_path)]) is None
    # The other finders of Python find the modules of others.
    assert find("others.both", [str(tmp_path)]) is None


def test_the_finder_comes_before_that_of_folders():
    first, last = object(), object()
    finders = [first, PathFinder, last]
    prefer_source(finders)
    assert [finders[0], *finders[2:]] == [first, PathFinder, last]
    assert isinstance(finders[1], SourceFinder)
