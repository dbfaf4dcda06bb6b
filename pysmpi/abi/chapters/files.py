"""Files (MPI 4.1, chapter 14)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pysmpi.abi.callbacks import Scratch
from pysmpi.abi.entry import ENTRIES, entry
from pysmpi.abi.process import here
from pysmpi.abi.values import (
    buffer,
    give,
    give_request,
    give_status,
    give_text,
    number_of,
    read_integers,
    status_argument,
    text,
    write_integer,
)
from pysmpi.mpi.base.exporting import address_of

if TYPE_CHECKING:
    from mpi4py import MPI
else:
    from pysmpi.mpi import MPI

DATAREP = 128  # bytes of the name of a representation


@entry
def File_open(comm: MPI.Intracomm, filename: int, amode: int, info: MPI.Info, fh: int) -> None:
    write_integer(fh, number_of(MPI.File.Open(comm, text(filename), amode, info)), 8)


@entry
def File_close(fh: int) -> None:
    number = read_integers(fh, 1, 8)[0]
    here().objects.get(number, MPI.FILE_NULL).Close()
    here().objects.pop(number, None)
    write_integer(fh, 0, 8)


@entry
def File_delete(filename: int, info: MPI.Info) -> None:
    MPI.File.Delete(text(filename), info)


@entry
def File_set_size(fh: MPI.File, size: int) -> None:
    fh.Set_size(size)


@entry
def File_preallocate(fh: MPI.File, size: int) -> None:
    fh.Preallocate(size)


@entry
def File_get_size(fh: MPI.File, size: int) -> None:
    write_integer(size, fh.Get_size(), 8)


@entry
def File_get_group(fh: MPI.File, group: int) -> None:
    give(group, fh.Get_group())


@entry
def File_get_amode(fh: MPI.File, amode: int) -> None:
    write_integer(amode, fh.Get_amode())


@entry
def File_set_info(fh: MPI.File, info: MPI.Info) -> None:
    fh.Set_info(info)


@entry
def File_get_info(fh: MPI.File, info_used: int) -> None:
    give(info_used, fh.Get_info())


@entry
def File_set_view(
    fh: MPI.File, disp: int, etype: MPI.Datatype, filetype: MPI.Datatype, datarep: int,
    info: MPI.Info,
) -> None:  # fmt: skip
    fh.Set_view(disp, etype, filetype, text(datarep), info)


@entry
def File_get_view(fh: MPI.File, disp: int, etype: int, filetype: int, datarep: int) -> None:
    start, element, kind, name = fh.Get_view()
    write_integer(disp, start, 8)
    give(etype, element)
    give(filetype, kind)
    give_text(datarep, 0, name, DATAREP)


@entry
def File_get_type_extent(fh: MPI.File, datatype: MPI.Datatype, extent: int) -> None:
    write_integer(extent, fh.Get_type_extent(datatype), 8)


@entry
def File_get_byte_offset(fh: MPI.File, offset: int, disp: int) -> None:
    write_integer(disp, fh.Get_byte_offset(offset), 8)


@entry
def File_seek(fh: MPI.File, offset: int, whence: int) -> None:
    fh.Seek(offset, whence)


@entry
def File_get_position(fh: MPI.File, offset: int) -> None:
    write_integer(offset, fh.Get_position(), 8)


@entry
def File_seek_shared(fh: MPI.File, offset: int, whence: int) -> None:
    fh.Seek_shared(offset, whence)


@entry
def File_get_position_shared(fh: MPI.File, offset: int) -> None:
    write_integer(offset, fh.Get_position_shared(), 8)


@entry
def File_set_atomicity(fh: MPI.File, flag: int) -> None:
    fh.Set_atomicity(bool(flag))


@entry
def File_get_atomicity(fh: MPI.File, flag: int) -> None:
    write_integer(flag, fh.Get_atomicity())


@entry
def File_sync(fh: MPI.File) -> None:
    fh.Sync()


# Reading and writing: the names of methods tell whether they have an offset and what they return.


def _access(name: str) -> None:
    method = getattr(MPI.File, name[0].upper() + name[1:])
    at = "_at" in name

    def plain(fh: MPI.File, *values: Any) -> None:
        offset = values[:1] if at else ()
        address, count, datatype, status = values[at:]
        result = status_argument(status)
        method(fh, *offset, buffer(address, count, datatype), result)
        give_status(status, result)

    def later(fh: MPI.File, *values: Any) -> None:
        offset = values[:1] if at else ()
        address, count, datatype, request = values[at:]
        give_request(request, method(fh, *offset, buffer(address, count, datatype)))

    def begin(fh: MPI.File, *values: Any) -> None:
        offset = values[:1] if at else ()
        address, count, datatype = values[at:]
        message = buffer(address, count, datatype)
        _begun[id(fh)] = message
        method(fh, *offset, message)

    def end(fh: MPI.File, address: int, status: int) -> None:
        result = status_argument(status)
        method(fh, _begun.pop(id(fh), [MPI.BOTTOM, 0, MPI.BYTE]), result)
        give_status(status, result)

    form: Any = plain
    if name.endswith("_begin"):
        form = begin
    elif name.endswith("_end"):
        form = end
    elif name.startswith("i"):
        form = later
    ENTRIES[f"File_{name}"] = form


_begun: dict[int, Any] = {}  # messages of split collectives, by the address of the file's handle

for _name in (
    "read_at", "read_at_all", "write_at", "write_at_all", "iread_at", "iread_at_all", "iwrite_at",
    "iwrite_at_all", "read", "read_all", "write", "write_all", "iread", "iread_all", "iwrite",
    "iwrite_all", "read_shared", "write_shared", "iread_shared", "iwrite_shared", "read_ordered",
    "write_ordered", "read_at_all_begin", "read_at_all_end", "write_at_all_begin",
    "write_at_all_end", "read_all_begin", "read_all_end", "write_all_begin", "write_all_end",
    "read_ordered_begin", "read_ordered_end", "write_ordered_begin", "write_ordered_end",
):  # fmt: skip
    _access(_name)


def _conversion(function: int, state: int, wide: bool) -> Any:
    """A function of the program that converts data of a representation; None for none."""
    if not function:
        return None

    def convert(user: Any, datatype: MPI.Datatype, count: int, data: Any, position: int) -> None:
        code = here().call(
            function, address_of(memoryview(user)), number_of(datatype), count,
            address_of(memoryview(data)), position, state,
        )  # fmt: skip
        if code & 0xFFFFFFFF:
            raise MPI.Exception(code & 0x7FFFFFFF)

    return convert


def _register(wide: bool) -> Any:
    def register(datarep: int, read: int, write: int, extent: int, state: int) -> None:
        def extent_of(datatype: MPI.Datatype) -> int:
            result = Scratch(0, size=8)
            code = here().call(extent, number_of(datatype), result.address(), state)
            if code & 0xFFFFFFFF:
                raise MPI.Exception(code & 0x7FFFFFFF)
            return result[0]

        MPI.Register_datarep(
            text(datarep), _conversion(read, state, wide), _conversion(write, state, wide),
            extent_of,
        )  # fmt: skip

    return register


ENTRIES["Register_datarep"] = _register(False)
ENTRIES["Register_datarep_c"] = _register(True)
