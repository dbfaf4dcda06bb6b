"""Handles let go of memory when they are freed, not when cycles are collected."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from simulated import simulate

from pysmpi.mpi import MPI

MIB = 1 << 20


def array() -> np.ndarray:
    return np.ones(MIB // 8)


def allocated() -> None:
    window = MPI.Win.Allocate(MIB, 1, comm=MPI.COMM_WORLD)
    window.Fence()
    window.Put([array()[:10], MPI.DOUBLE], 0)
    window.Fence()
    window.Free()


def shared() -> None:
    window = MPI.Win.Allocate_shared(MIB, 1, comm=MPI.COMM_WORLD)
    window.Shared_query(0)
    window.Free()


def created() -> None:
    MPI.Win.Create(array(), comm=MPI.COMM_WORLD).Free()


def dynamic() -> None:
    window = MPI.Win.Create_dynamic(comm=MPI.COMM_WORLD)
    window.Attach(array())
    window.Free()


def partitioned() -> None:
    comm = MPI.COMM_WORLD
    peer = 1 - comm.rank
    requests = [comm.Psend_init(array(), 2, peer, 0), comm.Precv_init(array(), 2, peer, 0)]
    MPI.Prequest.Startall(requests)
    requests[0].Pready_range(0, 1)
    MPI.Request.Waitall(requests)
    for request in requests:
        request.Free()


def persistent() -> None:
    comm = MPI.COMM_WORLD
    peer = 1 - comm.rank
    requests = [
        comm.Send_init(array(), peer), comm.Recv_init(array(), peer),
        comm.Allreduce_init(array(), array()), comm.Alltoall_init(array(), array()),
    ]  # fmt: skip
    MPI.Prequest.Startall(requests)
    MPI.Request.Waitall(requests)
    for request in requests:
        request.Free()


def communicator() -> None:
    comm = MPI.COMM_WORLD.Dup()
    key = MPI.Comm.Create_keyval(copy_fn=True)
    comm.Set_attr(key, array())
    memory = array()
    handler = MPI.Comm.Create_errhandler(lambda comm, code, memory=memory: None)
    comm.Set_errhandler(handler)
    twin = comm.Dup()
    comm.Allreduce(memory, array())
    comm.Ibcast(memory).Wait()
    comm.allgather(memory)
    for handle in (handler, comm, twin):
        handle.Free()
    MPI.Comm.Free_keyval(key)


def functions() -> None:
    memory = array()
    MPI.Op.Create(lambda x, y, datatype, memory=memory: None).Free()
    request = MPI.Grequest.Start(lambda status, memory=memory: None, None, None)
    request.Complete()
    request.Wait()


def datatype() -> None:
    made = MPI.DOUBLE.Create_indexed([1] * 10_000, range(0, 20_000, 2)).Commit()
    MPI.COMM_WORLD.Bcast([array(), 1, made])
    made.Free()


def raising() -> None:
    comm = MPI.COMM_WORLD
    try:
        comm.reduce({1: array()})
    except TypeError:
        pass


@pytest.fixture
def uncollected() -> Iterator[None]:
    gc.collect()
    gc.disable()
    tracemalloc.start(1)
    yield
    tracemalloc.stop()
    gc.enable()


@pytest.mark.parametrize("use", (
    allocated, shared, created, dynamic, partitioned, persistent, communicator, functions,
    datatype, raising,
))  # fmt: skip
def test_freed_at_once(use: Callable[[], None], uncollected: None) -> None:
    def main(rank: object) -> list[int]:
        sizes = []
        for _ in range(6):
            use()
            MPI.COMM_WORLD.Barrier()
            sizes.append(tracemalloc.get_traced_memory()[0])
        return sizes

    sizes = simulate(2, main)[0]
    assert sizes[5] - sizes[2] < MIB / 2, sizes


def test_views_outlive_the_window() -> None:
    def main(rank: object) -> None:
        comm = MPI.COMM_WORLD
        window = MPI.Win.Allocate(8000, 8, comm=comm)
        common = MPI.Win.Allocate_shared(800, 8, comm=comm)
        views = [window.tomemory(), memoryview(window), np.asarray(window)]
        arrays = [np.frombuffer(view, "f8") for view in views]
        other = np.frombuffer(common.Shared_query(1 - comm.rank)[0], "f8")
        arrays[0][:] = comm.rank
        np.frombuffer(common, "f8")[:] = comm.rank
        comm.Barrier()
        window.Free()
        common.Free()
        rubbish = [np.full(1000, 9.0) for _ in range(50)]
        assert all((found == comm.rank).all() for found in arrays)
        assert (other == 1 - comm.rank).all()
        arrays[0][:] = len(rubbish)
        assert arrays[2][-1] == 50

    simulate(2, main)
