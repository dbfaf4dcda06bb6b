"""Copies of packed data: all lengths and alignments, with nothing else written; strided blocks."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pysmpi.isolation.loading.loader import FunctionProgram
from pysmpi.job.job import Job
from pysmpi.job.options import Options
from pysmpi.mpi.buffers import copying
from pysmpi.mpi.buffers.copying import LIMITS, copy
from pysmpi.mpi.datatypes import copy_plans

LINE = 64  # bytes
LARGE = 128 << 10  # bytes from which the alignment matters
LEAST = 64 << 10  # the fewest bytes of a block that is copied past the cache


@pytest.fixture(params=[0, 1_000_000], ids=["to the cache", "past the cache"], scope="module")
def ranks(request):
    """The number of ranks, which decides about the cache."""
    LIMITS.suit(request.param)
    yield request.param
    LIMITS.suit(0)


def place(nbytes, shift):
    """An array of bytes whose address is `shift` more than a multiple of `LINE`."""
    room = np.zeros(nbytes + 2 * LINE, np.uint8)
    start = (shift - room.ctypes.data) % LINE
    return room, slice(start, start + nbytes)


shifts = st.one_of(st.integers(0, 7).map(lambda words: 8 * words), st.integers(0, LINE - 1))
lengths = st.one_of(
    st.integers(LARGE, LARGE + 2 * LINE), st.integers(LEAST - 1, LEAST + 70), st.integers(0, 100)
)


@given(nbytes=lengths, here=shifts, there=shifts, readonly=st.booleans())
def test_a_copy_writes_these_bytes_and_no_others(ranks, nbytes, here, there, readonly):
    source, part = place(nbytes, here)
    source[part] = np.arange(nbytes) % 251 + 1
    data = memoryview(source[part])
    target, room = place(nbytes, there)
    copy(memoryview(target[room]), data.toreadonly() if readonly else data)
    assert np.array_equal(target[room], source[part])
    target[room] = 0
    assert not target.any()


@pytest.mark.skipif(copying.memcopy is None, reason="pysmpi was installed without a C compiler")
@given(nbytes=st.integers(0, 300), here=shifts, there=shifts, past_cache=st.booleans())
def test_short_blocks_have_no_whole_line(nbytes, here, there, past_cache):
    source, part = place(nbytes, here)
    source[part] = np.arange(nbytes) % 251 + 1
    target, room = place(nbytes, there)
    copying.memcopy.copy(memoryview(target[room]), memoryview(source[part]), past_cache)
    assert np.array_equal(target[room], source[part])
    target[room] = 0
    assert not target.any()


@pytest.mark.parametrize("kind", [bytes, bytearray])
def test_packed_data_need_not_be_a_view(ranks, kind):
    data = kind(range(256)) * (LARGE // 256) + b"end"
    target = bytearray(len(data))
    copy(memoryview(target), data)
    assert target == data


@pytest.mark.parametrize("by", [-16, -8, 8, 16])
def test_a_copy_within_one_array_moves_it(ranks, by):
    memory = np.arange(LARGE // 4, dtype=np.uint64)
    view = memoryview(memory).cast("B")
    words = by // 8
    first, last = max(0, -words), len(memory) - max(0, words)
    wanted = memory[first:last].copy()
    copy(view[8 * (first + words) : 8 * (last + words)], view[8 * first : 8 * last])
    assert np.array_equal(memory[first + words : last + words], wanted)


@pytest.mark.parametrize("nbytes", [10, LARGE])
@pytest.mark.parametrize("more", [-1, 1])
def test_a_copy_of_another_size_is_refused_and_writes_nothing(ranks, nbytes, more):
    target = bytearray(nbytes + more)
    with pytest.raises(ValueError):
        copy(memoryview(target), b"x" * nbytes)
    assert not any(target)


def test_a_copy_to_memory_that_cannot_be_written_is_refused(ranks):
    data = bytes(LARGE)
    with pytest.raises((TypeError, BufferError)):
        copy(memoryview(data), b"x" * LARGE)
    assert not any(data)


@pytest.mark.skipif(copying.memcopy is None, reason="pysmpi was installed without a C compiler")
@pytest.mark.parametrize(
    "compute, nprocs, past_cache",
    [("none", 300, True), ("1us", 300, True), ("none", 30, False), ("native", 300, False),
     ("steady", 300, False)],
)  # fmt: skip
def test_blocks_that_the_cache_cannot_hold_for_all_ranks_are_copied_past_it(
    compute, nprocs, past_cache
):
    found = []

    def program():
        found.append(LIMITS.past_cache)

    Job(FunctionProgram(program, ()), Options(nprocs=nprocs, compute=compute)).run()
    assert {limit <= 100 << 10 for limit in found} == {past_cache}
    assert LIMITS.past_cache > 1 << 60  # after the run


# Without and with C, if there is C.
WAYS = dict.fromkeys([copy_plans._copy_blocks, copy_plans.copy_blocks])
ROOM = 400  # bytes of a buffer
dimensions = st.lists(
    st.tuples(st.integers(0, 5), st.integers(-30, 30), st.integers(-30, 30)), max_size=3
)


def places(first, counts, strides, length):
    """The places of the bytes of blocks in a buffer, in their order."""
    return [
        first + sum(i * stride for i, stride in zip(index, strides)) + byte
        for index in product(*map(range, counts))
        for byte in range(length)
    ]


@pytest.mark.parametrize("way", WAYS)
@given(
    dims=dimensions,
    length=st.one_of(st.sampled_from([1, 2, 4, 8, 16]), st.integers(1, 20)),
    place=st.integers(0, ROOM),
    origin=st.integers(0, ROOM),
    same=st.booleans(),
)
def test_strided_blocks_are_copied_to_their_places(way, dims, length, place, origin, same):
    counts, strides, source_strides = map(tuple, zip(*dims)) if dims else ((), (), ())
    targets = places(place, counts, strides, length)
    sources = places(origin, counts, source_strides, length)
    source = np.random.default_rng(1).integers(0, 256, ROOM, np.uint8)
    target = source if same else np.zeros(ROOM, np.uint8)
    inside = all(0 <= at < ROOM for at in (*targets, *sources))
    if not inside:
        before = target.copy()
        with pytest.raises((ValueError, TypeError)):
            way(target.data, place, strides, source.data, origin, source_strides, counts, length)
        assert np.array_equal(target, before)
        return
    if len(set(targets)) < len(targets):
        return  # no datatype of a receive has a byte twice
    expected = target.copy()
    expected[targets] = source[sources]
    way(target.data, place, strides, source.data, origin, source_strides, counts, length)
    assert np.array_equal(target, expected)


@pytest.mark.parametrize("way", WAYS)
@given(
    count=st.integers(2, 12),
    length=st.integers(1, 8),
    gap=st.integers(0, 4),
    shift=st.integers(-20, 20),
    backwards=st.booleans(),
)
def test_blocks_move_inside_one_array(way, count, length, gap, shift, backwards):
    """As if all were read before any is written."""
    stride = -(length + gap) if backwards else length + gap
    first = ROOM // 2
    sources = places(first, [count], [stride], length)
    array = (np.arange(ROOM) % 251).astype(np.uint8)
    expected = array.copy()
    expected[np.array(sources) + shift] = array[sources]
    way(array.data, first + shift, (stride,), array.data, first, (stride,), (count,), length)
    assert np.array_equal(array, expected)
