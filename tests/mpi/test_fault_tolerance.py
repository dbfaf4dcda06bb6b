"""Revocation ends all waits of ranks; agreements and shrinking survive it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simulated import simulate

from pysmpi.kernel.matching import ANY, Mailbox
from pysmpi.kernel.requests import Context, Receive
from pysmpi.mpi import MPI
from pysmpi.mpi.communicators import failures


def error_of(call: Callable[[], Any]) -> int:
    """The error class of a call, 0 if it succeeds."""
    try:
        call()
    except MPI.Exception as error:
        return int(error.Get_error_class())
    return 0


BIG = 1 << 16  # bytes of a message that waits for its receiver


def receive_later(comm: Any) -> None:
    requests = [comm.irecv(source=0, tag=1), comm.Irecv(bytearray(8), 0, 2)]
    statuses: list[Any] = []
    try:
        MPI.Request.Waitall(requests, statuses)
    except MPI.Exception as error:
        assert error.Get_error_class() == MPI.ERR_IN_STATUS
        assert [status.error for status in statuses] == [MPI.ERR_REVOKED] * 2
        raise MPI.Exception(MPI.ERR_REVOKED) from None


def partitioned(comm: Any) -> None:
    request = comm.Precv_init(bytearray(8), 2, 0, 9)
    request.Start()
    request.Wait()


def ready_too_late(comm: Any) -> None:
    request = comm.Psend_init(bytearray(8), 2, 0, 9)
    request.Start()
    request.Pready(0)
    request.Wait()


WAITS: dict[str, Callable[[Any], Any]] = {
    "recv": lambda comm: comm.recv(source=0),
    "recv from any": lambda comm: comm.recv(),
    "Recv": lambda comm: comm.Recv(bytearray(8), 0, status=MPI.Status()),
    "Send": lambda comm: comm.Send(bytearray(BIG), 0),
    "Ssend": lambda comm: comm.Ssend(b"", 0),
    "Sendrecv": lambda comm: comm.Sendrecv(bytearray(BIG), 0, 0, bytearray(8), 0),
    "Isend": lambda comm: comm.Isend(bytearray(BIG), 0).Wait(),
    "Isendrecv": lambda comm: comm.Isendrecv(bytearray(BIG), 0, 0, bytearray(8), 0).Wait(),
    "irecv": lambda comm: comm.irecv(source=0).wait(),
    "Waitall": receive_later,
    "Probe": lambda comm: comm.Probe(0),
    "mprobe": lambda comm: comm.mprobe(0),
    "Precv": partitioned,
    "Psend": ready_too_late,
    "Barrier": lambda comm: comm.Barrier(),
    "Ibarrier": lambda comm: comm.Ibarrier().Wait(),
    "bcast": lambda comm: comm.bcast(None),
    "allreduce": lambda comm: comm.allreduce(1),
    "Bcast": lambda comm: comm.Bcast(bytearray(8 * BIG)),
    "alltoall": lambda comm: comm.alltoall([0] * comm.size),
    "Dup": lambda comm: comm.Dup(),
    "Split": lambda comm: comm.Split(0),
    "Create_cart": lambda comm: comm.Create_cart([comm.size]),
    "Create_intercomm": lambda comm: comm.Create_intercomm(0, MPI.COMM_WORLD, 0),
}


@pytest.mark.parametrize("name", sorted(WAITS))
def test_a_revocation_ends_what_ranks_wait_for(name: str) -> None:
    size = 5

    def main(rank: Any) -> Any:
        comm = MPI.COMM_WORLD.Dup()
        if rank.pid == 0:
            rank.sleep(0.5)
            comm.Revoke()
            begun = 0.5
        else:
            assert error_of(lambda: WAITS[name](comm)) == MPI.ERR_REVOKED
            begun = MPI.Wtime()
        assert comm.Is_revoked()
        assert error_of(lambda: WAITS[name](comm)) == MPI.ERR_REVOKED
        assert (comm.size, comm.rank) == (size, rank.pid)
        new = comm.Shrink()
        assert new.allgather(rank.pid) == list(range(size))
        comm.Free()
        return begun

    dates = simulate(size, main)
    assert all(0.5 <= date < 0.51 for date in dates)
    assert len(set(dates)) > 1  # the notice takes time to travel


def test_an_intercommunicator_is_revoked_on_both_sides() -> None:
    def main(rank: Any) -> None:
        world = MPI.COMM_WORLD
        side = world.rank % 2
        inter = world.Split(side).Create_intercomm(0, world, 1 - side)
        if rank.pid == 2:
            inter.Revoke()
        elif rank.pid in (0, 1):
            assert error_of(inter.Barrier) == MPI.ERR_REVOKED
        else:
            assert error_of(inter.recv) == MPI.ERR_REVOKED
        assert inter.Is_revoked()
        assert inter.Agree(3 if side else 6) == (6 if side else 3)
        new = inter.Shrink()
        assert type(new) is MPI.Intercomm
        assert new.allgather(rank.pid) == ([0, 2, 4] if side else [1, 3])

    simulate(5, main)


def test_other_communicators_do_not_care() -> None:
    def main(rank: Any) -> None:
        world = MPI.COMM_WORLD
        doomed, other = world.Dup(), world.Dup()
        request = other.irecv(source=(rank.pid - 1) % world.size)
        doomed.Revoke()
        other.send(rank.pid, (rank.pid + 1) % world.size)
        assert request.wait() == (rank.pid - 1) % world.size
        other.Barrier()

    simulate(4, main)


def test_a_message_that_was_sent_in_time_is_kept() -> None:
    """A request that is complete when the notice arrives stays complete."""

    def main(rank: Any) -> Any:
        comm = MPI.COMM_WORLD.Dup()
        if rank.pid == 0:
            comm.send("in time", 1)
            rank.sleep(0.1)
            comm.Revoke()
            return None
        request = comm.irecv(source=0)
        rank.sleep(0.5)
        return request.wait()

    assert simulate(2, main) == [None, "in time"]


def test_error_handlers_see_a_revocation() -> None:
    def main(rank: Any) -> Any:
        comm = MPI.COMM_WORLD.Dup()
        seen = []
        comm.Set_errhandler(MPI.Comm.Create_errhandler(lambda _, code: seen.append(code)))
        if rank.pid == 0:
            comm.Revoke()
        error_of(comm.recv)
        return seen

    assert simulate(3, main) == [[MPI.ERR_REVOKED]] * 3


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(-(2**31), 2**31 - 1), min_size=1, max_size=5))
def test_agreement_is_the_and_of_all_flags(flags: list[int]) -> None:
    def main(rank: Any) -> tuple[int, int]:
        from array import array

        cell = array("i", [flags[rank.pid]])
        request = MPI.COMM_WORLD.Iagree(cell)
        found = MPI.COMM_WORLD.Agree(flags[rank.pid])
        request.Wait()
        return found, cell[0]

    expected = flags[0]
    for flag in flags:
        expected &= flag
    assert simulate(len(flags), main) == [(expected, expected)] * len(flags)


def test_nobody_fails() -> None:
    def main(rank: Any) -> None:
        world = MPI.COMM_WORLD
        assert world.Get_failed() == MPI.GROUP_EMPTY
        assert world.Ack_failed() == world.Ack_failed(1) == 0
        assert not world.Is_revoked()

    simulate(2, main)


def test_revoke_ends_a_persistent_collective() -> None:
    def main(rank: Any) -> int:
        comm = MPI.COMM_WORLD.Dup()
        request = comm.Barrier_init()
        if rank.index == 0:
            comm.Revoke()
            return MPI.ERR_REVOKED
        request.Start()
        with pytest.raises(MPI.Exception) as caught:
            request.Wait()
        return caught.value.Get_error_class()

    assert set(simulate(3, main)) == {MPI.ERR_REVOKED}


@pytest.mark.parametrize("revoked", [True, False])
def test_the_mailbox_forgets_the_probes_that_have_ended(revoked: bool) -> None:
    context = Context(1, [])
    box = Mailbox()
    context.mailboxes = [box]
    probes = [Receive(context, source, 0, ANY, 8) for source in (3, ANY, 2)]
    for probe in probes:
        box.watch(probe)
    if revoked:
        failures.withdraw(context, 0, None, 1.0)
        assert [probe.done for probe in probes] == [True] * 3
    else:
        failures._end_receives(box, {3}, 1.0)
        assert [probe.done for probe in probes] == [True, True, False]
    assert box.index.probes == [probe for probe in probes if not probe.done]
