"""The recorder of real MPI libraries reads collective arguments as the calls of pysmpi do."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from pysmpi.api import run
from pysmpi.collectives.call import arguments_of
from pysmpi.mpi.base.ranks import current
from pysmpi.mpi.collective.schedules import of_rank

SIZE = 3


def cases(MPI, me):
    """A call of each operation and form: its name, and its arguments by name."""
    one, block, blocks = np.zeros(4), np.zeros(2), np.zeros(2 * SIZE)
    many = np.zeros(6)
    counts = [1, 3, 2]
    own = np.zeros(counts[me])
    at_root = me == 1
    yield "Barrier", {}
    for buf in (one, [one, MPI.DOUBLE], [one, 3, MPI.DOUBLE], np.zeros(3, "i2")):
        yield "Bcast", {"buf": buf, "root": 1}
    for name in ("Allreduce", "Scan", "Exscan"):
        yield name, {"sendbuf": one, "recvbuf": np.zeros(4)}
        yield name, {"sendbuf": MPI.IN_PLACE, "recvbuf": one}
    yield "Reduce", {"sendbuf": one, "recvbuf": np.zeros(4) if at_root else None, "root": 1}
    send = MPI.IN_PLACE if at_root else one
    yield "Reduce", {"sendbuf": send, "recvbuf": np.zeros(4) if at_root else None, "root": 1}
    yield "Gather", {"sendbuf": block, "recvbuf": blocks if at_root else None, "root": 1}
    send = MPI.IN_PLACE if at_root else block
    yield "Gather", {"sendbuf": send, "recvbuf": blocks if at_root else None, "root": 1}
    yield "Scatter", {"sendbuf": blocks if at_root else None, "recvbuf": block, "root": 1}
    receive = MPI.IN_PLACE if at_root else block
    yield "Scatter", {"sendbuf": blocks if at_root else None, "recvbuf": receive, "root": 1}
    yield "Allgather", {"sendbuf": block, "recvbuf": blocks}
    yield "Allgather", {"sendbuf": MPI.IN_PLACE, "recvbuf": blocks}
    yield "Alltoall", {"sendbuf": blocks, "recvbuf": np.zeros(2 * SIZE)}
    yield "Alltoall", {"sendbuf": MPI.IN_PLACE, "recvbuf": blocks}
    yield "Reduce_scatter_block", {"sendbuf": blocks, "recvbuf": block}
    yield "Reduce_scatter", {"sendbuf": many, "recvbuf": own, "recvcounts": counts}
    received = [many, counts] if at_root else None
    yield "Gatherv", {"sendbuf": own, "recvbuf": received, "root": 1}
    yield "Scatterv", {"sendbuf": received, "recvbuf": own, "root": 1}
    yield "Allgatherv", {"sendbuf": own, "recvbuf": [many, counts]}
    yield "Allgatherv", {"sendbuf": own, "recvbuf": [many, counts, [0, 1, 4], MPI.DOUBLE]}
    yield "Alltoallv", {"sendbuf": [many, counts], "recvbuf": [np.zeros(9), [counts[me]] * SIZE]}


class Watch:
    """Notes the calls that ranks make."""

    def __init__(self):
        self.calls = []

    def collective_entered(self, contribution, rank):
        self.calls.append(of_rank(contribution.call, contribution.me))


def test_the_arguments_of_each_operation_are_those_of_the_call():
    watch, results = Watch(), []

    def main():
        from mpi4py import MPI

        from pysmpi.record.collective_arguments import OPERATIONS, of_buffers

        comm = MPI.COMM_WORLD
        me = comm.rank
        if me == 0:
            current().engine.listeners.add(watch)
        comm.Barrier()
        seen = set()
        for name, passed in cases(MPI, me):
            seen.add(name.lower())
            comm.Barrier()
            before = len(watch.calls)
            recorded = of_buffers(name.lower(), {"root": 0, **passed}, SIZE, me)
            getattr(comm, name)(**passed)
            call = next(call for call in watch.calls[before:] if call.rank == me)
            results.append((name, me, recorded, arguments_of(call)))
        assert seen == set(OPERATIONS)

    run(main, nprocs=SIZE, compute="none")
    assert len(results) > 60
    for name, me, recorded, arguments in results:
        for field in ("op", "root", "count", "send_counts", "recv_counts"):
            default = 0 if field in ("root", "count") else None
            expected, value = arguments.get(field, default), recorded.get(field, default)
            if name == "Reduce_scatter" and field == "count":
                continue  # the counts of all ranks tell it
            if isinstance(value, list):
                value = tuple(value)
            assert value == expected, (name, me, field, recorded, arguments)
        if arguments.get("count") or arguments.get("send_counts"):
            assert recorded["type_size"] == arguments.get("type_size", 1), (name, me)


NOT_SHOWN = """
import mpi4py
mpi4py.rc.initialize = False  # this process is none of MPI
from pysmpi.record import wrapping
wrapping.class_dictionary.writable = lambda cls: None
wrapping.install(None)
"""


@pytest.mark.skipif(
    shutil.which("mpiexec", path=f"{Path(sys.executable).parent}{os.pathsep}{os.defpath}") is None,
    reason="mpiexec of a real MPI is not installed",
)
def test_a_python_that_does_not_show_methods_is_named() -> None:
    done = subprocess.run([sys.executable, "-c", NOT_SHOWN], capture_output=True, text=True)
    version = platform.python_version().rstrip("+")
    assert f"UsageError: Python {version} does not show the methods of " in done.stderr
