"""Pack, Unpack and external32."""

from __future__ import annotations

import numpy as np
import pytest

from pysmpi.mpi.base import constants as c
from pysmpi.mpi.base.exceptions import Exception as MPIException
from pysmpi.mpi.datatypes import datatypes as d
from pysmpi.mpi.datatypes import packing

EXTERNAL = "external32"


def external(datatype, data):
    out = bytearray(
        datatype.Pack_external_size(EXTERNAL, memoryview(data).nbytes // datatype.extent)
    )
    assert datatype.Pack_external(EXTERNAL, data, out, 0) == len(out)
    return bytes(out)


@pytest.mark.parametrize(
    "name, value, expected",
    [
        ("INT", 3, "00000003"),
        ("SHORT", -2, "fffe"),
        ("LONG", 3, "00000003"),
        ("UNSIGNED_LONG", 2**32 - 1, "ffffffff"),
        ("LONG_LONG", 3, "0000000000000003"),
        ("DOUBLE", 3, "4008000000000000"),
        ("FLOAT", 3, "40400000"),
        ("WCHAR", 65, "0041"),
        ("C_BOOL", 1, "01"),
        ("C_COMPLEX", 3 + 1j, "404000003f800000"),
        ("LONG_DOUBLE", 1.5, "3fff8" + "0" * 27),
        ("LONG_DOUBLE", -2, "c000" + "0" * 28),
        ("LONG_DOUBLE", 0, "0" * 32),
        ("FLOAT16_T", 1, "3c00"),
        ("AINT", 1, "0000000000000001"),
        ("C_LONG_DOUBLE_COMPLEX", 1 + 2j, "3fff" + "0" * 28 + "4000" + "0" * 28),
    ],
)
def test_external_numbers(name, value, expected):
    datatype = d.PREDEFINED[name]
    data = np.array([value], datatype._live().dtype)
    stream = external(datatype, data)
    assert stream.hex() == expected
    back = np.zeros_like(data)
    assert datatype.Unpack_external(EXTERNAL, stream, 0, back) == len(stream)
    assert back == data


def test_long_doubles_survive_external32():
    rng = np.random.default_rng(2)
    data = (rng.standard_normal(500).astype("g") ** 7) / 3
    data[:4] = np.inf, -np.inf, np.finfo("g").tiny / 2, -0.0
    back = np.zeros_like(data)
    d.LONG_DOUBLE.Unpack_external(EXTERNAL, external(d.LONG_DOUBLE, data), 0, back)
    assert (back == data).all() and np.signbit(back[3])


def test_external_structures():
    inner = d.Datatype.Create_struct([1, 2], [0, 8], [d.LONG, d.SHORT])
    datatype = inner.Create_contiguous(3).Create_resized(0, 64).Commit()
    dtype = np.dtype(
        {
            "names": ["a", "b"],
            "formats": ["i8", ("i2", 2)],
            "offsets": [0, 8],
            "itemsize": inner.extent,
        }
    )
    data = np.zeros(128, np.uint8)
    for start in (0, 64):
        rows = np.ndarray((3,), dtype, data, start)
        rows["a"], rows["b"] = [1 + start, 2, 3], [[4, 5], [6, 7], [8, 9]]
    stream = external(datatype, data)
    assert len(stream) == 2 * 3 * 8
    assert np.frombuffer(stream, ">i4,>i2,>i2")[0].tolist() == (1, 4, 5)
    assert np.frombuffer(stream, ">i4,>i2,>i2")[3].tolist() == (65, 4, 5)
    back = np.zeros(128, np.uint8)
    datatype.Unpack_external(EXTERNAL, stream, 0, back)
    assert np.array_equal(back, data)


@pytest.mark.parametrize("name", [n for n, t in d.PREDEFINED.items() if t])
def test_everything_survives_external32(name):
    datatype = d.PREDEFINED[name]
    dtype = datatype._live().dtype
    if dtype is None or dtype.names:
        data = np.ones(5 * datatype.extent, np.uint8)
    else:
        data = np.arange(5).astype(dtype)
    data = np.concatenate([data])
    packed = external(datatype, data)
    back = np.zeros_like(data)
    datatype.Unpack_external(EXTERNAL, packed, 0, back)
    again = external(datatype, back)
    assert again == packed
    if dtype is not None and not dtype.names:
        assert np.array_equal(back, data)


def test_positions_move_on():
    record = d.INT.Create_vector(2, 1, 2).Commit()._live()
    memory, room = np.arange(6, dtype="i4"), bytearray(40)
    assert packing.size(record, 3) == 24
    first = packing.pack(record, memory, room, 4)
    assert first == 4 + 16
    target = np.zeros(6, "i4")
    assert packing.unpack(record, room, 4, target) == first
    # Two elements of extent 12 lie in 24 bytes, at 0, 2 and at 3, 5.
    assert target.tolist() == [0, 0, 2, 3, 0, 5]


def error_class(call):
    with pytest.raises(MPIException) as caught:
        call()
    return caught.value.Get_error_class()


def test_errors():
    record = d.INT._live()
    assert error_class(lambda: packing.pack(record, bytes(8), bytearray(7), 0)) == c.ERR_TRUNCATE
    assert error_class(lambda: packing.unpack(record, bytes(7), 0, bytearray(8))) == c.ERR_TRUNCATE
    assert error_class(lambda: packing.pack(record, bytes(8), bytearray(9), -1)) == c.ERR_ARG
    assert error_class(lambda: d.INT.Pack_external_size("native", 1)) == c.ERR_UNSUPPORTED_DATAREP
    assert error_class(lambda: packing.size(record, -1)) == c.ERR_COUNT
    with pytest.raises(BufferError):
        packing.pack(record, bytes(4), bytes(4), 0)
    with pytest.raises(TypeError):
        d.INT.Pack(bytes(4), bytearray(4), 0, None)
    back = d.INT.Create_vector(2, 1, -2).Commit()._live()
    assert error_class(lambda: packing.pack(back, bytes(12), bytearray(8), 0)) == c.ERR_BUFFER
