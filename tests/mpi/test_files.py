"""Files: opening, pointers, the kinds of access, errors and their handlers, representations."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from simulated import Deadlock, simulate

from pysmpi.mpi import MPI
from pysmpi.mpi.base.ranks import Rank

RDWR = MPI.MODE_RDWR | MPI.MODE_CREATE


def refused(call: Callable[..., Any], *arguments: Any) -> int:
    """The error class of a call that has to fail."""
    with pytest.raises(MPI.Exception) as caught:
        call(*arguments)
    return caught.value.Get_error_class()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data"


# Opening and closing.


@pytest.mark.parametrize(
    ("amode", "expected"),
    [
        (0, MPI.ERR_AMODE),
        (MPI.MODE_RDONLY | MPI.MODE_RDWR, MPI.ERR_AMODE),
        (MPI.MODE_RDONLY | MPI.MODE_CREATE, MPI.ERR_AMODE),
        (MPI.MODE_RDONLY | MPI.MODE_EXCL, MPI.ERR_AMODE),
        (MPI.MODE_RDWR | MPI.MODE_SEQUENTIAL, MPI.ERR_AMODE),
        (RDWR | MPI.MODE_EXCL, MPI.ERR_FILE_EXISTS),
    ],
)
def test_access_modes_that_are_refused(path, amode, expected):
    path.write_bytes(b"")
    assert simulate(2, lambda rank: refused(MPI.File.Open, MPI.COMM_WORLD, path, amode)) == \
        [expected] * 2  # fmt: skip


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("none", MPI.ERR_NO_SUCH_FILE),
        ("data/below", MPI.ERR_BAD_FILE),
        (".", MPI.ERR_BAD_FILE),
        ("n" * 300, MPI.ERR_BAD_FILE),
    ],
)
def test_names_that_are_refused(path, name, expected):
    path.write_bytes(b"")
    where = path.parent / name
    assert simulate(2, lambda rank: refused(MPI.File.Open, MPI.COMM_WORLD, where)) == [expected] * 2
    assert simulate(1, lambda rank: refused(MPI.File.Delete, where)) == [expected]


def test_processes_that_open_in_different_modes(path):
    path.write_bytes(b"")

    def main(rank: Rank) -> int:
        amode = MPI.MODE_RDWR if MPI.COMM_WORLD.Get_rank() else MPI.MODE_RDONLY
        return refused(MPI.File.Open, MPI.COMM_WORLD, path, amode)

    assert simulate(3, main) == [MPI.ERR_NOT_SAME] * 3


def test_opening_waits_for_all(path):
    def main(rank: Rank) -> None:
        if MPI.COMM_WORLD.Get_rank() == 0:
            MPI.File.Open(MPI.COMM_WORLD, path, RDWR)

    with pytest.raises(Deadlock):
        simulate(2, main)


def test_deleted_on_close_when_the_last_has_come(path):
    def main(rank: Rank) -> bool:
        file = MPI.File.Open(MPI.COMM_WORLD, path, RDWR | MPI.MODE_DELETE_ON_CLOSE)
        assert path.exists()
        file.Close()
        return path.exists() or bool(file)

    assert simulate(3, main) == [False] * 3


def test_descriptors_are_given_back(path):
    def main(rank: Rank) -> None:
        for _ in range(3):
            MPI.File.Open(MPI.COMM_SELF, path, RDWR).Close()
        MPI.File.Open(MPI.COMM_SELF, path, RDWR)

    # Objects of other tests may close theirs meanwhile.
    before = set(os.listdir("/proc/self/fd"))
    simulate(2, main)
    assert set(os.listdir("/proc/self/fd")) <= before


def test_what_a_file_is(path):
    def main(rank: Rank) -> None:
        world = MPI.COMM_WORLD
        file = MPI.File.Open(world, os.fsencode(path), RDWR)
        assert file.amode == RDWR and file.Get_amode() == RDWR
        assert (file.group_size, file.group_rank) == (world.size, world.rank)
        assert MPI.Group.Compare(file.group, world.Get_group()) == MPI.IDENT
        copy = MPI.File(file)
        assert copy == file and copy is not file and copy != MPI.FILE_NULL
        assert MPI.File.f2py(file.py2f()) == file
        file.Set_size(100)
        assert file.size == 100 == path.stat().st_size
        file.Preallocate(50)
        assert file.size == 100
        file.Preallocate(150)
        assert file.size == 150
        file.Close()
        assert not file and file == MPI.FILE_NULL

    simulate(2, main)


def test_permissions_of_a_new_file(path):
    def main(rank: Rank) -> None:
        MPI.File.Open(MPI.COMM_SELF, path, RDWR, MPI.Info.Create({"file_perm": "0600"})).Close()

    simulate(1, main)
    assert path.stat().st_mode & 0o777 == 0o600


def test_hints_that_are_known_and_make_sense(path):
    def main(rank: Rank) -> None:
        hints = {"romio_ds_read": "enable", "romio_cb_read": "perhaps", "color": "blue"}
        file = MPI.File.Open(MPI.COMM_WORLD, path, RDWR, MPI.Info.Create(hints))
        found = dict(file.info)
        assert found["romio_ds_read"] == "enable" and found["romio_cb_read"] == "automatic"
        assert "color" not in found
        file.info = MPI.Info.Create({"romio_ds_read": "disable"})
        assert file.Get_info()["romio_ds_read"] == "disable"
        file.Set_info(MPI.INFO_NULL)
        file.Close()

    simulate(2, main)


# Pointers.


def test_the_own_pointer(path):
    path.write_bytes(bytes(range(20)))

    def main(rank: Rank) -> None:
        file = MPI.File.Open(MPI.COMM_WORLD, path)
        room = bytearray(6)
        file.Read(room)
        assert file.Get_position() == 6
        file.Seek(-2, MPI.SEEK_CUR)
        file.Read(room)
        assert bytes(room) == bytes(range(4, 10))
        file.Seek(-3, MPI.SEEK_END)
        status = MPI.Status()
        file.Read(room, status)
        assert (status.count, file.Get_position()) == (3, 20)
        # A call that returns before the data arrive moves the pointer by the requested amount.
        file.Seek(17)
        request = file.Iread(room)
        assert file.Get_position() == 23
        request.Wait(status)
        assert (status.count, file.Get_position()) == (3, 23)
        assert refused(file.Seek, -1) == refused(file.Seek, 0, 7) == MPI.ERR_ARG
        assert refused(file.Read_at, -1, room) == MPI.ERR_ARG
        file.Close()

    simulate(2, main)


def test_appending_begins_at_the_end(path):
    path.write_bytes(bytes(7))

    def main(rank: Rank) -> tuple[int, int]:
        file = MPI.File.Open(MPI.COMM_WORLD, path, MPI.MODE_WRONLY | MPI.MODE_APPEND)
        found = file.Get_position(), file.Get_position_shared()
        file.Close()
        return found

    assert simulate(2, main) == [(7, 7)] * 2


@pytest.mark.parametrize("nonblocking", [False, True])
def test_the_shared_pointer_gives_each_its_own_part(path, nonblocking):
    def main(rank: Rank) -> None:
        me = MPI.COMM_WORLD.Get_rank()
        file = MPI.File.Open(MPI.COMM_WORLD, path, RDWR)
        file.Set_view(2, MPI.INT)
        for _ in range(3):
            data = np.full(me + 1, me, "i")
            if nonblocking:
                file.Iwrite_shared(data).Wait()
            else:
                file.Write_shared(data)
        MPI.COMM_WORLD.Barrier()
        assert file.Get_position_shared() == 3 * (1 + 2 + 3)
        file.Close()

    simulate(3, main)
    found = np.frombuffer(path.read_bytes()[2:], "i")
    assert np.bincount(found).tolist() == [3, 6, 9]


def test_ordered_access_goes_by_rank(path):
    def main(rank: Rank) -> list[int]:
        world = MPI.COMM_WORLD
        me = world.Get_rank()
        # The latest to come is the first in the file.
        rank.sleep(0.1 * (world.size - me))
        file = MPI.File.Open(world, path, RDWR)
        rank.sleep(0.1 * (world.size - me))
        file.Write_ordered(bytes([me] * (me + 1)))
        file.Seek_shared(0)
        room = bytearray(2)
        file.Read_ordered(room)
        assert file.Get_position_shared() == 2 * world.size
        file.Close()
        return list(room)

    assert simulate(3, main) == [[0, 1], [1, 2], [2, 2]]
    assert path.read_bytes() == bytes([0, 1, 1, 2, 2, 2])


def test_a_new_view_rewinds(path):
    def main(rank: Rank) -> None:
        file = MPI.File.Open(MPI.COMM_WORLD, path, RDWR)
        file.Write(bytes(9))
        file.Seek_shared(5)
        file.Set_view(3, MPI.SHORT)
        assert file.Get_position() == file.Get_position_shared() == 0
        assert file.Get_byte_offset(4) == 11
        disp, etype, filetype, datarep = file.Get_view()
        assert (disp, etype, filetype, datarep) == (3, MPI.SHORT, MPI.SHORT, "native")
        file.Close()

    simulate(2, main)


def test_sequential_files_have_their_shared_pointer_only(path):
    path.write_bytes(bytes(range(10)))

    def main(rank: Rank) -> None:
        file = MPI.File.Open(MPI.COMM_SELF, path, MPI.MODE_RDONLY | MPI.MODE_SEQUENTIAL)
        room = bytearray(3)
        for call in (
            lambda: file.Read_at(0, room),
            lambda: file.Read(room),
            lambda: file.Seek(1),
            lambda: file.Seek_shared(1),
            file.Get_position,
            file.Get_position_shared,
            lambda: file.Get_byte_offset(1),
            lambda: file.Set_size(1),
        ):
            assert refused(call) == MPI.ERR_UNSUPPORTED_OPERATION
        file.Read_shared(room)
        assert bytes(room) == bytes(range(3))
        assert refused(file.Set_view, 0) == MPI.ERR_ARG
        file.Set_view(MPI.DISPLACEMENT_CURRENT, MPI.SHORT)
        assert file.Get_view()[0] == 3
        file.Read_shared(bytearray(2))
        file.Close()

    simulate(1, main)


# Kinds of access.


@pytest.mark.parametrize("nprocs", [1, 3])
@pytest.mark.parametrize(
    ("how", "where"),
    [
        *[("", where) for where in ("_at", "", "_shared", "_at_all", "_all", "_ordered")],
        *[("I", where) for where in ("_at", "", "_shared", "_at_all", "_all")],
        *[("split", where) for where in ("_at_all", "_all", "_ordered")],
    ],
)
def test_what_was_written_is_read(path, nprocs, where, how):
    def access(file: Any, name: str, me: int, data: Any) -> MPI.Status:
        arguments = (4 * me, data) if "at" in where else (data,)
        status = MPI.Status()
        if how == "I":
            getattr(file, f"I{name.lower()}{where}")(*arguments).Wait(status)
        elif how == "split":
            getattr(file, f"{name}{where}_begin")(*arguments)
            getattr(file, f"{name}{where}_end")(data, status)
        else:
            getattr(file, f"{name}{where}")(*arguments, status)
        return status

    def main(rank: Rank) -> None:
        world = MPI.COMM_WORLD
        me = world.Get_rank()
        file = MPI.File.Open(world, path, RDWR)
        file.Set_view(0, MPI.INT)
        file.Seek(4 * me)
        assert access(file, "Write", me, np.arange(4 * me, 4 * me + 4, dtype="i")).count == 16
        file.Sync()
        world.Barrier()
        file.Seek(4 * me)
        file.Seek_shared(0)
        room = np.zeros(4, "i")
        assert access(file, "Read", me, room).Get_count(MPI.INT) == 4
        if where != "_shared":
            assert room.tolist() == list(range(4 * me, 4 * me + 4))
        file.Close()

    simulate(nprocs, main)
    found = np.frombuffer(path.read_bytes(), "i").tolist()
    assert sorted(found) == list(range(4 * nprocs))


def test_memory_that_is_not_in_one_piece(path):
    def main(rank: Rank) -> list[int]:
        column = MPI.BYTE.Create_vector(3, 1, 4).Commit()
        file = MPI.File.Open(MPI.COMM_SELF, path, RDWR)
        file.Write([bytes(range(12)), 1, column])
        room = bytearray(12)
        file.Read_at(1, [room, 1, column])
        file.Close()
        return list(room)

    assert simulate(1, main) == [[4, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0]]
    assert path.read_bytes() == bytes([0, 4, 8])


def test_split_calls_come_in_pairs(path):
    def main(rank: Rank) -> None:
        file = MPI.File.Open(MPI.COMM_SELF, path, RDWR)
        data = bytearray(3)
        assert refused(file.Read_all_end, data) == MPI.ERR_IO
        file.Write_all_begin(data)
        assert refused(file.Write_all_begin, data) == MPI.ERR_IO
        assert refused(file.Write_at_all_end, data) == MPI.ERR_IO
        assert refused(file.Close) == refused(file.Set_view) == MPI.ERR_IO
        file.Write_all_end(data)
        file.Close()

    simulate(1, main)


def test_data_are_written_when_the_simulated_disk_has_done_it(path):
    def main(rank: Rank) -> None:
        file = MPI.File.Open(MPI.COMM_SELF, path, RDWR)
        request = file.Iwrite_at(0, b"abc")
        assert path.read_bytes() == b""
        request.Wait()
        assert path.read_bytes() == b"abc"
        file.Close()

    simulate(1, main)


def test_requests_of_files_among_others(path):
    def main(rank: Rank) -> None:
        file = MPI.File.Open(MPI.COMM_SELF, path, RDWR)
        requests = [file.Iwrite_at(2 * i, bytes([i, i])) for i in range(4)]
        while not MPI.Request.Testall(requests):
            pass
        file.Close()

    simulate(2, main)
    assert path.read_bytes() == bytes([0, 0, 1, 1, 2, 2, 3, 3])


# Errors.


def test_access_that_the_mode_forbids(path):
    path.write_bytes(bytes(10))

    def main(rank: Rank) -> None:
        file = MPI.File.Open(MPI.COMM_WORLD, path)
        assert refused(file.Write_at, 0, b"a") == MPI.ERR_READ_ONLY
        assert refused(file.Write_all, b"a") == MPI.ERR_READ_ONLY
        assert refused(file.Set_size, 3) == refused(file.Preallocate, 3) == MPI.ERR_READ_ONLY
        file.Close()
        file = MPI.File.Open(MPI.COMM_WORLD, path, MPI.MODE_WRONLY)
        assert refused(file.Read, bytearray(1)) == MPI.ERR_ACCESS
        assert refused(file.Set_size, -1) == MPI.ERR_ARG
        assert refused(file.Set_size, 10 + MPI.COMM_WORLD.rank) == MPI.ERR_NOT_SAME
        assert refused(file.Seek_shared, MPI.COMM_WORLD.rank) == MPI.ERR_NOT_SAME
        assert refused(file.Set_atomicity, MPI.COMM_WORLD.rank) == MPI.ERR_NOT_SAME
        file.Close()

    simulate(2, main)


def test_views_that_are_refused(path):
    def main(rank: Rank) -> None:
        file = MPI.File.Open(MPI.COMM_WORLD, path, RDWR)
        short, integer = MPI.SHORT, MPI.INT
        backward = integer.Create_indexed([1, 1], [4, 0]).Commit()
        negative = integer.Create_indexed([1, 1], [-4, 0]).Commit()
        twofold = integer.Create_indexed([2, 1], [0, 1]).Commit()
        assert refused(file.Set_view, -1) == MPI.ERR_ARG
        assert refused(file.Set_view, MPI.DISPLACEMENT_CURRENT) == MPI.ERR_ARG
        assert refused(file.Set_view, 0, integer, short) == MPI.ERR_ARG
        assert refused(file.Set_view, 0, MPI.DATATYPE_NULL) == MPI.ERR_TYPE
        assert refused(file.Set_view, 0, integer, integer.Create_contiguous(2)) == MPI.ERR_TYPE
        for filetype in (backward, negative, twofold):
            assert refused(file.Set_view, 0, integer, filetype) == MPI.ERR_IO
        assert refused(file.Set_view, 0, integer, integer, "EBCDIC") == MPI.ERR_UNSUPPORTED_DATAREP
        me = MPI.COMM_WORLD.rank
        assert refused(file.Set_view, 0, integer if me else short) == MPI.ERR_NOT_SAME
        # Nothing has changed.
        assert file.Get_view() == (0, MPI.BYTE, MPI.BYTE, "native")
        file.Set_view(0, integer)
        assert refused(file.Write_at, 0, bytes(3)) == MPI.ERR_IO
        file.Close()

    simulate(2, main)


def test_wrong_types_of_arguments(path):
    def main(rank: Rank) -> None:
        for arguments in ((None, path), (MPI.COMM_SELF, 7), (MPI.COMM_SELF, path, "r")):
            with pytest.raises(TypeError):
                MPI.File.Open(*arguments)
        file = MPI.File.Open(MPI.COMM_SELF, path, RDWR)
        for call in (
            lambda: file.Set_view(0, None),
            lambda: file.Read_at("0", bytearray(1)),
            lambda: file.Read(7),
            lambda: file.Set_info(None),
        ):
            with pytest.raises(TypeError):
                call()
        with pytest.raises(BufferError):
            file.Read(b"read-only")
        with pytest.raises(OverflowError):
            file.Seek(1 << 64)
        file.Close()

    simulate(1, main)


def test_the_null_file_has_an_error_handler(path):
    def main(rank: Rank) -> None:
        null = MPI.FILE_NULL
        assert refused(null.Get_size) == refused(null.Close) == MPI.ERR_FILE
        assert null.Get_errhandler() == MPI.ERRORS_RETURN
        seen: list[int] = []
        handler = MPI.File.Create_errhandler(lambda file, code: seen.append(code))
        null.Set_errhandler(handler)
        refused(MPI.File.Open, MPI.COMM_SELF, path.parent / "none")
        file = MPI.File.Open(MPI.COMM_SELF, path, RDWR)
        file.Set_errhandler(handler)
        refused(file.Seek, -1)
        file.Call_errhandler(MPI.ERR_OTHER)
        assert seen == [MPI.ERR_NO_SUCH_FILE, MPI.ERR_ARG, MPI.ERR_OTHER]
        file.Close()
        null.Set_errhandler(MPI.ERRORS_RETURN)
        handler.Free()

    simulate(1, main)


def test_default_handlers_of_files_return(path):
    """With `rc.errors = "default"` communicators abort, but files do not."""
    from types import SimpleNamespace

    from pysmpi.mpi.processes import environment

    def main(rank: Rank) -> None:
        environment.start(SimpleNamespace(errors="default"), {})
        file = MPI.File.Open(MPI.COMM_SELF, path, RDWR)
        assert file.Get_errhandler() == MPI.ERRORS_RETURN
        assert refused(file.Seek, -1) == MPI.ERR_ARG
        assert MPI.COMM_SELF.Get_errhandler() == MPI.ERRORS_ARE_FATAL
        MPI.FILE_NULL.Set_errhandler(MPI.ERRORS_ABORT)
        assert MPI.File.Open(MPI.COMM_SELF, path).Get_errhandler() == MPI.ERRORS_ABORT

    simulate(1, main)


# Data representations.


def test_a_representation_of_the_program(path):
    calls = []

    def write(userbuf, datatype, count, filebuf, position):
        calls.append(("write", datatype == MPI.INT, count, position))
        numbers = np.frombuffer(userbuf, "i")[:count]
        filebuf[:] = b"".join(b"%8d" % number for number in numbers)

    def read(userbuf, datatype, count, filebuf, position):
        calls.append(("read", datatype == MPI.INT, count, position))
        words = bytes(filebuf)
        numbers = [int(words[i : i + 8]) for i in range(0, len(words), 8)]
        np.frombuffer(userbuf, "i")[: len(numbers)] = numbers

    def main(rank: Rank) -> list[int]:
        MPI.Register_datarep("decimal", read, write, lambda datatype: 2 * datatype.extent)
        file = MPI.File.Open(MPI.COMM_SELF, path, RDWR)
        every_other = MPI.INT.Create_resized(0, 8).Commit()
        file.Set_view(0, MPI.INT, MPI.INT, "decimal")
        assert file.Get_view()[3] == "decimal"
        assert file.Get_type_extent(MPI.INT.Create_vector(2, 1, 3).Commit()) == 32
        file.Write([np.array([1, 0, -22, 0, 333, 0], "i"), 3, every_other])
        assert file.Get_byte_offset(2) == 16
        back = np.zeros(3, "i")
        file.Read_at(0, back)
        file.Close()
        return back.tolist()

    assert simulate(1, main) == [[1, -22, 333]]
    assert path.read_bytes() == b"       1     -22     333"
    assert calls == [("write", True, 3, 0), ("read", True, 3, 0)]


def test_conversions_that_fail(path, capsys):
    def fail(*arguments):
        raise ArithmeticError("no")

    def main(rank: Rank) -> None:
        MPI.Register_datarep("broken", fail, None, lambda datatype: datatype.extent)
        MPI.Register_datarep("shapeless", None, None, fail)
        file = MPI.File.Open(MPI.COMM_WORLD, path, RDWR)
        file.Set_view(0, MPI.INT, MPI.INT, "broken")
        file.Write_at(0, np.arange(3, dtype="i"))
        MPI.COMM_WORLD.Barrier()
        assert refused(file.Read_at, 0, np.zeros(3, "i")) == MPI.ERR_CONVERSION
        assert refused(file.Set_view, 0, MPI.INT, MPI.INT, "shapeless") == MPI.ERR_CONVERSION
        file.Close()

    simulate(2, main)
    assert "ArithmeticError: no" in capsys.readouterr().err


def test_names_of_representations():
    def main(rank: Rank) -> None:
        def extent(datatype):
            return datatype.extent

        MPI.Register_datarep("mine", None, None, extent)
        assert refused(MPI.Register_datarep, "mine", None, None, extent) == MPI.ERR_DUP_DATAREP
        assert refused(MPI.Register_datarep, "native", None, None, extent) == MPI.ERR_DUP_DATAREP
        assert refused(MPI.Register_datarep, "n" * 200, None, None, extent) == MPI.ERR_ARG

    simulate(2, main)
