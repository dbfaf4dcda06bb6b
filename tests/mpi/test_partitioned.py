"""Partitioned communication: the data, its dates, and its pieces."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simulated import simulate

from pysmpi.mpi import MPI


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 3), st.booleans(), st.data())
def test_all_data_arrives_whatever_the_partitions(
    sends: int, receives: int, unit: int, late: bool, data: Any
) -> None:
    order = data.draw(st.permutations(range(sends)))
    count = sends * receives * unit
    starts = 3

    def main(rank: Any) -> None:
        world = MPI.COMM_WORLD
        if rank.pid == 0:
            buf = np.zeros(count, dtype="i")
            request = world.Psend_init([buf, MPI.INT], sends, 1, tag=4)
            for start in range(starts):
                request.Start()
                size = count // sends
                for i in order:
                    buf[i * size : (i + 1) * size] = np.arange(size) + 100 * start + i * size
                    request.Pready(i)
                request.Wait()
        else:
            buf = np.zeros(count, dtype="i")
            if late:
                rank.sleep(1e-3)
            request = world.Precv_init([buf, MPI.INT], receives, 0, tag=4)
            status = MPI.Status()
            for start in range(starts):
                request.Start()
                size = count // receives
                for i in range(receives):
                    while not request.Parrived(i):
                        pass
                    part = buf[i * size : (i + 1) * size]
                    assert (part == np.arange(size) + 100 * start + i * size).all()
                request.Wait(status)
                assert status.Get_count(MPI.INT) == count
                assert (status.source, status.tag) == (0, 4)
        request.Free()

    simulate(2, main)


def test_partitions_travel_when_they_are_ready() -> None:
    """The first partition arrives long before the second one is ready."""
    size = 1 << 20

    def main(rank: Any) -> Any:
        world = MPI.COMM_WORLD
        buf = bytearray(2 * size)
        dates = []
        if rank.pid == 0:
            request = world.Psend_init(buf, 2, 1)
            request.Start()
            request.Pready(0)
            rank.sleep(1.0)
            request.Pready(1)
            request.Wait()
        else:
            request = world.Precv_init(buf, 2, 0, 0)
            request.Start()
            for i in range(2):
                while not request.Parrived(i):
                    rank.sleep(1e-4)
                dates.append(MPI.Wtime())
            request.Wait()
        request.Free()
        return dates

    first, second = simulate(2, main)[1]
    assert size / 1e9 <= first < 0.1 and second >= 1.0 + size / 1e9


def test_pairs_are_made_in_the_order_of_initialization() -> None:
    def main(rank: Any) -> Any:
        world = MPI.COMM_WORLD
        if rank.pid == 0:
            requests = [world.Psend_init(bytes([i]), 1, 1, 7) for i in (10, 20)]
            for request in reversed(requests):
                request.Start()
                request.Pready(0)
            MPI.Request.Waitall(requests)
            return None
        buffers = [bytearray(1), bytearray(1)]
        requests = [world.Precv_init(buf, 1, 0, 7) for buf in buffers]
        MPI.Prequest.Startall(requests)
        MPI.Request.Waitall(requests)
        return [buf[0] for buf in buffers]

    assert simulate(2, main)[1] == [10, 20]


def test_nobody_is_always_there() -> None:
    def main(rank: Any) -> None:
        send = MPI.COMM_WORLD.Psend_init(bytearray(4), 2, MPI.PROC_NULL)
        receive = MPI.COMM_WORLD.Precv_init(bytearray(4), 2, MPI.PROC_NULL, 0)
        MPI.Prequest.Startall([send, receive])
        send.Pready_range(0, 1)
        assert receive.Parrived(1)
        MPI.Request.Waitall([send, receive])

    simulate(1, main)


@pytest.mark.parametrize(
    "wrong, code",
    [
        (lambda w, s, r: w.Psend_init(bytes(4), 2, 5), MPI.ERR_RANK),
        (lambda w, s, r: w.Precv_init(bytearray(4), 2), MPI.ERR_RANK),
        (lambda w, s, r: w.Precv_init(bytearray(4), 2, 0), MPI.ERR_TAG),
        (lambda w, s, r: w.Psend_init(bytes(4), 0, 0), MPI.ERR_ARG),
        (lambda w, s, r: s.Pready(0), MPI.ERR_REQUEST),
        (lambda w, s, r: (s.Start(), s.Pready(2)), MPI.ERR_ARG),
        (lambda w, s, r: (s.Start(), s.Pready_list([1, 1])), MPI.ERR_ARG),
        (lambda w, s, r: r.Pready(0), MPI.ERR_REQUEST),
        (lambda w, s, r: s.Parrived(0), MPI.ERR_REQUEST),
        (lambda w, s, r: w.Send_init(bytes(4), 0).Pready(0), MPI.ERR_REQUEST),
    ],
)
def test_wrong_calls(wrong: Any, code: int) -> None:
    def main(rank: Any) -> int:
        world = MPI.COMM_WORLD
        send = world.Psend_init(bytes(4), 2, 0, 1)
        receive = world.Precv_init(bytearray(4), 2, 0, 1)
        with pytest.raises(MPI.Exception) as caught:
            wrong(world, send, receive)
        return int(caught.value.Get_error_class())

    assert simulate(1, main) == [code]
