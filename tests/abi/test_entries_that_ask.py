"""Entry points that ask for a number store the one that mpi4py's method returns."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pysmpi
from pysmpi.mpi import MPI

pytest.importorskip(
    "pysmpi.abi.engine", reason="pysmpi was installed without a C compiler, or not on Linux"
)
from pysmpi.abi.chapters import (  # noqa: E402
    communicators,
    datatypes,
    environment,
    errors,
    files,
    info,
    operators,
    packing,
)

GUARD = -77  # beside the result: stays as it is


def stored(function: Callable[..., object], *values: object, size: int = 4, rest: Any = ()) -> int:
    """The number of `size` bytes that a function stores behind its last address."""
    kind = np.int64 if size == 8 else np.int32
    room = np.full(3, GUARD, kind)
    assert function(*values, room[1:].ctypes.data, *rest) is None
    assert (room[0], room[2]) == (GUARD, GUARD), function
    return int(room[1])


def ask(path: str) -> int:
    """Compare all entry points; return their number."""
    world, alone = MPI.COMM_WORLD, MPI.COMM_SELF
    copy, half = world.Dup(), world.Split(world.rank % 2, -world.rank)
    group, other = world.Get_group(), half.Get_group()
    inter = half.Create_intercomm(0, world, 3 - world.rank % 2)
    vector = MPI.DOUBLE.Create_vector(3, 2, 5).Commit()
    moved = MPI.INT.Create_resized(-8, 24).Commit()
    facts = MPI.Info.Create({"one": "1", "two": "2"})
    op = MPI.Op.Create(lambda a, b, t: None, commute=False)
    file = MPI.File.Open(world, path, MPI.MODE_RDWR | MPI.MODE_CREATE)
    file.Set_size(1000)
    file.Set_view(16, MPI.INT, moved)
    code = MPI.Add_error_code(MPI.Add_error_class())
    c, t, e, f = communicators, datatypes, environment, files
    expected: list[tuple[Callable[..., object], tuple[object, ...], int, int]] = [
        (e.Initialized, (), 4, True), (e.Finalized, (), 4, False), (e.Is_thread_main, (), 4, True),
        (errors.Error_class, (MPI.ERR_RANK,), 4, MPI.ERR_RANK),
        (errors.Error_class, (code,), 4, MPI.Get_error_class(code)),
        (info.Info_get_nkeys, (facts,), 4, 2),
        (operators.Op_commutative, (op,), 4, False),
        (operators.Op_commutative, (MPI.SUM,), 4, True),
        (c.Comm_compare, (world, world), 4, MPI.IDENT),
        (c.Comm_compare, (world, copy), 4, MPI.CONGRUENT),
        (c.Comm_compare, (world, alone), 4, MPI.UNEQUAL),
        (c.Comm_remote_size, (inter,), 4, inter.remote_size),
        (c.Group_compare, (group, group), 4, MPI.IDENT),
        (c.Group_compare, (group, other), 4, MPI.Group.Compare(group, other)),
        (f.File_get_size, (file,), 8, 1000), (f.File_get_amode, (file,), 4, file.Get_amode()),
        (f.File_get_type_extent, (file, moved), 8, 24), (f.File_get_byte_offset, (file, 3), 8, 88),
        (f.File_get_position, (file,), 8, 0), (f.File_get_position_shared, (file,), 8, 0),
        (f.File_get_atomicity, (file,), 4, False),
    ]  # fmt: skip
    for comm in (world, alone, copy, half, inter):
        expected += [
            (c.Comm_rank, (comm,), 4, comm.rank), (c.Comm_size, (comm,), 4, comm.size),
            (c.Comm_test_inter, (comm,), 4, comm.is_inter),
        ]  # fmt: skip
    for some in (group, other, MPI.GROUP_EMPTY):
        expected += [(c.Group_size, (some,), 4, some.size), (c.Group_rank, (some,), 4, some.rank)]
    for kind in (MPI.BYTE, MPI.DOUBLE, vector, moved):
        lower, extent = kind.Get_extent()
        expected += [
            (t.Type_size_x, (kind,), 8, kind.size), (t.Type_extent, (kind,), 8, extent),
            (t.Type_lb, (kind,), 8, lower), (t.Type_ub, (kind,), 8, lower + extent),
        ]  # fmt: skip
        for width in (4, 8):
            assert stored(t.Type_size, kind, size=width, rest=(width,)) == kind.size
            size = stored(packing.Pack_size, 3, kind, world, size=width, rest=(width,))
            assert size == kind.Pack_size(3, world)
    for function, arguments, width, number in expected:
        assert stored(function, *arguments, size=width) == number, (function, arguments)
    assert stored(t.Get_address, 4711, size=8) == 4711
    file.Close()
    for each in (op, facts, vector, moved, group, other, inter, copy, half):
        each.Free()
    return len(expected)


def test_the_number_is_that_of_the_method(tmp_path: Path) -> None:
    assert min(pysmpi.run(ask, 4, args=(str(tmp_path / "file"),), compute="none").returns) > 50


@pytest.mark.parametrize("first", [0, 4])
def test_what_is_packed_for_others_can_be_unpacked(first: int) -> None:
    """From a place in the middle of a buffer, with the bytes of external32 in the order of MPI."""
    name = ctypes.create_string_buffer(b"external32")
    data, got = np.array([1.5, -2.0, 3.25]), np.zeros(3)
    room = np.zeros(40, np.uint8)
    for function, buffers in (
        (packing.Pack_external, (data.ctypes.data, 3, MPI.DOUBLE, room.ctypes.data, 40)),
        (packing.Unpack_external, (room.ctypes.data, 40)),
    ):
        position = ctypes.c_int64(first)
        if function is packing.Pack_external:
            arguments = (*buffers, ctypes.addressof(position))
        else:
            arguments = (*buffers, ctypes.addressof(position), got.ctypes.data, 3, MPI.DOUBLE)
        assert function(ctypes.addressof(name), *arguments) is None
        assert position.value == first + 24
    assert room[first : first + 24].tobytes() == data.astype(">f8").tobytes()
    assert np.array_equal(got, data)
    size = stored(
        lambda *values: packing.Pack_external_size(*values),
        ctypes.addressof(name), 3, MPI.DOUBLE, size=8,
    )  # fmt: skip
    assert size == 24


@pytest.mark.parametrize("size", [1, 2, 4, 8, 16])
def test_booleans_of_fortran_are_set_for_sizes_of_compilers(size: int) -> None:
    """MPI 5.0, section 20.5: LOGICAL of 4 or 8 bytes; 1 is true and 0 is false."""
    true, false, is_set = (ctypes.c_int64(-1) for _ in range(3))
    assert (
        environment.Abi_get_fortran_booleans(size, *map(ctypes.addressof, (true, false, is_set)))
        is None
    )
    number = {4: ctypes.c_int32, 8: ctypes.c_int64}.get(size)
    assert ctypes.c_int32.from_buffer(is_set).value == (number is not None)
    if number is None:
        assert (true.value, false.value) == (-1, -1)
    else:
        assert (number.from_buffer(true).value, number.from_buffer(false).value) == (1, 0)
        assert size == 8 or (true.value >> 32, false.value >> 32) == (-1, -1)
