"""Stacks for the Python frames of ranks."""

from __future__ import annotations

import gc
import os
import tracemalloc

import pytest
from greenlet import getcurrent, greenlet

import pysmpi

stacks = pytest.importorskip(
    "pysmpi.isolation.frame_stacks", reason="pysmpi was installed without a C compiler"
)

FULL = 16384  # bytes that the interpreter takes at a time
FRAME = 80  # the least bytes of a frame


def deep(depth, leaf):
    """Call `leaf` below some frames."""
    return leaf() if depth == 0 else deep(depth - 1, leaf)


def fits(size):
    """Whether a stack has the size of a few frames, not of all that fit in its first form."""
    return 5 * FRAME < size < FULL // 4


def test_a_rank_keeps_what_its_first_wait_needs():
    def program():
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        begun = stacks.room()
        deep(100, lambda: None)
        comm.barrier()
        fitted = stacks.room()
        return begun, fitted, deep(3, lambda: (comm.barrier(), stacks.room())[1])

    for begun, fitted, deeper in pysmpi.run(program, 8, compute="none").returns:
        assert begun == [FULL]
        assert len(fitted) == 1 and fits(fitted[0])
        assert deeper == fitted


def test_a_deep_first_wait_takes_more():
    def program():
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        depth = 60 * comm.rank
        deep(depth, comm.barrier)
        deep(depth, comm.barrier)
        return stacks.room()

    sizes = [room[0] for room in pysmpi.run(program, 3, compute="none").returns]
    assert sizes[0] + 60 * FRAME < sizes[1] and fits(sizes[0])
    # A stack that the first wait has filled remains as it was.
    assert sizes[2] == FULL or sizes[1] + 60 * FRAME < sizes[2]


def test_deeper_calls_after_it_get_stacks_of_the_interpreter():
    def program():
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        comm.barrier()
        below = deep(40, lambda: (comm.allgather(comm.rank), stacks.room()))
        far_below = deep(400, lambda: (comm.allgather(comm.rank), stacks.room()))
        return below, far_below, stacks.room()

    for below, far_below, after in pysmpi.run(program, 6, compute="none").returns:
        assert below[0] == far_below[0] == list(range(6))
        assert below[1][:-1] == [FULL] and below[1][-1:] == after
        assert len(far_below[1]) > 2 and set(far_below[1][:-1]) == {FULL}
        assert len(after) == 1


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
            kept = comm.rank
            comm.barrier()
            raise ValueError(kept)

        generator = deep(50, lambda: count(comm.rank))
        errors = []
        for depth in (0, 30, 60):
            try:
                deep(depth, fail)
            except ValueError as error:
                errors.append(error)
        deep(30, comm.barrier)
        found = [deep(depth, lambda: next(generator)) for depth in (0, 40, 0)]
        frames = []
        for error in errors:
            link = error.__traceback__
            while link.tb_next is not None:
                link = link.tb_next
            frames.append(link.tb_frame.f_locals["kept"])
        return found, frames

    results = pysmpi.run(program, 4, compute="none").returns
    for rank, (counted, kept) in enumerate(results):
        assert counted == [rank + 4, rank + 8, rank + 12]
        assert kept == [rank] * 3


def test_greenlets_and_threads_of_a_program():
    def program():
        import threading

        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        found = []

        def talk():
            found.append(deep(30, lambda: comm.sendrecv(comm.rank, comm.rank ^ 1)))

        inner = greenlet(talk)
        # It waits in a stack that is not the rank's, which is deeper.
        deep(60, inner.switch)
        comm.barrier()
        thread = threading.Thread(target=talk)
        thread.start()
        thread.join()
        return found, stacks.room()

    for rank, (found, room) in enumerate(pysmpi.run(program, 4, compute="none").returns):
        assert found == [rank ^ 1] * 2
        assert len(room) == 1


def test_ranks_that_end_before_a_wait():
    def program():
        from mpi4py import MPI

        rank = MPI.COMM_WORLD.rank
        if rank % 2 == 0:
            return deep(rank, stacks.room)
        if rank == 3:
            raise SystemExit(5)
        if rank == 5:
            deep(rank, lambda: 1 / 0)
        return MPI.COMM_SELF.allreduce(rank), stacks.room()

    result = pysmpi.run(program, 8, compute="none", check=False)
    assert result.returns[0] == result.returns[2] == result.returns[4] == [FULL]
    assert result.returns[1] == (1, [FULL])  # a call of one rank does not wait
    assert "rank 5" in str(result.error)


def test_ranks_that_never_go_on():
    def stuck():
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        deep(comm.rank * 20, lambda: comm.recv(source=(comm.rank + 1) % comm.size))

    for _ in range(20):
        assert pysmpi.run(stuck, 8, compute="none", check=False).deadlock is not None


def slabs():
    """The number of pieces of memory that hold stacks."""
    gc.collect()
    filters = [tracemalloc.DomainFilter(True, 0)]
    traces = tracemalloc.take_snapshot().filter_traces(filters).traces
    return sum(trace.size == 1 << 20 for trace in traces)


def test_the_memory_of_stacks_is_given_back():
    def program():
        from mpi4py import MPI

        MPI.COMM_WORLD.barrier()
        return deep(MPI.COMM_WORLD.rank % 50, stacks.room)

    tracemalloc.start(1)
    try:
        for _ in range(3):
            pysmpi.run(program, 1500, compute="none")
        assert slabs() <= 2
        for _ in range(6000):
            one = greenlet(stacks.beginning(stacks.waiting(getcurrent().switch)))
            one.switch()
            one.switch()
        assert slabs() <= 2
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
                deep(0, stacks.room)
            return faults() - before

        MPI.COMM_WORLD.barrier()
        return max(deep(depth, repeat) for depth in range(40))

    assert max(pysmpi.run(program, 2, compute="none").returns) < 500


def test_callables_in_other_greenlets_only_call():
    calls = []
    before = stacks.room()
    begin = stacks.beginning(calls.append)
    wait = stacks.waiting(calls.append)
    begin(1)
    wait(2)
    assert stacks.room() == before
    assert greenlet(wait).switch(3) is None
    assert greenlet(lambda number: begin(number) or wait(number)).switch(4) is None
    assert calls == [1, 2, 3, 4, 4]
    with pytest.raises(ZeroDivisionError):
        greenlet(stacks.beginning(lambda: 1 / 0)).switch()
    # A greenlet that begins while the stack of another one is open.
    outer = greenlet(
        stacks.beginning(lambda: (greenlet(stacks.beginning(stacks.room)).switch(), stacks.room()))
    )
    assert outer.switch() == ([FULL], [FULL])
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
