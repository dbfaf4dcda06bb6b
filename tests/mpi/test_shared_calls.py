"""Equal collective calls of all ranks are one object, from which each rank's own call is made."""

import numpy as np

from pysmpi.api import run
from pysmpi.mpi.base.ranks import current
from pysmpi.mpi.collective.schedules import OWN, of_rank


class Watch:
    """Notes the call of every contribution, and of its rank."""

    def __init__(self):
        self.shared, self.own = [], []

    def collective_entered(self, contribution, rank):
        self.shared.append(contribution.call)
        self.own.append((rank.pid, of_rank(contribution.call, contribution.me)))


def calls_of(method, *arguments):
    """The watched calls of a method of the world of three ranks, by `arguments` of the rank."""
    watch = Watch()

    def main():
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        if comm.rank == 0:
            current().engine.listeners.add(watch)
        comm.Barrier()
        getattr(comm, method)(*(make(comm.rank) for make in arguments))
        comm.Barrier()

    run(main, nprocs=3, compute="none")
    op = method.lower().removeprefix("i")
    own = {pid: call for pid, call in watch.own if call.op == op}
    return [call for call in watch.shared if call.op == op], own


def test_ranks_with_equal_arguments_share_a_call():
    shared, own = calls_of("Allreduce", lambda me: np.zeros(3), lambda me: np.zeros(3))
    assert len(shared) == 3 and len({id(call) for call in shared}) == 1
    assert shared[0].rank == OWN
    assert {me: (call.rank, call.count, call.op) for me, call in own.items()} == {
        me: (me, 3, "allreduce") for me in range(3)
    }


def test_non_blocking_calls_are_shared_too():
    shared, own = calls_of("Ibcast", lambda me: np.zeros(3))
    assert len({id(call) for call in shared}) == 1
    assert {me: (call.rank, call.nonblocking) for me, call in own.items()} == {
        me: (me, True) for me in range(3)
    }


def test_each_rank_has_its_own_count_of_an_allgatherv():
    counts = [0, 4, 2]
    shared, own = calls_of(
        "Allgatherv", lambda me: np.zeros(counts[me]), lambda me: [np.zeros(6), counts]
    )
    assert len({id(call) for call in shared}) == 1
    assert {me: (call.rank, call.count) for me, call in own.items()} == {
        me: (me, counts[me]) for me in range(3)
    }


def test_all_ranks_have_the_whole_count_of_a_reduce_scatter():
    counts = [0, 4, 2]
    shared, own = calls_of(
        "Reduce_scatter",
        lambda me: np.zeros(6),
        lambda me: np.zeros(counts[me]),
        lambda me: counts,
    )
    assert len({id(call) for call in shared}) == 1
    assert {me: (call.rank, call.count) for me, call in own.items()} == {
        me: (me, 6) for me in range(3)
    }
