"""Info objects and memory (MPI 4.1, section 9.2 and chapter 10)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pysmpi.abi.entry import entry
from pysmpi.abi.values import (
    free,
    give,
    give_text,
    read_integers,
    text,
    write_integer,
)

if TYPE_CHECKING:
    from mpi4py import MPI
else:
    from pysmpi.mpi import MPI

INFO_KEY = 256  # bytes of a key with its end


@entry
def Info_create(info: int) -> None:
    give(info, MPI.Info.Create())


@entry
def Info_create_env(argc: int, argv: int, info: int) -> None:
    words = [text(address) for address in read_integers(argv, argc, 8)] if argv else []
    give(info, MPI.Info.Create_env(words))


@entry
def Info_dup(info: MPI.Info, newinfo: int) -> None:
    give(newinfo, info.Dup())


@entry
def Info_free(info: int) -> None:
    free(info, "I", MPI.INFO_NULL)


@entry
def Info_set(info: MPI.Info, key: int, value: int) -> None:
    info.Set(text(key), text(value))


@entry
def Info_delete(info: MPI.Info, key: int) -> None:
    info.Delete(text(key))


@entry
def Info_get(info: MPI.Info, key: int, valuelen: int, value: int, flag: int) -> None:
    result = info.Get(text(key))
    write_integer(flag, result is not None)
    if result is not None:
        give_text(value, 0, result, valuelen + 1)


@entry
def Info_get_string(info: MPI.Info, key: int, buflen: int, value: int, flag: int) -> None:
    result = info.Get(text(key))
    write_integer(flag, result is not None)
    if result is not None:
        room = read_integers(buflen, 1)[0]
        if room > 0:
            give_text(value, 0, result, room)
        write_integer(buflen, len(result.encode()) + 1)


@entry
def Info_get_valuelen(info: MPI.Info, key: int, valuelen: int, flag: int) -> None:
    result = info.Get(text(key))
    write_integer(flag, result is not None)
    if result is not None:
        write_integer(valuelen, len(result.encode()))


@entry
def Info_get_nkeys(info: MPI.Info, nkeys: int) -> None:
    write_integer(nkeys, info.Get_nkeys())


@entry
def Info_get_nthkey(info: MPI.Info, n: int, key: int) -> None:
    give_text(key, 0, info.Get_nthkey(n), INFO_KEY)


@entry
def Alloc_mem(size: int, info: MPI.Info, baseptr: int) -> None:
    write_integer(baseptr, MPI.Alloc_mem(size, info).address, 8)


@entry
def Free_mem(base: int) -> None:
    MPI.Free_mem(MPI.buffer.fromaddress(base, 1))
