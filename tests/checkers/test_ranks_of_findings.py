"""A finding at one line lists all ranks that made the call."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import pysmpi
from pysmpi.mpi import MPI


def described() -> None:
    comm = MPI.COMM_WORLD
    one, all_ = np.ones(1, np.int64), np.zeros(comm.size, np.int64)
    comm.Allgather([one, MPI.INT], [all_, MPI.INT])


def locked_between_fences() -> None:
    win = MPI.Win.Create(np.zeros(1), comm=MPI.COMM_WORLD)
    win.Fence()
    win.Lock(win.Get_group().Get_rank())
    win.Unlock(MPI.COMM_WORLD.rank)
    win.Fence()
    win.Free()


@pytest.mark.parametrize(
    ("program", "code"), [(described, "PSM113"), (locked_between_fences, "PSM123")]
)
def test_all_ranks_are_listed(program: Callable[[], None], code: str) -> None:
    with pytest.raises(pysmpi.ProgramError) as caught:
        pysmpi.run(program, 3, check="messages,onesided", compute="none")
    (finding,) = (one for one in caught.value.result.findings if one.code == code)
    assert finding.places[0].ranks == [0, 1, 2]
