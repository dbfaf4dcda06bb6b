"""Copies of packed data: all lengths and alignments, with nothing else written."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pysmpi.mpi.buffers.copying import copy

LINE = 64  # bytes
LARGE = 128 << 10  # bytes from which the alignment matters


def place(nbytes, shift):
    """An array of bytes whose address is `shift` more than a multiple of `LINE`."""
    room = np.zeros(nbytes + 2 * LINE, np.uint8)
    start = (shift - room.ctypes.data) % LINE
    return room, slice(start, start + nbytes)


shifts = st.one_of(st.integers(0, 7).map(lambda words: 8 * words), st.integers(0, LINE - 1))


@given(
    nbytes=st.one_of(st.integers(LARGE, LARGE + 70), st.integers(0, 100)),
    here=shifts,
    there=shifts,
    readonly=st.booleans(),
)
def test_a_copy_writes_these_bytes_and_no_others(nbytes, here, there, readonly):
    source, part = place(nbytes, here)
    source[part] = np.arange(nbytes) % 251 + 1
    data = memoryview(source[part])
    target, room = place(nbytes, there)
    copy(memoryview(target[room]), data.toreadonly() if readonly else data)
    assert np.array_equal(target[room], source[part])
    target[room] = 0
    assert not target.any()


@pytest.mark.parametrize("kind", [bytes, bytearray])
def test_packed_data_need_not_be_a_view(kind):
    data = kind(range(256)) * (LARGE // 256) + b"end"
    target = bytearray(len(data))
    copy(memoryview(target), data)
    assert target == data


@pytest.mark.parametrize("by", [-16, -8, 8, 16])
def test_a_copy_within_one_array_moves_it(by):
    memory = np.arange(LARGE // 4, dtype=np.uint64)
    view = memoryview(memory).cast("B")
    words = by // 8
    first, last = max(0, -words), len(memory) - max(0, words)
    wanted = memory[first:last].copy()
    copy(view[8 * (first + words) : 8 * (last + words)], view[8 * first : 8 * last])
    assert np.array_equal(memory[first + words : last + words], wanted)
