"""Carriers: threads for code below which greenlets cannot be switched."""

from __future__ import annotations

from _thread import get_ident
from typing import Any

import pytest

import pysmpi
from pysmpi.time import thread_changes
from pysmpi.time.cpu_clock import CpuClock
from pysmpi.waiting.outside.carriers import carried


def test_ranks_wait_below_code_in_carriers() -> None:
    def program() -> list[Any]:
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        main = get_ident()

        def ring(number: int) -> tuple[int, bool]:
            right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
            value = comm.sendrecv(comm.rank * number, right, source=left)
            comm.Barrier()
            nested = carried(None, get_ident)
            return value + comm.allreduce(1), nested == get_ident() != main

        return [carried(None, ring, number) for number in range(4)]

    result = pysmpi.run(program, 3, compute="none")
    assert result.returns == [
        [(((rank - 1) % 3) * number + 3, True) for number in range(4)] for rank in range(3)
    ]


def test_times_are_those_of_the_same_calls_in_the_rank() -> None:
    def program(inside: bool) -> float:
        from mpi4py import MPI

        comm = MPI.COMM_WORLD

        def calls() -> float:
            comm.allreduce(bytes(10_000), lambda left, right: left)
            return MPI.Wtime()

        return carried(None, calls) if inside else calls()

    times = [
        pysmpi.run(program, 4, args=[inside], compute="none").returns for inside in (False, True)
    ]
    assert times[0] == times[1]


def test_errors_and_ends_of_ranks_pass_through() -> None:
    ended = []

    def program() -> str:
        from mpi4py import MPI

        comm = MPI.COMM_WORLD

        def fails() -> None:
            comm.Barrier()
            raise ValueError(f"of rank {comm.rank}")

        with pytest.raises(ValueError, match=f"of rank {comm.rank}"):
            carried(None, fails)

        def waits() -> None:
            try:
                comm.recv(source=1 - comm.rank)
            finally:
                ended.append(comm.rank)

        carried(None, waits)
        return "received"

    result = pysmpi.run(program, 2, compute="none", check=False)
    assert result.deadlock is not None
    assert sorted(ended) == [0, 1]
    assert "test_carriers.py" in str(result.error)


def test_a_function_outside_of_ranks_is_called_directly() -> None:
    assert carried(None, get_ident) == get_ident()


def test_a_clock_goes_on_in_another_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = CpuClock()
    clock.start()
    before = clock._latest
    for time in (5_000, 900_000_000_000):  # of two threads, one of which has computed for long
        monkeypatch.setattr(thread_changes, "thread_time_ns", lambda now=time: now)
        thread_changes.continue_in_thread(clock)
        monkeypatch.setattr(thread_changes, "thread_time_ns", lambda now=time: now + 700)
        clock._seen = 0
        assert clock.elapsed() >= 700
        assert clock._latest == before + 700
        before = clock._latest
    thread_changes.continue_in_thread(None)
