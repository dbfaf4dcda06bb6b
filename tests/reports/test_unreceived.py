"""Messages that no rank received are named at the end of a run, without any checker."""

from __future__ import annotations

import re

import numpy as np
import pytest
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


ROOTED = {
    "Bcast": lambda comm, root: comm.Bcast(np.ones(2), root),
    "bcast": lambda comm, root: comm.bcast("data", root),
    "Scatter": lambda comm, root: comm.Scatter(np.ones(6), np.zeros(2), root),
    "scatter": lambda comm, root: comm.scatter([1, 2, 3], root),
    "Scatterv": lambda comm, root: comm.Scatterv(np.ones(6), np.zeros(2), root),
    "Ibcast": lambda comm, root: comm.Ibcast(np.ones(2), root).Wait(),
    "Iscatter": lambda comm, root: comm.Iscatter(np.ones(6), np.zeros(2), root).Wait(),
}


def _rooted(name: str, roots: list[int], early: bool = False) -> None:
    comm = MPI.COMM_WORLD.Dup()
    if not early or comm.rank == roots[comm.rank]:
        ROOTED[name](comm, roots[comm.rank])


@pytest.mark.parametrize("name", ROOTED)
def test_data_for_ranks_with_other_roots(name: str) -> None:
    result = pysmpi.run(_rooted, 3, args=[name, [0, 1, 2]], compute="none")
    assert result.exit_status == 0
    assert result.unreceived is not None
    assert re.search(r"rank \d never received the data that rank \d sent", result.unreceived)
    assert f"({name.lower()}): their calls have different roots" in result.unreceived
    assert f"pysmpi: warning: {result.unreceived}" in summary(result)
    result = pysmpi.run(_rooted, 3, args=[name, [1, 1, 1]], compute="none")
    assert (result.exit_status, result.unreceived) == (0, None)


def test_data_for_ranks_that_do_not_make_the_call() -> None:
    result = pysmpi.run(_rooted, 3, args=["bcast", [0, 0, 0], True], compute="none")
    assert result.exit_status == 0
    assert "or not all ranks made the call" in str(result.unreceived)
