"""A program of a user, with types: mypy --strict checks it against the types that ship."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import pysmpi
from pysmpi.platform import load


@pysmpi.sample(precision=0.02)
def relax(field: NDArray[np.float64], passes: int) -> float:
    for _ in pysmpi.sample(range(passes), iters=3):
        field[1:-1] = (field[:-2] + field[2:]) / 2
    return float(field.max())


def program(size: int) -> float:
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    field = pysmpi.shared_empty(size, private=[0, -1])
    field[:] = comm.rank
    pysmpi.touch(field, write=True)
    largest = relax(field, 10)
    total = np.empty(1)
    comm.Allreduce(np.array([largest]), total, op=MPI.MAX)
    return float(total[0])


def speedup(machine: str | Path) -> float:
    options = pysmpi.Options(compute="none", platform=machine, seed=3)
    one: pysmpi.Result = pysmpi.run(program, args=(1000,), options=options)
    four = pysmpi.run(program, 4, args=(1000,), options=options, coll={"allreduce": "rdb"})
    slowest = max(four.ranks, key=lambda rank: rank["end_seconds"])
    print(slowest["host"], slowest["wait_seconds"], four.messages, [*four.returns])
    return one.seconds / four.seconds


def failure(path: Path) -> str:
    try:
        return f"{pysmpi.run(path, nprocs=2, check='leaks').seconds:.3f} s"
    except pysmpi.ProgramError as error:
        codes: list[str] = [finding.code for finding in error.result.findings]
        return f"{error.result.exit_status}: {error.result.error} {codes}"
    except pysmpi.UsageError as error:
        return str(error)


def latency(name: str) -> float:
    machine = load(name)
    return machine.route(machine.hosts[0], machine.hosts[-1]).latency
