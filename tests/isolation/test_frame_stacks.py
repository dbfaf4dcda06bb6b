"""Stacks for the Python frames of ranks."""

from __future__ import annotations

import gc
import os
import sys
import time
import tracemalloc

import pytest
from greenlet import getcurrent, greenlet

import pysmpi

stacks = pytest.importorskip(
    "pysmpi.isolation.frame_stacks", reason="pysmpi was installed without a C compiler"
)


def deep(depth, leaf):
    """Call `leaf` below some frames."""
    return leaf() if depth == 0 else deep(depth - 1, leaf)


def bytes_of_a_waiting_rank(depth, before=0, nprocs=700):
    """Python's memory in a run of which all ranks but one wait below `depth` frames, by rank."""

    def program():
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        deep(before, lambda: None)
        if comm.rank != 0:
            return deep(depth, lambda: comm.recv(source=0))
        time.sleep(1.0)  # until all others wait
        used = tracemalloc.get_traced_memory()[0]
        for rank in range(1, comm.size):
            comm.send(used, rank)
        return used

    gc.collect()
    others = tracemalloc.get_traced_memory()[0]
    return (pysmpi.run(program, nprocs, compute="none").returns[0] - others) / nprocs


def test_a_waiting_rank_takes_the_memory_of_its_frames():
    tracemalloc.start(1)
    try:
        bytes_of_a_waiting_rank(0, nprocs=4)  # loads the modules that a run needs
        shallow = bytes_of_a_waiting_rank(0)
        after_deep_calls = bytes_of_a_waiting_rank(0, before=100)
        deeper = bytes_of_a_waiting_rank(60)
    finally:
        tracemalloc.stop()
    assert abs(after_deep_calls - shallow) < 3_000  # frames that have ended take nothing
    # The interpreter itself takes 16 KiB for the frames of a greenlet. From Python 3.12 on,
    # greenlet makes an object of 200 bytes for each frame that waits.
    objects = 60 * 240 if sys.version_info >= (3, 12) else 0
    assert shallow + 2_000 < deeper < shallow + 16_384 + objects


def test_deeper_calls_after_the_first_wait():
    def program():
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        comm.barrier()
        return [deep(depth, lambda: comm.allgather(comm.rank)) for depth in (40, 400, 3, 400)]

    for gathered in pysmpi.run(program, 6, compute="none").returns:
        assert gathered == [list(range(6))] * 4


def test_frames_that_survive_their_function():
    def program():
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        comm.barrier()

        def count(start):
            local = [start]
            while True:
                local[0] += comm.allreduce(1)
                yield local[0]

        def fail():
            number = comm.rank
            comm.barrier()
            raise ValueError(number)

        generator = deep(50, lambda: count(comm.rank))
        errors = []
        for depth in (0, 30, 60):
            try:
                deep(depth, fail)
            except ValueError as error:
                errors.append(error)
        deep(30, comm.barrier)
        sums = [deep(depth, lambda: next(generator)) for depth in (0, 40, 0)]
        numbers = []
        for error in errors:
            link = error.__traceback__
            while link.tb_next is not None:
                link = link.tb_next
            numbers.append(link.tb_frame.f_locals["number"])
        return sums, numbers

    results = pysmpi.run(program, 4, compute="none").returns
    for rank, (sums, numbers) in enumerate(results):
        assert sums == [rank + 4, rank + 8, rank + 12]
        assert numbers == [rank] * 3


def test_greenlets_and_threads_of_a_program():
    def program():
        import threading

        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        received = []

        def talk():
            received.append(deep(30, lambda: comm.sendrecv(comm.rank, comm.rank ^ 1)))

        inner = greenlet(talk)
        # It waits in a stack that is not the rank's, which is deeper.
        deep(60, inner.switch)
        comm.barrier()
        thread = threading.Thread(target=talk)
        thread.start()
        thread.join()
        return received

    for rank, received in enumerate(pysmpi.run(program, 4, compute="none").returns):
        assert received == [rank ^ 1] * 2


def test_ranks_that_end_before_a_wait():
    def program():
        from mpi4py import MPI

        rank = MPI.COMM_WORLD.rank
        if rank % 2 == 0:
            return deep(rank, lambda: rank)
        if rank == 3:
            raise SystemExit(5)
        if rank == 5:
            deep(rank, lambda: 1 / 0)
        return MPI.COMM_SELF.allreduce(rank)

    result = pysmpi.run(program, 8, compute="none", check=False)
    assert result.returns[:3] == [0, 1, 2] and result.returns[4] == 4
    assert "rank 5" in str(result.error)


def test_ranks_that_never_go_on():
    def stuck():
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        deep(comm.rank * 20, lambda: comm.recv(source=(comm.rank + 1) % comm.size))

    for _ in range(20):
        assert pysmpi.run(stuck, 8, compute="none", check=False).deadlock is not None


def test_the_memory_of_stacks_is_given_back():
    def program():
        from mpi4py import MPI

        MPI.COMM_WORLD.barrier()
        return deep(MPI.COMM_WORLD.rank % 50, lambda: None)

    def used():
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    pysmpi.run(program, 4, compute="none")
    tracemalloc.start(1)
    try:
        for _ in range(3):
            pysmpi.run(program, 1500, compute="none")
        assert used() < 4 << 20  # the waiting ranks of one run take more than 10 MB
        for _ in range(6000):
            one = greenlet(stacks.beginning(stacks.waiting(getcurrent().switch)))
            one.switch()
            one.switch()
        assert used() < 4 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="faults are counted by Linux")
def test_calls_at_the_end_of_a_stack_map_no_memory():
    def program():
        from mpi4py import MPI

        def faults():
            with open("/proc/self/stat") as file:
                return int(file.read().rpartition(")")[2].split()[7])

        def repeat():
            before = faults()
            for _ in range(500):
                deep(0, lambda: None)
            return faults() - before

        MPI.COMM_WORLD.barrier()
        return max(deep(depth, repeat) for depth in range(40))

    assert max(pysmpi.run(program, 2, compute="none").returns) < 500


def test_callables_in_other_greenlets_only_call():
    calls = []
    begin = stacks.beginning(calls.append)
    wait = stacks.waiting(calls.append)
    begin(1)
    wait(2)
    assert greenlet(wait).switch(3) is None
    assert greenlet(lambda number: begin(number) or wait(number)).switch(4) is None
    assert calls == [1, 2, 3, 4, 4]
    with pytest.raises(ZeroDivisionError):
        greenlet(stacks.beginning(lambda: 1 / 0)).switch()
    # A greenlet that begins while the stack of another one is open.
    inner = stacks.beginning(lambda: deep(9, lambda: "inner"))
    outer = greenlet(stacks.beginning(lambda: (greenlet(inner).switch(), deep(9, str))))
    assert outer.switch() == ("inner", "")
    with pytest.raises(TypeError):
        type(begin)(print)


def test_a_greenlet_that_is_dropped_while_it_waits():
    ends = []

    def run(number):
        try:
            deep(number, stacks.waiting(getcurrent().parent.switch))
        finally:
            ends.append(number)

    dropped = [greenlet(stacks.beginning(run)) for _ in range(50)]
    for number, one in enumerate(dropped):
        one.switch(number)
    del dropped, one
    gc.collect()
    assert sorted(ends) == list(range(50))
