"""Wait states have the seconds that programs with one of them make ranks wait."""

import re

import numpy as np
import pytest

from pysmpi.analysis.graph import EventGraph
from pysmpi.analysis.wait_states import STATES, wait_states
from pysmpi.analysis.why import analyse

SECONDS = 0.02


def sender(comm, data, big):
    """Rank 0 waits for a message of rank 1."""
    if comm.rank == 1:
        sleep()
        comm.Send(data, 0)
    elif comm.rank == 0:
        comm.Recv(data, 1)


def sender_of_request(comm, data, big):
    if comm.rank == 1:
        sleep()
        comm.Send(data, 0)
    elif comm.rank == 0:
        comm.Irecv(data, 1).Wait()


def receiver(comm, data, big):
    """Rank 0 waits until rank 1 posts the receive of a long message."""
    if comm.rank == 1:
        sleep()
        comm.Recv(big, 0)
    elif comm.rank == 0:
        comm.Send(big, 1)


def barrier(comm, data, big):
    if comm.rank == 3:
        sleep()
    comm.Barrier()


def allreduce(comm, data, big):
    if comm.rank == 3:
        sleep()
    comm.Allreduce(data, data.copy())


def alltoall(comm, data, big):
    if comm.rank == 1:
        sleep()
    comm.alltoall([0] * comm.size)


def broadcast(comm, data, big):
    if comm.rank == 2:
        sleep()
    comm.Bcast(data, 2)


def long_broadcast(comm, data, big):
    if comm.rank == 2:
        sleep()
    comm.Bcast(big, 2)


def scatter(comm, data, big):
    if comm.rank == 1:
        sleep()
    comm.scatter(list(range(4)) if comm.rank == 1 else None, 1)


def reduce(comm, data, big):
    if comm.rank != 2:
        sleep()
    comm.Reduce(data, data.copy(), root=2)


def gather(comm, data, big):
    if comm.rank != 0:
        sleep()
    comm.gather(comm.rank)


def late_member(comm, data, big):
    """Others than the root come late to a reduction: the root has data to wait for."""
    if comm.rank == 3:
        sleep()
    comm.Reduce(data, data.copy(), root=2)


def early_send(comm, data, big):
    """The message is there before its receive."""
    if comm.rank == 1:
        comm.Send(data, 0)
    elif comm.rank == 0:
        sleep()
        comm.Recv(data, 1)


def sleep():
    import time

    time.sleep(0.02)


def begin(part):
    """Run a part with everything that it needs."""
    from mpi4py import MPI

    part(MPI.COMM_WORLD, np.ones(10), np.ones(200_000))


@pytest.mark.parametrize(
    ("part", "state", "ranks"),
    [
        (sender, "late sender", 1),
        (sender_of_request, "late sender", 1),
        (receiver, "late receiver", 1),
        (barrier, "wait at barrier", 3),
        (allreduce, "wait at NxN", 3),
        (alltoall, "wait at NxN", 3),
        (broadcast, "late broadcast", 3),
        (long_broadcast, "late broadcast", 3),
        (scatter, "late broadcast", 3),
        (reduce, "early reduce", 1),
        (gather, "early reduce", 1),
        (late_member, "", 0),
        (early_send, "", 0),
    ],
)
def test_each_pattern_has_its_name_and_its_seconds(record, part, state, ranks):
    graph = EventGraph(record(begin, 4, part, platform="graphene", compute="none"))
    found = wait_states(graph)
    assert tuple(found) == STATES
    for name, seconds in found.items():
        wanted = ranks * SECONDS if name == state else 0.0
        assert seconds == pytest.approx(wanted, abs=1e-4), (name, found)


def test_the_answer_and_the_report_have_them(record):
    analysis = analyse(EventGraph(record(begin, 4, barrier, platform="graphene", compute="none")))
    line = next(line for line in analysis.lines() if line.startswith("wait states"))
    assert re.search(r"wait at barrier 7\d\.\d% \(60 ms\)", line) and "late sender" not in line
    assert analysis.report()["wait_states"]["wait at barrier"] == pytest.approx(0.06, abs=1e-4)
