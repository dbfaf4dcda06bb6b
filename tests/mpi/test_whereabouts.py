"""The memory of a message: its owner and its bytes, for every spelling."""

import array

import numpy as np
import pytest

from pysmpi.mpi import MPI
from pysmpi.mpi.buffers.locations import locate, place_of
from pysmpi.mpi.buffers.spellings import send

BASE = np.zeros((20, 10))


@pytest.mark.parametrize("part, first, last", [
    (BASE, 0, 1600),
    (BASE[3], 240, 320),
    (BASE[3:5], 240, 400),
    (BASE[3:5].reshape(-1)[4:], 272, 400),
    (BASE.reshape(-1).view("i4")[1:3], 4, 12),
    ([BASE, (5, 2), MPI.DOUBLE], 16, 56),
    ([BASE[1], 3], 80, 104),
    (memoryview(BASE)[2:4], 160, 320),
])  # fmt: skip
def test_parts_of_an_array_are_bytes_of_its_owner(part, first, last):
    owner, *rest = locate(send(part))
    assert owner is BASE
    assert rest == [first, last, 1]


def test_a_strided_message_reaches_from_its_first_to_its_last_piece():
    column = MPI.DOUBLE.Create_vector(20, 1, 10).Commit()
    owner, *rest = locate(send([BASE, 1, column]))
    assert owner is BASE
    assert rest == [0, 19 * 80 + 8, 20]


def test_other_objects_own_their_memory():
    for owner in (bytearray(40), array.array("d", [0.0] * 5)):
        assert locate(send(owner)) == (owner, 0, 40, 1)
        assert locate(send(memoryview(owner)[1:3])) is not None


def test_a_pickled_object_is_nowhere():
    assert locate(b"pickled") is None
    assert locate(None) is None


@pytest.mark.parametrize("part, first, last", [
    (BASE, 0, 1600), (BASE[:, 3], 24, 19 * 80 + 32), (BASE[::-1], 0, 1600), (BASE[2:2], 160, 160),
    (BASE.T[4:6], 32, 19 * 80 + 48),
])  # fmt: skip
def test_what_is_touched_reaches_from_its_first_byte_to_its_last(part, first, last):
    (owner, *rest), nbytes = place_of(part)
    assert owner is BASE
    assert nbytes == part.nbytes
    if nbytes:
        assert rest == [first, last, 1]


def test_what_has_no_buffer_cannot_be_touched():
    with pytest.raises(TypeError, match="bytes-like"):
        place_of(3)
