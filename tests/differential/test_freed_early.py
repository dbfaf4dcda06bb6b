"""Handles that are freed while an operation needs their objects: the same data as under MPICH."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import real_mpich

PROGRAM = Path(__file__).resolve().parents[1] / "programs" / "freed_early.py"
PYSMPI = (sys.executable, "-m", "pysmpi", "run", "-q", "-n", "3", "--compute", "none")

#: mpi4py itself loses the function of an operator that is freed; MPI 4.1, 6.9.5 keeps it.
OPERATOR = """
from mpi4py import MPI
import numpy as np
comm = MPI.COMM_WORLD
def add(x, y, datatype):
    np.frombuffer(y, "i4")[:] += np.frombuffer(x, "i4")
for name in ("Iallreduce", "Allreduce_init", "Iscan", "Ireduce_scatter_block", "Scan_init"):
    op, n = MPI.Op.Create(add, True), comm.size if "block" in name else 1
    into = np.zeros(1, "i4")
    request = getattr(comm, name)(np.full(n, comm.rank + 1, "i4"), into, op)
    op.Free()
    other = MPI.Op.Create(lambda x, y, datatype: None)
    if name.endswith("init"):
        request.Start()
    request.Wait()
    other.Free()
    assert into[0] == (sum(range(comm.rank + 2)) if "can" in name else 6), (name, into)
"""


def simulated(program: Path, *arguments: object) -> None:
    done = subprocess.run(
        [*PYSMPI, str(program), *map(str, arguments)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr[-3000:]


def test_same_data(tmp_path: Path) -> None:
    if not real_mpich.mpich():
        pytest.skip("no mpiexec on this machine: there is no real MPI to compare with")
    ours, theirs = tmp_path / "ours.json", tmp_path / "theirs.json"
    simulated(PROGRAM, ours)
    real_mpich.run(3, PROGRAM, theirs)
    everything = json.loads(ours.read_text())
    for rank, expected in enumerate(json.loads(theirs.read_text())):
        got = everything[rank]
        differ = [
            f"rank {rank}: {name}: {got.get(name)}; MPICH {outcome}"
            for name, outcome in expected.items()
            if got.get(name) != outcome
        ]
        assert not differ, "\n".join(differ)
        # MPICH crashes in these; their data is that of the calls without `all`.
        for name in got.keys() - expected.keys():
            assert got[name] == expected[name.replace("_all", "")], name


def test_operators(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(OPERATOR)
    simulated(program)
