"""Objects that are not freed: one report for each line of the program, with their number."""

from __future__ import annotations

import pytest

import pysmpi
from pysmpi.mpi import MPI


def duplicate(*counts: int) -> None:
    comms = []
    for _ in range(counts[MPI.COMM_WORLD.rank]):
        comms.append(MPI.COMM_SELF.Dup())


@pytest.mark.parametrize(
    ("counts", "ranks", "number"),
    [
        ((1, 0, 0), [0], ""),
        ((1, 1, 1), [0, 1, 2], ""),
        ((2, 0, 0), [0], " (2 of them)"),
        ((2, 1, 0), [0, 1], " (3 of them)"),
        ((0, 2, 2), [1, 2], " (4 of them)"),
    ],
)
def test_their_number_is_told_if_a_rank_has_several(
    counts: tuple[int, ...], ranks: list[int], number: str
) -> None:
    with pytest.raises(pysmpi.ProgramError) as caught:
        pysmpi.run(duplicate, 3, args=counts, check="leaks", compute="none")
    (leak,) = caught.value.result.findings
    assert leak.what.endswith(f"that Dup returned is not freed before MPI.Finalize{number}")
    assert list(leak.places[0].ranks) == ranks
