"""Messages that no rank received are named at the end of a run, without any checker."""

from __future__ import annotations

import numpy as np
from mpi4py import MPI

import pysmpi
from pysmpi.cli.summary import summary


def _sends(received: int, dup: bool = False) -> None:
    comm = MPI.COMM_WORLD
    if dup:
        comm = comm.Split(0, -comm.rank)  # the ranks in the other order
    if comm.rank == 0:
        for tag in (3, 4):
            comm.send("x", dest=1, tag=tag)
        comm.Send(np.ones(2), dest=1, tag=5)
        request = comm.Irecv(np.ones(1), source=1, tag=8)  # a receive without a message is no loss
        request.Cancel()
        request.Wait()
        comm.send("nobody", dest=MPI.PROC_NULL)
    elif comm.rank == 1:
        for tag in (3, 4)[:received]:
            comm.recv(source=0, tag=tag)
        if received > 2:
            comm.Recv(np.zeros(2), source=0, tag=5)


def test_the_messages_are_counted_and_one_is_named() -> None:
    result = pysmpi.run(_sends, 3, args=[1], compute="none")
    assert result.exit_status == 0
    assert result.unreceived is not None
    assert "2 messages were never received, such as rank 0 to rank 1, tag 4;" in result.unreceived
    assert f"pysmpi: warning: {result.unreceived}" in summary(result)
    result = pysmpi.run(_sends, 3, args=[2, True], compute="none")
    assert result.unreceived is not None
    assert "1 message was never received: rank 2 to rank 1, tag 5;" in result.unreceived


def test_a_run_that_receives_all_has_no_warning() -> None:
    result = pysmpi.run(_sends, 3, args=[3], compute="none")
    assert result.unreceived is None
    assert "warning" not in summary(result)
