"""Windows: their creation, their properties, their memory."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from simulated import simulate

import pysmpi
from pysmpi.mpi import MPI


def on(size: int, main: Any, per_host: int = 8) -> list[Any]:
    return simulate(size, lambda rank: main(MPI.COMM_WORLD), per_host=per_host)


def error_of(call: Any) -> int:
    with pytest.raises(MPI.Exception) as caught:
        call()
    return caught.value.Get_error_class()


MAKERS = {
    MPI.WIN_FLAVOR_CREATE: lambda comm: MPI.Win.Create(bytearray(24), 8, comm=comm),
    MPI.WIN_FLAVOR_ALLOCATE: lambda comm: MPI.Win.Allocate(24, 8, comm=comm),
    MPI.WIN_FLAVOR_SHARED: lambda comm: MPI.Win.Allocate_shared(24, 8, comm=comm),
}


@pytest.mark.parametrize("flavor", MAKERS)
def test_a_window_describes_itself(flavor: int) -> None:
    def main(comm: Any) -> None:
        win = MAKERS[flavor](comm)
        base, nbytes, unit = win.attrs
        assert (nbytes, unit, win.flavor, win.model) == (24, 8, flavor, MPI.WIN_UNIFIED)
        assert win.Get_attr(MPI.WIN_BASE) == base == MPI.Get_address(win.tomemory())
        assert win.Get_attr(MPI.WIN_SIZE) == 24
        assert win.Get_attr(MPI.WIN_DISP_UNIT) == 8
        assert win.Get_attr(MPI.WIN_CREATE_FLAVOR) == flavor
        assert win.Get_attr(MPI.WIN_MODEL) == MPI.WIN_UNIFIED
        assert (win.group_rank, win.group_size) == (comm.rank, comm.size)
        assert MPI.Group.Compare(win.group, comm.group) == MPI.IDENT
        view = memoryview(win)
        assert view.nbytes == 24 and not view.readonly
        view[3] = 7
        assert win.tomemory()[3] == 7
        win.name = "mine"
        assert MPI.Win(win).name == "mine"
        win.Free()
        assert win == MPI.WIN_NULL and win.name == "MPI_WIN_NULL"

    on(3, main)


def test_memory_outlives_its_window() -> None:
    def main(comm: Any) -> None:
        win = MPI.Win.Allocate(8, comm=comm)
        memory = win.tomemory()
        array = np.frombuffer(win, "u1")
        win.Free()
        memory[0] = 5
        assert array[0] == 5

    on(2, main)


def test_shared_memory_is_one_piece() -> None:
    def main(comm: Any) -> None:
        win = MPI.Win.Allocate_shared(8 * comm.rank, 8, comm=comm)
        mine = np.frombuffer(win, "i8")
        mine[:] = comm.rank
        comm.Barrier()
        first, unit = win.Shared_query(MPI.PROC_NULL)
        assert (first.nbytes, unit) == (8, 8)
        end = first.address
        for other in range(1, comm.size):
            part, _ = win.Shared_query(other)
            assert part.address == end
            assert np.frombuffer(part, "i8").tolist() == [other] * other
            end += part.nbytes

    on(4, main)


def test_memory_is_shared_on_one_host_only() -> None:
    def main(comm: Any) -> None:
        assert error_of(lambda: MPI.Win.Allocate_shared(8, comm=comm)) == MPI.ERR_RMA_SHARED
        node = comm.Split_type(MPI.COMM_TYPE_SHARED)
        assert node.size == 2
        MPI.Win.Allocate_shared(8, comm=node).Free()
        win = MPI.Win.Allocate(8, comm=comm)
        sizes = [win.Shared_query(rank)[0].nbytes for rank in range(comm.size)]
        assert sizes == [8 if rank // 2 == comm.rank // 2 else 0 for rank in range(comm.size)]
        own = MPI.Win.Create(bytearray(8), comm=comm)
        sizes = [own.Shared_query(rank)[0].nbytes for rank in range(comm.size)]
        assert sizes == [8 if rank == comm.rank else 0 for rank in range(comm.size)]

    on(4, main, per_host=2)


def test_dynamic_windows() -> None:
    def main(comm: Any) -> None:
        win = MPI.Win.Create_dynamic(comm=comm)
        assert win.attrs[:2] == (MPI.BOTTOM, 0) and len(win.tomemory()) == 0
        data = np.zeros(4)
        win.Attach(data)
        assert error_of(lambda: win.Attach(data[1:])) == MPI.ERR_RMA_ATTACH
        addresses = comm.allgather(MPI.Get_address(data))
        win.Fence()
        to = (comm.rank + 1) % comm.size
        win.Put(np.array([1.0, comm.rank]), to, addresses[to] + 8)
        for wrong in (addresses[to] - 8, addresses[to] + 24, 0):
            put = lambda: win.Put(np.zeros(2), to, wrong)  # noqa: E731, B023
            assert error_of(put) == MPI.ERR_RMA_RANGE
        win.Fence()
        assert data.tolist() == [0, 1, (comm.rank - 1) % comm.size, 0]
        assert error_of(lambda: win.Shared_query(0)) == MPI.ERR_RMA_FLAVOR
        win.Detach(data)
        assert error_of(lambda: win.Detach(data)) == MPI.ERR_RMA_ATTACH
        static = MPI.Win.Allocate(8, comm=comm)
        assert error_of(lambda: static.Attach(data)) == MPI.ERR_RMA_FLAVOR

    on(3, main)


def test_wrong_arguments() -> None:
    def main(comm: Any) -> None:
        win = MPI.Win
        assert error_of(lambda: win.Allocate(-1, comm=comm)) == MPI.ERR_SIZE
        assert error_of(lambda: win.Allocate_shared(-1, comm=comm)) == MPI.ERR_SIZE
        assert error_of(lambda: win.Allocate(8, 0, comm=comm)) == MPI.ERR_DISP
        assert error_of(lambda: win.Allocate_shared(8, 0, comm=comm)) == MPI.ERR_DISP
        assert error_of(lambda: win.Create(None, comm=MPI.Intracomm())) == MPI.ERR_COMM
        with pytest.raises(TypeError):
            win.Create(None, comm=MPI.COMM_NULL)
        with pytest.raises(TypeError):
            win.Create(None, info=None)
        with pytest.raises(BufferError):
            win.Create(b"constant", comm=comm)
        with pytest.raises(TypeError):
            win.Create(1.5, comm=comm)
        with pytest.raises(TypeError):
            win((1, 2))
        for call in (MPI.Win().Fence, MPI.Win().Get_group, MPI.Win().tomemory):
            assert error_of(call) == MPI.ERR_WIN

    on(1, main)


def test_hints() -> None:
    def main(comm: Any) -> None:
        info = MPI.Info.Create({"accumulate_ordering": "none", "mine": "yes"})
        win = MPI.Win.Allocate(8, info=info, comm=comm)
        hints = dict(win.info.items())
        assert hints["accumulate_ordering"] == "none" and hints["mine"] == "yes"
        assert hints["no_locks"] == "false"
        win.info = MPI.Info.Create({"no_locks": "true"})
        assert win.info.get("no_locks") == "true"

    on(2, main)


def test_attributes_and_error_handlers() -> None:
    def main(comm: Any) -> None:
        gone = []
        keyval = MPI.Win.Create_keyval(delete_fn=lambda win, key, value: gone.append(value))
        win = MPI.Win.Allocate(8, comm=comm)
        win.Set_attr(keyval, "one")
        win.Set_attr(keyval, "two")
        assert win.Get_attr(keyval) == "two" and gone == ["one"]
        assert error_of(lambda: win.Set_attr(MPI.WIN_SIZE, 1)) == MPI.ERR_KEYVAL
        seen = []
        handler = MPI.Win.Create_errhandler(lambda win, code: seen.append(code))
        win.Set_errhandler(handler)
        assert error_of(lambda: win.Unlock(0)) == MPI.ERR_RMA_SYNC
        assert seen == [MPI.ERR_RMA_SYNC]
        win.Free()
        assert gone == ["one", "two"]

    on(2, main)


def test_views_of_a_window_survive_the_garbage_collector() -> None:
    import gc

    class Knot:
        pass

    def main(comm: Any) -> None:
        for memory in (MPI.Win.Allocate(16, comm=comm), MPI.Alloc_mem(16)):
            knot: Any = Knot()
            knot.self, knot.memory, knot.view = knot, memory, memoryview(memory)
            del memory, knot
        gc.collect()

    on(1, main)


def test_memory_at_address_0_is_refused() -> None:
    def main(comm: Any) -> None:
        nothing = (ctypes.c_char * 8).from_address(0)
        assert error_of(lambda: MPI.Win.Create(nothing, 1, comm=comm)) == MPI.ERR_BASE
        window = MPI.Win.Create_dynamic(comm=comm)
        assert error_of(lambda: window.Attach(nothing)) == MPI.ERR_BASE
        window.Free()
        MPI.Win.Create((ctypes.c_char * 0).from_address(0), 1, comm=comm).Free()

    on(2, main)


def test_parts_without_bytes_have_no_address() -> None:
    def empty() -> list[bool]:
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        own = 16 if comm.rank % 2 == 0 else 0
        windows = [
            MPI.Win.Allocate_shared(own, 4, comm=comm), MPI.Win.Allocate_shared(own, 4),
            MPI.Win.Allocate(own, 4),
        ]  # fmt: skip
        parts = [windows[0].Shared_query(rank)[0] for rank in range(comm.size)]
        assert [part.nbytes for part in parts] == [16, 0, 16]
        bases = [window.Get_attr(MPI.WIN_BASE) for window in windows]
        for window in windows:
            window.Free()
        return [address != 0 for address in (*(part.address for part in parts), *bases)]

    ranks = pysmpi.run(empty, 3, compute="none").returns
    assert ranks == [[True, False, True, *[rank % 2 == 0] * 3] for rank in range(3)]
