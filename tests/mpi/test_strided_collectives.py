"""Strided data of collectives is packed and unpacked, as libraries do it."""

from __future__ import annotations

import pytest

import pysmpi
from pysmpi.studies.mlogp import experiments

COUNT = 2048  # doubles of a rank


def seconds(operation: str, stride: int, persistent: str = "") -> tuple[float, float]:
    """Seconds of a call with data at a stride (in doubles) at each rank, of rank 0 and of all."""
    import numpy as np
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    vector = MPI.DOUBLE.Create_vector(COUNT, 1, stride)
    strided = vector.Create_resized(0, 8 * COUNT * stride).Commit()
    one = [np.zeros(COUNT * stride), 1, strided]
    many = [np.zeros(COUNT * stride * comm.size), 1, strided]
    other = [np.zeros(COUNT * stride * comm.size), 1, strided]
    calls = {
        "bcast": lambda: comm.Bcast(one),
        "ibcast": lambda: comm.Ibcast(one).Wait(),
        "gather": lambda: comm.Gather(one, many),
        "scatter": lambda: comm.Scatter(many, one),
        "allgather": lambda: comm.Allgather(one, many),
        "alltoall": lambda: comm.Alltoall(many, other),
    }
    taken = 0.0
    for _ in range(2):
        comm.Barrier()
        begin = MPI.Wtime()
        calls[operation]()
        taken = MPI.Wtime() - begin
    return taken, comm.allreduce(taken, op=MPI.MAX)


def run(operation: str, stride: int, **options: object) -> tuple[float, float]:
    chosen = {"platform": "multicore-cluster", "map_by": "core", "compute": "none", **options}
    chosen["cfg"] = {"smpi/wtime": "0"}
    result = pysmpi.run(seconds, 8, args=(operation, stride), **chosen)
    assert all(rank["compute_seconds"] < 1e-9 for rank in result.ranks)  # it is the library's
    return result.returns[0]


# The packs and unpacks of a rank's block that rank 0 waits for at least.
PACKS = {"bcast": 1, "ibcast": 1, "gather": 1 + 8, "scatter": 8 + 1, "allgather": 1 + 8,
         "alltoall": 8 + 8}  # fmt: skip


@pytest.mark.parametrize("operation", PACKS)
def test_data_is_packed_once_and_unpacked_once(operation: str) -> None:
    dense, sparse = run(operation, 1)[0], run(operation, 8)[0]
    pack = COUNT * 6e-9  # of a block, without the lines that it touches
    assert sparse - dense > 0.9 * PACKS[operation] * pack


@pytest.mark.parametrize("model", ["hybrid", "log_3P", "2log_23P"])
@pytest.mark.parametrize("operation", ["bcast", "gather", "allgather"])
def test_larger_strides_take_longer(operation: str, model: str) -> None:
    times = [run(operation, stride, model=model)[1] for stride in (1, 2, 64)]
    assert times[0] < times[1] <= times[2]


def test_nothing_is_packed_on_machines_without_a_description() -> None:
    for machine in ("graphene", "cluster"):
        assert run("bcast", 1, platform=machine) == run("bcast", 64, platform=machine)


@pytest.mark.parametrize("kind", ["linear", "binomial"])
@pytest.mark.parametrize("model", ["log_3P", "2log_23P"])
def test_bcast_follows_the_formulas_of_the_paper(kind: str, model: str) -> None:
    """Figures 3 and 4 of Tu et al. by MPI_Bcast, at a corner that has the largest latency."""
    assert experiments.under(model, kind, 16384, 512) == pytest.approx(1.0, rel=0.02)
