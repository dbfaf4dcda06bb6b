"""Epochs of windows: their order, their refusals, and their waits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simulated import Deadlock, simulate

from pysmpi.mpi import MPI
from pysmpi.mpi.rma.locks import ALL, Locks


def on(size: int, main: Any) -> list[Any]:
    return simulate(size, lambda rank: main(MPI.COMM_WORLD, rank))


def error_of(call: Any) -> int:
    with pytest.raises(MPI.Exception) as caught:
        call()
    return caught.value.Get_error_class()


def test_a_fence_completes_everything() -> None:
    def main(comm: Any, rank: Any) -> None:
        n = comm.size
        win = MPI.Win.Allocate(8 * n, 8, comm=comm)
        memory = np.frombuffer(win, "i8")
        win.Fence(MPI.MODE_NOPRECEDE)
        for round in range(3):
            rank.sleep(1e-5 * comm.rank)
            for other in range(n):
                win.Put(np.array([round * 100 + comm.rank]), other, comm.rank)
            into = np.zeros(n, "i8")
            win.Fence()
            assert memory.tolist() == [round * 100 + other for other in range(n)]
            win.Get(into, (comm.rank + 1) % n)
            win.Fence(MPI.MODE_NOSUCCEED if round == 2 else 0)
            assert into.tolist() == memory.tolist()
        assert error_of(lambda: win.Put(np.zeros(1), 0)) == MPI.ERR_RMA_SYNC
        win.Free()

    on(4, main)


def test_nobody_leaves_a_fence_before_the_last_has_come() -> None:
    def main(comm: Any, rank: Any) -> tuple[float, float]:
        win = MPI.Win.Allocate(8, comm=comm)
        rank.sleep(0.5 * comm.rank)
        before = MPI.Wtime()
        win.Fence()
        return before, MPI.Wtime()

    times = on(3, main)
    assert min(after for _, after in times) >= max(before for before, _ in times)


def test_post_start_complete_wait() -> None:
    def main(comm: Any, rank: Any) -> None:
        win = MPI.Win.Allocate(80, 8, comm=comm)
        memory = np.frombuffer(win, "f8")
        group = win.group
        others = group.Excl([0])
        zero = group.Incl([0])
        if comm.rank == 0:
            rank.sleep(0.25)
            win.Post(others)
            win.Wait()
            assert memory[1 : comm.size].tolist() == list(range(1, comm.size))
            win.Start(others)
            for other in range(1, comm.size):
                win.Put(np.array([7.0]), other, 0)
            into = np.zeros(1)
            win.Get(into, 1, 5)
            win.Complete()
            assert into[0] == 1
        else:
            memory[5] = comm.rank
            win.Start(zero)
            assert MPI.Wtime() >= 0.25
            win.Put(np.array([float(comm.rank)]), 0, comm.rank)
            assert error_of(lambda: win.Put(np.zeros(1), 1)) == MPI.ERR_RMA_SYNC
            win.Complete()
            win.Post(zero)
            tries = 0
            while not win.Test():
                tries += 1
                assert tries < 1000
            assert memory[0] == 7
        win.Free()

    on(3, main)


def test_nocheck_sends_nothing() -> None:
    def main(comm: Any, rank: Any) -> None:
        win = MPI.Win.Allocate(8, 8, comm=comm)
        peer = win.group.Incl([1 - comm.rank])
        win.Post(peer, MPI.MODE_NOCHECK)
        comm.Barrier()
        win.Start(peer, MPI.MODE_NOCHECK)
        win.Put(np.array([comm.rank + 1.0]), 1 - comm.rank)
        win.Complete()
        win.Wait()
        assert np.frombuffer(win, "f8")[0] == 2 - comm.rank
        win.Lock(0, assertion=MPI.MODE_NOCHECK)
        win.Unlock(0)
        win.Lock_all(MPI.MODE_NOCHECK)
        win.Unlock_all()

    on(2, main)


def test_exclusive_locks_exclude() -> None:
    def main(comm: Any, rank: Any) -> tuple[float, float]:
        win = MPI.Win.Allocate(8, 8, comm=comm)
        win.Lock(0)
        start = MPI.Wtime()
        rank.sleep(0.1)
        value = np.zeros(1)
        win.Get(value, 0)
        win.Flush(0)
        win.Put(value + 1, 0)
        end = MPI.Wtime()
        win.Unlock(0)
        comm.Barrier()
        if comm.rank == 0:
            assert np.frombuffer(win, "f8")[0] == comm.size
        return start, end

    times = sorted(on(4, main))
    assert all(one[1] <= other[0] for one, other in zip(times, times[1:]))


def test_shared_locks_share() -> None:
    def main(comm: Any, rank: Any) -> float:
        win = MPI.Win.Allocate(8, 8, comm=comm)
        win.Lock(0, MPI.LOCK_SHARED)
        rank.sleep(0.1)
        win.Unlock(0)
        win.Lock_all()
        rank.sleep(0.1)
        win.Unlock_all()
        return MPI.Wtime()

    assert max(on(4, main)) < 0.3


def test_polling_gets_on() -> None:
    def main(comm: Any, rank: Any) -> None:
        win = MPI.Win.Allocate(8, 8, comm=comm)
        flag = np.frombuffer(win, "i8")
        if comm.rank == 0:
            rank.sleep(0.01)
            for other in range(1, comm.size):
                win.Lock(other, MPI.LOCK_SHARED)
                win.Put(np.ones(1, "i8"), other)
                win.Unlock(other)
            return
        tries = 0
        win.Lock_all()
        while not flag[0]:
            tries += 1
            assert tries < 5000
            if comm.rank == 1:
                win.Sync()
            elif comm.rank == 2:
                win.Flush(comm.rank)
            elif comm.rank == 3:
                win.Flush_local_all()
            else:
                win.Unlock_all()
                win.Lock_all()
        win.Unlock_all()

    on(5, main)


def test_refusals() -> None:
    def main(comm: Any, rank: Any) -> None:
        win = MPI.Win.Allocate(8, 8, comm=comm)
        sync, one = MPI.ERR_RMA_SYNC, np.zeros(1)
        for call in (win.Complete, win.Wait, win.Test, win.Unlock_all, win.Flush_all):
            assert error_of(call) == sync
        assert error_of(lambda: win.Unlock(0)) == sync
        assert error_of(lambda: win.Flush(0)) == sync
        assert error_of(lambda: win.Get(one, 0)) == sync
        assert error_of(lambda: win.Lock(0, 5)) == MPI.ERR_LOCKTYPE
        assert error_of(lambda: win.Lock(3)) == MPI.ERR_RANK
        assert error_of(lambda: win.Fence(1)) == MPI.ERR_ASSERT
        assert error_of(lambda: win.Lock(0, assertion=MPI.MODE_NOPUT)) == MPI.ERR_ASSERT
        win.Lock(0)
        for call in (win.Fence, win.Lock_all, win.Free):
            assert error_of(call) == sync
        assert error_of(lambda: win.Lock(0)) == sync
        assert error_of(lambda: win.Start(MPI.GROUP_EMPTY)) == sync
        win.Unlock(0)
        win.Fence()
        win.Put(one, 0)
        assert error_of(lambda: win.Lock(0)) == sync
        assert error_of(lambda: win.Fence(MPI.MODE_NOPRECEDE)) == sync
        win.Fence()
        win.Start(MPI.GROUP_EMPTY)
        assert error_of(win.Fence) == sync
        win.Complete()
        win.Post(MPI.GROUP_EMPTY)
        assert error_of(lambda: win.Post(MPI.GROUP_EMPTY)) == sync
        win.Wait()
        win.Lock(MPI.PROC_NULL)
        win.Flush(MPI.PROC_NULL)
        win.Unlock(MPI.PROC_NULL)
        win.Free()

    on(1, main)


def test_a_lock_that_is_never_given_back() -> None:
    def main(comm: Any, rank: Any) -> None:
        MPI.Win.Allocate(8, comm=comm).Lock(0)

    with pytest.raises(Deadlock):
        on(2, main)


# The queue of locks by itself.

STEPS = st.lists(st.tuples(st.integers(0, 4), st.integers(-1, 2), st.booleans()), max_size=40)


@settings(max_examples=200, deadline=None)
@given(STEPS)
def test_locks_exclude_and_nobody_is_forgotten(steps: Any) -> None:
    locks = Locks(range(5))
    claims: dict[int, Any] = {}

    def check() -> None:
        held = [claim for claim in claims.values() if claim.request.done]
        for claim in held:
            for other in held:
                overlap = ALL in (claim.target, other.target) or claim.target == other.target
                if claim is not other and overlap:
                    assert not claim.exclusive and not other.exclusive
        for claim in claims.values():
            if not claim.request.done:
                ahead = locks.ahead(claim)
                assert ahead and claim.origin not in ahead

    for origin, target, exclusive in steps:
        claim = claims.pop(origin, None)
        if claim is None:
            claims[origin] = locks.claim(origin, target, exclusive and target != ALL, 0.0)
        else:
            locks.release(claim, 0.0)
        check()
    while claims:
        held = [origin for origin, claim in claims.items() if claim.request.done]
        assert held, "everybody waits"
        locks.release(claims.pop(held[0]), 0.0)
        check()
    assert not locks.queues and not locks.queued and not locks.everywhere
    assert not locks.patient and not locks.exclusives and not locks.waiting


def test_a_get_under_a_lock_reads_memory_of_the_same_host_at_once() -> None:
    def main(comm: Any) -> Any:
        win = MPI.Win.Allocate(16, 8, comm=comm)
        memory = np.frombuffer(win, "f8")
        memory[:] = comm.rank + 1, comm.rank + 11
        comm.Barrier()
        found: list[Any] = []
        for other in range(comm.size):
            one, two = np.zeros(1), np.zeros(1)
            win.Lock(other, MPI.LOCK_SHARED)
            begun = MPI.Wtime()
            win.Get(one, other, 0)
            win.Get(two, other, 1)
            early = one[0], two[0]
            win.Flush(other)
            took = MPI.Wtime() - begun
            win.Unlock(other)
            assert (one[0], two[0]) == (other + 1, other + 11)
            found.append((early, took))
        # Data written before in the epoch is read, and so is data that arrives in between.
        win.Lock_all()
        peer = comm.rank ^ 1
        win.Put(np.full(1, 50.0 + comm.rank), peer, 0)
        win.Get(one, peer, 0)
        win.Flush(peer)
        assert one[0] == 50 + comm.rank
        win.Unlock_all()
        comm.Barrier()
        win.Free()
        return found

    # Two ranks a host.
    for rank, found in enumerate(simulate(4, lambda rank: main(MPI.COMM_WORLD))):
        for other, (early, took) in enumerate(found):
            near = rank // 2 == other // 2
            assert early == ((other + 1, other + 11) if near else (0, 0))
            assert (took > 1e-6) == (rank != other)


def test_what_fetches_under_a_lock_changes_memory_of_the_same_host_at_once() -> None:
    def main(comm: Any) -> Any:
        win = MPI.Win.Allocate(24, 8, comm=comm)
        memory = np.frombuffer(win, "i8")
        memory[:] = 5, 7, 9
        comm.Barrier()
        peer = comm.rank ^ 1
        win.Lock(peer)
        seen = np.zeros((4, 3), "i8")
        begun = MPI.Wtime()
        win.Get_accumulate(np.ones(3, "i8"), seen[0], peer)
        win.Accumulate(np.full(1, 100), peer, 1)
        win.Put(np.full(1, 200), peer, 2)
        win.Fetch_and_op(np.full(1, 10), seen[1, :1], peer, 1)
        win.Compare_and_swap(np.full(1, 300), np.full(1, 200), seen[2, :1], peer, 2)
        win.Get_accumulate(np.zeros(3, "i8"), seen[3], peer, op=MPI.NO_OP)
        early = seen.tolist()
        win.Unlock(peer)
        took = MPI.Wtime() - begun
        assert seen.tolist() == early
        comm.Barrier()
        after = memory.tolist()
        win.Free()
        return early, after, took

    # Two ranks a host.
    for early, after, took in simulate(4, lambda rank: main(MPI.COMM_WORLD)):
        assert early == [[5, 7, 9], [108, 0, 0], [200, 0, 0], [6, 118, 300]]
        assert after == [6, 118, 300]
        assert took > 1e-6
