"""Views of the memory of messages: the functions in C against those in Python."""

from __future__ import annotations

import array
import ctypes

import numpy as np
import pytest

from pysmpi.mpi.buffers import spellings, views

FORMATS = spellings.FORMATS
flat_views = pytest.importorskip("pysmpi.mpi.buffers.flat_views", reason="needs compiled code")

FROZEN = np.arange(6.0)
FROZEN.flags.writeable = False
MEMORY = {
    **{f"array of {code!r}": np.zeros(5, code) for code in "bBhHiIlLqQefdgFDG?"},
    "bytes": b"12345",
    "bytearray": bytearray(7),
    "empty bytes": b"",
    "empty array": np.zeros(0),
    "empty matrix": np.zeros((3, 0)),
    "empty column": np.zeros(6, np.uint8)[6::2],
    "matrix": np.arange(6.0).reshape(2, 3),
    "matrix of bytes": np.arange(6, dtype=np.uint8).reshape(2, 3),
    "matrix in columns": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "every second": np.arange(6.0)[::2],
    "backwards": np.arange(6.0)[::-1],
    "scalar": np.array(3.0),
    "scalar byte": np.array(3, np.uint8),
    "read-only": FROZEN,
    "swapped": np.arange(6.0).astype(">f8"),
    "structure": np.zeros(3, "i4,f8"),
    "dates": np.zeros(3, "M8[s]"),
    "array.array": array.array("h", [1, 2, 3]),
    "ctypes": (ctypes.c_double * 4)(),
    "cast": memoryview(bytearray(24)).cast("d", (1, 3)),
    "characters": memoryview(b"abc").cast("c"),
    "no memory": 3,
    "nothing": None,
}


def described(found):
    """A view and its entry, as values that compare."""
    if found is None:
        return None
    view, entry = found
    return (
        view.format, view.itemsize, view.ndim, view.shape, view.strides, view.suboffsets,
        view.readonly, view.nbytes, view.c_contiguous, view.f_contiguous, view.contiguous,
        len(view), view.obj is not None, view.tobytes(), bytes(view[1:]), entry,
    )  # fmt: skip


@pytest.mark.parametrize("writable", [False, True])
@pytest.mark.parametrize("name", MEMORY)
def test_views_of_bytes_are_those_that_python_casts(name, writable):
    memory = MEMORY[name]
    mine = flat_views.flat(memory, writable, FORMATS)
    assert described(mine) == described(views.flat_view(memory, writable, FORMATS))
    if name in ("array of 'd'", "matrix", "bytearray"):
        assert mine is not None


def test_a_view_keeps_its_memory_and_writes_to_it():
    memory = np.arange(6.0).reshape(2, 3)
    view, _ = flat_views.flat(memory, True, FORMATS)
    view[:8] = np.float64(7.5).tobytes()
    assert memory[0, 0] == 7.5
    bytes_, _ = flat_views.flat(held := bytearray(8), True, FORMATS)
    with pytest.raises(BufferError):
        held.append(1)
    bytes_.release()
    held.append(1)
    view.release()
    with pytest.raises(ValueError, match="released"):
        view.tobytes()


def test_a_wrong_table_of_formats_is_an_error():
    with pytest.raises(TypeError, match="flat takes"):
        flat_views.flat(b"", False, [])
    assert flat_views.flat(b"", False, {}) is None


def test_copies_are_those_of_slices():
    source = memoryview(bytearray(range(10)))
    target = memoryview(bytearray(10))
    assert flat_views.copy(source, target) and target == source
    overlapping = memoryview(bytearray(range(10)))
    assert flat_views.copy(overlapping[:8], overlapping[2:])
    assert bytes(overlapping) == bytes([0, 1, 0, 1, 2, 3, 4, 5, 6, 7])


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (bytes(4), bytearray(4)),
        (memoryview(bytes(4)), memoryview(bytearray(5))),
        (memoryview(bytes(4)), memoryview(bytes(4))),
        (memoryview(bytes(8))[::2], memoryview(bytearray(4))),
        (memoryview(bytes(4)), memoryview(bytearray(8))[::2]),
        (memoryview(bytes(8)).cast("d"), memoryview(bytearray(8))),
    ],
)
def test_other_copies_are_refused_without_an_effect(source, target):
    before = bytes(target)
    assert flat_views.copy(source, target) is False
    assert bytes(target) == before


def test_no_copy_to_released_memory():
    target = memoryview(bytearray(4))
    target.release()
    assert flat_views.copy(memoryview(bytes(4)), target) is False
