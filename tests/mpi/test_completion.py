"""Waitall by its short way, for plain operations, and by the general one."""

from collections import UserList

import numpy as np
import pytest
from simulated import simulate

from pysmpi.mpi import MPI
from pysmpi.mpi.base.exceptions import Exception as MPIException


def lists(requests):
    """Requests as arguments: the first two take the short way."""
    return {
        "list": requests,
        "tuple": tuple(requests),
        "sequence": UserList(requests),
        "persistent": [*requests, MPI.COMM_WORLD.Recv_init(np.zeros(1), 0)],
    }


@pytest.mark.parametrize("kind", ["list", "tuple", "sequence", "persistent"])
def test_waitall_of_null_handles(kind):
    def main(rank):
        comm = MPI.COMM_WORLD
        into = [np.zeros(3), np.zeros(2000)]
        sends = [comm.Isend(np.full(len(data), comm.rank + 1.0), 1 - comm.rank) for data in into]
        receives = [comm.Irecv(data, 1 - comm.rank) for data in into]
        requests = [*sends, MPI.REQUEST_NULL, *receives]
        MPI.Request.Waitall(lists(requests)[kind])
        assert all(request == MPI.REQUEST_NULL for request in requests)
        return [set(data) for data in into]

    assert simulate(2, main) == [[{2.0}, {2.0}], [{1.0}, {1.0}]]


@pytest.mark.parametrize("kind", ["list", "tuple", "sequence", "persistent"])
def test_waitall_names_the_request_with_an_error(kind):
    def main(rank):
        comm = MPI.COMM_WORLD
        comm.Set_errhandler(MPI.ERRORS_RETURN)
        requests = [comm.Isend(np.ones(5), 1 - comm.rank, tag) for tag in (0, 1)]
        requests += [comm.Irecv(np.zeros(5 - tag), 1 - comm.rank, tag) for tag in (0, 1)]
        with pytest.raises(MPIException) as caught:
            MPI.Request.Waitall(lists(requests)[kind])
        assert caught.value.Get_error_class() == MPI.ERR_IN_STATUS
        classes = [0, 0, 0, MPI.ERR_TRUNCATE] + [0] * (kind == "persistent")
        assert str(classes) in str(caught.value) + " ".join(getattr(caught.value, "__notes__", []))
        return True

    assert simulate(2, main) == [True, True]


@pytest.mark.parametrize("status", [None, "status"])
def test_wait_for_a_message_that_is_too_long(status):
    def main(rank):
        comm = MPI.COMM_WORLD
        send = comm.Isend(np.ones(5), 1 - comm.rank)
        receive = comm.Irecv(np.zeros(4), 1 - comm.rank)
        with pytest.raises(MPIException) as caught:
            receive.Wait(MPI.Status() if status else None)
        assert caught.value.Get_error_class() == MPI.ERR_TRUNCATE
        assert receive == MPI.REQUEST_NULL
        send.Wait()
        return True

    assert simulate(2, main) == [True, True]


@pytest.mark.parametrize("copied", [False, True])
@pytest.mark.parametrize("kind", ["list", "tuple", "sequence", "persistent"])
def test_waitall_of_a_request_that_is_listed_twice(kind, copied):
    """MPICH completes the operation once; MPI 4.1 leaves it open."""

    def main(rank):
        comm = MPI.COMM_WORLD
        into = np.zeros(2000)
        send = comm.Isend(np.full(2000, comm.rank + 1.0), 1 - comm.rank)
        receive = comm.Irecv(into, 1 - comm.rank)
        again = MPI.Request(receive) if copied else receive
        MPI.Request.Waitall(lists([send, receive, again])[kind])
        assert again == receive == MPI.REQUEST_NULL or copied
        return set(into)

    assert simulate(2, main) == [{2.0}, {1.0}]


def test_waitall_of_a_started_request_that_is_listed_twice():
    def main(rank):
        comm = MPI.COMM_WORLD
        into = np.zeros(3)
        send = comm.Send_init(np.full(3, comm.rank + 1.0), 1 - comm.rank)
        receive = comm.Recv_init(into, 1 - comm.rank)
        for _ in range(2):
            into[:] = 0.0
            MPI.Prequest.Startall([send, receive])
            statuses = [MPI.Status(), MPI.Status(), MPI.Status()]
            MPI.Request.Waitall([receive, send, receive], statuses)
            assert set(into) == {2.0 - comm.rank}
            assert statuses[0].Get_count(MPI.DOUBLE) == 3
        return True

    assert simulate(2, main) == [True, True]


def test_both_spellings_cancel_a_receive():
    def main(rank):
        cancelled = []
        for name in ("Cancel", "cancel"):
            request = MPI.COMM_WORLD.Irecv(bytearray(8), 0)
            getattr(request, name)()
            status = MPI.Status()
            request.Wait(status)
            cancelled.append(status.Is_cancelled())
        return cancelled

    assert simulate(1, main) == [[True, True]]
