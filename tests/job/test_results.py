"""The result of a run: what it says depends on how the run ended."""

from __future__ import annotations

import pytest

import pysmpi
from pysmpi.mpi import MPI


def send(*, fail: bool) -> None:
    """Nobody receives the message."""
    if MPI.COMM_WORLD.rank == 0:
        MPI.COMM_WORLD.send("lost", 1, tag=4)
    elif fail:
        raise ValueError("mine")


def test_messages_that_nobody_received_are_a_remark_of_runs_that_succeed() -> None:
    """After an error, they follow from it."""
    result = pysmpi.run(lambda: send(fail=False), 2, compute="none")
    assert result.exit_status == 0 and result.error is None
    assert result.unreceived is not None and "rank 0 to rank 1, tag 4" in result.unreceived
    with pytest.raises(pysmpi.ProgramError) as caught:
        pysmpi.run(lambda: send(fail=True), 2, compute="none")
    result = caught.value.result
    assert result.exit_status == 1 and "ValueError: mine" in str(caught.value)
    assert result.unreceived is None
