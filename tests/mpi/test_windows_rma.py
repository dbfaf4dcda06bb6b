"""One-sided communication: the data, against a plain reading; its order, its time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simulated import simulate

from pysmpi.mpi import MPI


def on(size: int, main: Any) -> list[Any]:
    return simulate(size, lambda rank: main(MPI.COMM_WORLD))


def error_of(call: Any) -> int:
    with pytest.raises(MPI.Exception) as caught:
        call()
    return caught.value.Get_error_class()


def test_put_and_get_through_datatypes() -> None:
    def main(comm: Any) -> None:
        win = MPI.Win.Allocate(96, 8, comm=comm)
        grid = np.frombuffer(win, "f8").reshape(3, 4)
        grid[:] = 0
        column = MPI.DOUBLE.Create_vector(3, 1, 4).Commit()
        to = (comm.rank + 1) % comm.size
        win.Fence()
        win.Put(np.arange(3.0) + comm.rank, to, (2, 1, column))
        win.Fence()
        left = (comm.rank - 1) % comm.size
        assert grid[:, 2].tolist() == [left, left + 1, left + 2]
        assert np.count_nonzero(np.delete(grid, 2, 1)) == 0
        found = np.zeros((3, 4))
        win.Get([found, 1, column], to, (2, 1, column))
        win.Fence()
        assert found[:, 0].tolist() == [comm.rank, comm.rank + 1, comm.rank + 2]
        win.Free()

    on(3, main)


OPS = [
    (MPI.SUM, np.add), (MPI.PROD, np.multiply), (MPI.MAX, np.maximum), (MPI.MIN, np.minimum),
    (MPI.BAND, np.bitwise_and), (MPI.BOR, np.bitwise_or), (MPI.BXOR, np.bitwise_xor),
    (MPI.REPLACE, lambda old, new: new),
]  # fmt: skip
CALLS = ("put", "get", "accumulate", "get_accumulate", "fetch", "swap", "nothing")


@st.composite
def programs(draw: Any) -> Any:
    """Calls of each of some ranks, each under a lock of its own."""
    size = draw(st.integers(1, 4))
    call = st.tuples(
        st.sampled_from(CALLS),
        st.integers(0, size - 1),
        st.integers(0, 6),
        st.integers(1, 4),
        st.sampled_from(range(len(OPS))),
        st.integers(-5, 5),
    )
    return size, [draw(st.lists(call, max_size=6)) for _ in range(size)]


@settings(max_examples=60, deadline=None)
@given(programs())
def test_calls_under_exclusive_locks_do_what_they_say(program: Any) -> None:
    size, calls = program
    log: list[Any] = []

    def main(comm: Any) -> list[int]:
        me = comm.rank
        win = MPI.Win.Allocate(80, 8, comm=comm)
        for kind, to, at, count, which, value in calls[me]:
            op = OPS[which][0]
            data = np.arange(count) + value
            into = np.full(count, 99)
            one, same = data[:1], np.array([value])
            win.Lock(to)
            turn = len(log)
            log.append(None)
            if kind == "put":
                win.Put(data, to, at)
            elif kind == "get":
                win.Get(into, to, at)
            elif kind == "accumulate":
                win.Accumulate(data, to, at, op)
            elif kind == "get_accumulate":
                win.Get_accumulate(data, into, to, at, op)
            elif kind == "fetch":
                win.Fetch_and_op(one, into[:1], to, at, op)
            elif kind == "nothing":
                win.Get_accumulate(data, into, to, at, MPI.NO_OP)
            else:
                win.Compare_and_swap(one, same, into[:1], to, at)
            win.Unlock(to)
            log[turn] = (kind, to, at, count, which, value, into.tolist())
        comm.Barrier()
        return np.frombuffer(win, "i8").tolist()

    final = on(size, main)
    memory = np.zeros((size, 10), "i8")
    for kind, to, at, count, which, value, into in log:
        data = np.arange(count) + value
        place = memory[to, at : at + (1 if kind in ("fetch", "swap") else count)]
        before = place.tolist()
        op = OPS[which][1]
        if kind == "put":
            place[:] = data
        elif kind in ("accumulate", "get_accumulate", "fetch"):
            place[:] = op(place, data[: len(place)])
        elif kind == "swap" and place[0] == value:
            place[0] = value
        if kind not in ("put", "accumulate"):
            assert into == before + [99] * (count - len(before))
        else:
            assert into == [99] * count
    assert memory.tolist() == final


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.sampled_from([1, 1000]), st.integers(0, 2)), max_size=8))
def test_accumulates_of_one_origin_keep_their_order(calls: Any) -> None:
    def main(comm: Any) -> Any:
        win = MPI.Win.Allocate(8000, 8, comm=comm)
        fetched = []
        win.Lock_all()
        if comm.rank == 0:
            for i, (count, kind) in enumerate(calls):
                data, into = np.full(count, i + 1.0), np.zeros(count)
                if kind == 0:
                    win.Accumulate(data, 1, op=MPI.REPLACE)
                elif kind == 1:
                    win.Get_accumulate(data, into, 1, op=MPI.REPLACE)
                    fetched.append((i, into))
                else:
                    win.Get_accumulate(data, into, 1, op=MPI.NO_OP)
                    fetched.append((i, into))
        win.Unlock_all()
        return fetched

    fetched = on(2, main)[0]
    memory = np.zeros(1000)
    results = dict(fetched)
    for i, (count, kind) in enumerate(calls):
        if kind:
            assert results[i].tolist() == memory[:count].tolist()
        if kind < 2:
            memory[:count] = i + 1


def test_every_increment_counts() -> None:
    def main(comm: Any) -> Any:
        win = MPI.Win.Allocate(8 if comm.rank == 0 else 0, 8, comm=comm)
        one, old = np.ones(1, "i8"), np.zeros(1, "i8")
        seen = []
        for _ in range(5):
            win.Lock(0, MPI.LOCK_SHARED)
            win.Fetch_and_op(one, old, 0)
            win.Unlock(0)
            seen.append(int(old[0]))
        comm.Barrier()
        return seen

    seen = on(4, main)
    assert sorted(sum(seen, [])) == list(range(20))
    assert all(mine == sorted(mine) for mine in seen)


def test_pairs_and_mixed_datatypes() -> None:
    def main(comm: Any) -> None:
        pair = np.dtype([("value", "f8"), ("index", "i4")], align=True)
        memory = np.zeros(2, pair)
        win = MPI.Win.Create(memory, 16, comm=comm)
        win.Fence()
        mine = np.array([(comm.rank, comm.rank), (1.0, comm.rank)], pair)
        win.Accumulate([mine, 2, MPI.DOUBLE_INT], 0, (0, 2, MPI.DOUBLE_INT), MPI.MAXLOC)
        win.Fence()
        if comm.rank == 0:
            assert memory.tolist() == [(2.0, 2), (1.0, 0)]
        mixed = MPI.Datatype.Create_struct([1, 1], [0, 8], [MPI.DOUBLE, MPI.INT]).Commit()
        call = lambda op: win.Accumulate([mine, 1, mixed], 0, op=op)  # noqa: E731
        assert error_of(lambda: call(MPI.SUM)) == MPI.ERR_TYPE
        call(MPI.REPLACE)
        ints = np.zeros(1, "i4")
        assert error_of(lambda: win.Accumulate(ints, 0, (0, 1, MPI.FLOAT))) == MPI.ERR_TYPE
        win.Fence()

    on(3, main)


def test_wrong_arguments() -> None:
    def main(comm: Any) -> None:
        win = MPI.Win.Allocate(32, 8, comm=comm)
        win.Fence()
        two = np.zeros(2)
        assert error_of(lambda: win.Put(two, comm.size)) == MPI.ERR_RANK
        assert error_of(lambda: win.Put(two, 0, -1)) == MPI.ERR_DISP
        assert error_of(lambda: win.Put(two, 0, 3)) == MPI.ERR_RMA_RANGE
        assert error_of(lambda: win.Get(two, 0, (0, 9))) == MPI.ERR_RMA_RANGE
        assert error_of(lambda: win.Put(two, 0, (0, -1))) == MPI.ERR_COUNT
        assert error_of(lambda: win.Put(two, 0, (0, 1))) == MPI.ERR_TRUNCATE
        assert error_of(lambda: win.Get(two, 0, (0, 3))) == MPI.ERR_TRUNCATE
        assert error_of(lambda: win.Put(two, 0, (0, 2, MPI.Datatype()))) == MPI.ERR_TYPE
        assert error_of(lambda: win.Accumulate(two, 0, op=MPI.NO_OP)) == MPI.ERR_OP
        assert error_of(lambda: win.Accumulate(two, 0, op=MPI.BAND)) == MPI.ERR_OP
        own = MPI.Op.Create(lambda a, b, t: None)
        assert error_of(lambda: win.Accumulate(two, 0, op=own)) == MPI.ERR_OP
        one = np.zeros(1)
        swap = lambda: win.Compare_and_swap(one, one, two[:1], 0)  # noqa: E731
        assert error_of(swap) == MPI.ERR_TYPE
        with pytest.raises(ValueError):
            win.Fetch_and_op(two, one, 0)
        with pytest.raises(ValueError):
            win.Put(two, 0, (0, 2, MPI.DOUBLE, 4))
        with pytest.raises(BufferError):
            win.Get(b"constant", 0)
        with pytest.raises(TypeError):
            win.Put(two, "0")
        with pytest.raises(TypeError):
            win.Put(two, 0, op=MPI.SUM)
        win.Put(None, MPI.PROC_NULL)
        win.Fence()

    on(1, main)


def test_requests() -> None:
    def main(comm: Any) -> None:
        win = MPI.Win.Allocate(800, 8, comm=comm)
        memory = np.frombuffer(win, "f8")
        to = (comm.rank + 1) % comm.size
        win.Lock_all()
        data = np.full(100, comm.rank + 1.0)
        request = win.Rput(data, to)
        request.Wait()
        # The request is complete: the buffer is the program's again.
        data[:] = -1
        win.Flush(to)
        into, old = np.zeros(100), np.zeros(1)
        requests = [win.Rget(into, to), win.Raccumulate(np.ones(1), to, 99)]
        requests.append(win.Rget_accumulate(np.ones(1), old, to, 99))
        requests.append(win.Rput(None, MPI.PROC_NULL))
        MPI.Request.Waitall(requests)
        assert set(into[:99]) == {comm.rank + 1.0} and old[0] == comm.rank + 2
        win.Unlock_all()
        comm.Barrier()
        assert memory[99] == (comm.rank - 1) % comm.size + 3
        win.Fence()
        assert error_of(lambda: win.Rput(data, to)) == MPI.ERR_RMA_SYNC

    on(3, main)


def test_local_completion_frees_the_buffer() -> None:
    def main(comm: Any) -> list[float]:
        win = MPI.Win.Allocate(80, 8, comm=comm)
        data = np.ones(1)
        win.Lock_all()
        for i in range(5):
            data[0] = i
            win.Put(data, 0, comm.rank * 5 + i)
            win.Flush_local(0)
        for i in range(5):
            data[0] = 10
            win.Accumulate(data, 0, comm.rank * 5 + i)
            win.Flush_local_all()
        data[0] = -1
        win.Unlock_all()
        comm.Barrier()
        return np.frombuffer(win, "f8").tolist()

    assert on(2, main)[0] == [10, 11, 12, 13, 14] * 2


def test_transfers_take_the_time_of_their_flows() -> None:
    def main(comm: Any) -> Any:
        win = MPI.Win.Allocate(10**6, comm=comm)
        data = np.zeros(10**6, "u1")
        times = {}
        comm.Barrier()
        if comm.rank == 0:
            win.Lock(1)
            for name, call in (
                ("put", lambda: win.Put(data, 1)),
                ("get", lambda: win.Get(data, 1)),
                ("fetch", lambda: win.Get_accumulate([data, MPI.INT8_T], data.copy(), 1,
                                                     (0, 10**6, MPI.INT8_T))),
                ("self", lambda: None),
            ):  # fmt: skip
                start = MPI.Wtime()
                call()
                issued = MPI.Wtime() - start
                win.Flush(1)
                times[name] = (issued, MPI.Wtime() - start)
            win.Unlock(1)
        comm.Barrier()
        return times

    times = on(2, main)[0]
    flow = 1e-6 + 1e-3  # a microsecond, a gigabyte a second
    assert times["put"][1] == pytest.approx(flow, rel=1e-2)
    assert times["get"][1] == pytest.approx(flow, rel=1e-2)
    assert times["fetch"][1] == pytest.approx(2 * flow, rel=1e-2)
    assert all(issued < 1e-5 for issued, _ in times.values())


@pytest.mark.parametrize("pair", ["TWOINT", "DOUBLE_INT", "LONG_DOUBLE_INT"])
def test_accumulates_combine_pairs_in_derived_datatypes(pair: str) -> None:
    whole = getattr(MPI, pair)
    dtype = np.dtype(
        [("a", {"TWOINT": "i4", "DOUBLE_INT": "f8"}.get(pair, "g")), ("b", "i4")], align=True
    )

    def main(comm: Any) -> None:
        mine, values = np.zeros(9, dtype), np.zeros(9, dtype)
        mine["a"], mine["b"] = 5, 1
        values["a"], values["b"] = np.arange(1, 10), np.arange(9)
        some = whole.Create_vector(3, 2, 3).Commit()
        win = MPI.Win.Create(mine, 1, comm=comm)
        win.Fence()
        if comm.rank == 0:
            win.Accumulate([values, 1, some], 1, (0, 1, some), MPI.MAXLOC)
        win.Fence()
        if comm.rank == 1:
            assert mine["a"].tolist() == [5, 5, 5, 5, 5, 5, 7, 8, 5]
            assert mine["b"].tolist() == [1, 1, 1, 1, 1, 1, 6, 7, 1]
        win.Free()
        mixed = MPI.Datatype.Create_struct([1, 1], [0, 16], [whole, MPI.INT]).Commit()
        win = MPI.Win.Allocate(64, 1, comm=comm)
        win.Fence()
        assert error_of(lambda: win.Accumulate([values, 1, mixed], 0, (0, 1, mixed), MPI.MAXLOC))
        win.Fence()
        win.Free()

    on(2, main)
