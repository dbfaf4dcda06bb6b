"""MPI.buffer, addresses, and reading the memory of foreign objects."""

from __future__ import annotations

import array
import ctypes
import io
import mmap
import pickle
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pysmpi
from pysmpi.mpi.base import exporting, plain_exporter
from pysmpi.mpi.base.exceptions import Exception as MPIException
from pysmpi.mpi.base.exporting import acquire, address_of
from pysmpi.mpi.buffers import memory as b

# In C, and for installations without a compiler.
EXPORTERS = list(dict.fromkeys([exporting.Exporter, plain_exporter.Exporter]))


@pytest.mark.parametrize("shape", [(24,), (4, 6), (), (0,)])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("writable", [True, False])
def test_the_address_of_any_contiguous_memory(shape, order, writable):
    values = np.zeros(shape, "f8", order)
    values.flags.writeable = writable
    start = values.ctypes.data
    assert address_of(values) == start
    if values.size:
        assert address_of(memoryview(values)) == start
        assert address_of(memoryview(values.reshape(-1, order="A")).cast("B")[3:]) == start + 3


def test_the_address_of_memory_that_is_not_contiguous_is_refused():
    with pytest.raises(BufferError, match="contiguous"):
        address_of(memoryview(bytearray(8))[::2])


def test_a_buffer_shows_the_memory_of_an_object():
    data = bytearray(b"hello")
    shown = b.buffer.frombuffer(data)
    assert (shown.nbytes, shown.format, shown.itemsize, shown.readonly) == (5, "B", 1, False)
    assert shown.obj is data
    shown[0] = ord("J")
    shown[-2:] = b"LO"
    assert data == b"JelLO"
    assert shown[1:3].tobytes() == b"el" and shown[1:3].address == shown.address + 1
    assert memoryview(shown).tobytes() == b"JelLO"
    io.BytesIO(b"12345").readinto(shown)
    assert data == b"12345"
    np.asarray(shown)[:] = 65
    assert data == b"AAAAA"


def test_a_buffer_of_nothing_is_empty_and_writable():
    empty = b.buffer()
    assert (empty.nbytes, empty.address, empty.obj, empty.readonly) == (0, 0, None, False)
    assert bytes(empty) == b""


def test_read_only_memory_stays_read_only():
    shown = b.buffer(b"abc")
    assert shown.readonly
    with pytest.raises(TypeError):
        shown[0] = 1
    with pytest.raises((TypeError, BufferError)):
        io.BytesIO(b"123").readinto(shown)
    with pytest.raises(BufferError):
        b.buffer.frombuffer(b"abc")
    writable = b.buffer.frombuffer(bytearray(3))
    assert writable.toreadonly().readonly and not writable.readonly


def test_exporting_leaks_no_reference():
    shown = b.buffer.allocate(10)
    exporter = shown._exporter
    before = sys.getrefcount(exporter)
    views = [memoryview(shown) for _ in range(100)]
    del views
    after = sys.getrefcount(exporter)
    assert after == before


@pytest.mark.parametrize("base", EXPORTERS, ids=lambda base: base.__module__)
def test_an_exporter_exports_the_buffer_of_its_attribute(base):
    class Shows(base):
        __slots__ = ("_exporter",)

    class Derived(Shows):
        pass

    # A callback of ctypes cannot raise.
    silent = base is plain_exporter.Exporter and sys.version_info < (3, 12)
    missing = SystemError if silent else AttributeError
    refused = (TypeError, BufferError, SystemError) if silent else (TypeError, BufferError)
    for cls in (Shows, Derived):
        shown = cls()
        with pytest.raises(missing):
            memoryview(shown)
        memory = shown._exporter = bytearray(b"abc")
        count = sys.getrefcount(memory)
        memoryview(shown)[1] = 120
        assert memory == b"axc" and sys.getrefcount(memory) == count
        with memoryview(shown), pytest.raises(BufferError):
            memory.append(1)
        shown._exporter = b"abc"
        with pytest.raises(refused):
            io.BytesIO(b"123").readinto(shown)
        shown._exporter = None
        assert memoryview(shown).tobytes() == b"" and bytes(shown) == b""
        shown._exporter = 3
        with pytest.raises(refused):
            memoryview(shown)


@settings(deadline=None)
@given(st.binary(max_size=40), st.integers(-50, 50), st.integers(-50, 50))
def test_indexing_is_that_of_bytearray(data, i, j):
    reference, shown = bytearray(data), b.buffer.frombuffer(bytearray(data))
    assert shown[i:j].tobytes() == bytes(reference[i:j])
    try:
        expected = reference[i]
    except IndexError:
        with pytest.raises(IndexError):
            shown[i]
    else:
        assert shown[i] == expected
    shown[i:j] = 7
    reference[i:j] = b"\x07" * len(reference[i:j])
    assert shown.tobytes() == bytes(reference)


def test_wrong_indices_and_values():
    shown = b.buffer.allocate(4)
    for wrong in (None, "a", 1.0):
        with pytest.raises(TypeError):
            shown[wrong]
    with pytest.raises(IndexError):
        shown[::2]
    with pytest.raises(IndexError):
        shown[4] = 0
    with pytest.raises(OverflowError):
        shown[0] = 256
    with pytest.raises(ValueError):
        shown[:2] = b"abc"
    with pytest.raises(TypeError):
        b.buffer(3)
    with pytest.raises(ValueError):
        b.buffer.allocate(-1)
    with pytest.raises(TypeError):

        class Mine(b.buffer):
            pass


def test_addresses():
    values = np.arange(4.0)
    address = b.Get_address(values)
    assert address == values.ctypes.data
    assert b.Get_address(values[1:]) == b.Aint_add(address, 8)
    assert b.Aint_diff(b.Get_address(values[2:]), address) == 16
    assert b.Aint_add(2**63 - 1, 1) == -(2**63)
    there = b.buffer.fromaddress(address, 32)
    there.cast("d")[1] = 5.0
    assert values[1] == 5.0
    assert b.Get_address(there) == address and b.Get_address(b.BOTTOM) == 0
    with pytest.raises(ValueError):
        b.buffer.fromaddress(0, 1)
    with pytest.raises(ValueError):
        b.buffer.fromaddress(address, -1)


def test_allocated_memory_outlives_its_buffer_until_it_is_freed():
    address = b.Alloc_mem(16).address
    b.buffer.fromaddress(address, 16)[:] = 3
    again = b.buffer.fromaddress(address, 16)
    assert again.tobytes() == b"\x03" * 16
    b.Free_mem(again)
    assert (again.address, again.nbytes) == (0, 0)
    with pytest.raises(MPIException):
        b.Free_mem(b.buffer.allocate(4))
    empty = b.Alloc_mem(0)
    assert len(empty) == 0 and empty.address
    b.Free_mem(empty)


def test_special_arguments(as_mpi4py):
    for constant, value in ((b.BOTTOM, 0), (b.IN_PLACE, -1), (b.BUFFER_AUTOMATIC, -2)):
        assert constant == value and int(constant) == value and constant != value + 1
        assert constant == type(constant)() and constant is not None
        assert memoryview(constant).nbytes == 0 and memoryview(constant).obj is None
        assert pickle.loads(pickle.dumps(constant)) is constant
    assert b.BOTTOM != b.IN_PLACE


def matrix():
    return np.arange(6, dtype="f4").reshape(2, 3)


@pytest.mark.parametrize(
    "make",
    [
        lambda: bytearray(b"abcd"),
        lambda: memoryview(bytearray(8)).cast("i"),
        lambda: array.array("d", [1, 2]),
        lambda: matrix(),
        lambda: matrix().T,
        lambda: np.zeros((2, 0)),
        lambda: np.zeros(3, "c16"),
        lambda: np.zeros(3, ">i4"),
        lambda: np.zeros(3, "M8[s]"),
        lambda: np.zeros(2, "U3"),
        lambda: np.zeros(2, "i4,f8"),
        lambda: np.array(1.5),
        lambda: (ctypes.c_int * 3)(1, 2, 3),
        lambda: mmap.mmap(-1, 64),
        lambda: b.buffer.allocate(5),
    ],
)
def test_every_contiguous_buffer_is_flat_bytes(make):
    obj = make()
    memory = acquire(obj, writable=True).memory
    assert (memory.format, memory.ndim) == ("B", 1)
    memory[:] = bytes(range(1, memory.nbytes + 1))
    again = acquire(obj).memory
    assert again.tobytes() == bytes(range(1, memory.nbytes + 1))


def test_refusals():
    for strided in (np.zeros((4, 4))[:, 1], np.zeros(8)[::2], memoryview(bytes(8))[::2]):
        with pytest.raises(BufferError):
            acquire(strided)
    frozen = np.zeros(3)
    frozen.flags.writeable = False
    for readonly in (b"abc", frozen, memoryview(b"abc")):
        acquire(readonly)
        with pytest.raises(BufferError):
            acquire(readonly, writable=True)
    for nothing in (3, None, [1], object()):
        with pytest.raises(TypeError):
            acquire(nothing)


class Lent:
    """An array that is accessible through DLPack only."""

    def __init__(self, values):
        self.values = values

    def __dlpack_device__(self):
        return self.values.__dlpack_device__()

    def __dlpack__(self, **keywords):
        return self.values.__dlpack__(**keywords)


def test_dlpack():
    values = np.arange(6, dtype="i8").reshape(2, 3)
    exported = acquire(Lent(values), writable=True)
    assert (exported.format, exported.itemsize, exported.memory.nbytes) == ("l", 8, 48)
    exported.memory.cast("l")[0] = 77
    assert values[0, 0] == 77
    acquire(Lent(values.T))
    with pytest.raises(BufferError):
        acquire(Lent(values[:, 1]))
    assert acquire(Lent(np.zeros(2, "c16"))).format == "Zd"
    frozen = np.zeros(2)
    frozen.flags.writeable = False
    with pytest.raises(BufferError):
        acquire(Lent(frozen), writable=True)


class Device:
    """Host memory that claims to be on a graphics card."""

    def __init__(self, values, **changes):
        self.values = values
        self.__cuda_array_interface__ = {
            "version": 3,
            "data": (values.ctypes.data, False),
            "typestr": values.dtype.str,
            "shape": values.shape,
            "strides": values.strides,
        } | changes


def test_cuda_array_interface():
    values = np.arange(4, dtype="f8")
    device = Device(values)
    exported = acquire(device, writable=True)
    assert (exported.format, exported.memory.nbytes) == ("d", 32)
    exported.memory.cast("d")[3] = 9
    assert values[3] == 9
    shown = b.buffer.frombuffer(device)
    for refused in (lambda: shown[0], shown.tobytes, lambda: shown.cast("d")):
        with pytest.raises(BufferError):
            refused()
    for changes, error in (
        ({"mask": 1}, BufferError),
        ({"typestr": ">f8"}, BufferError),
        ({"strides": (16,)}, BufferError),
        ({"shape": 4}, TypeError),
        ({"data": (1,)}, ValueError),
        ({"data": (0, True)}, BufferError),
        ({"typestr": "<fX"}, ValueError),
    ):
        with pytest.raises(error):
            acquire(Device(values, **changes), writable=True)
    with pytest.warns(RuntimeWarning):
        acquire(Device(values, descr=[("", "<f4"), ("", "<f4")]))


def ring(kind):
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    values, found = np.full(4, comm.rank, "i4"), np.zeros(4, "i4")
    if kind is Device:
        values, found = Device(values), Device(found)
    comm.Sendrecv(values, (comm.rank + 1) % 2, recvbuf=found, source=(comm.rank + 1) % 2)
    return np.array(found.values if kind is Device else found).tolist()


@pytest.mark.parametrize("kind", [Device, np.ndarray])
def test_a_run_tells_that_buffers_are_on_devices(kind):
    result = pysmpi.run(ring, 2, args=(kind,), compute="none")
    assert result.returns == [[1] * 4, [0] * 4]
    told = [remark for remark in result.remarks if "accelerators (Device)" in remark]
    assert len(told) == (kind is Device) and len(told) == len(result.remarks)
