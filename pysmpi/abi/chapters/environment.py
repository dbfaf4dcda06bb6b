"""Initialisation, inquiry and clocks (MPI 4.1, chapters 9 and 11)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pysmpi.abi.entry import entry
from pysmpi.abi.values import give, give_text, write_integer
from pysmpi.mpi.base.constants import ERR_ABI
from pysmpi.mpi.base.exceptions import fail

if TYPE_CHECKING:
    from mpi4py import MPI
else:
    from pysmpi.mpi import MPI

LIBRARY_VERSION, PROCESSOR_NAME = 8192, 128  # bytes of the results


@entry
def Init(argc: int, argv: int) -> None:
    MPI.Init()


@entry
def Init_thread(argc: int, argv: int, required: int, provided: int) -> None:
    # The main thread of a rank is the only one that calls MPI.
    level = min(required, MPI.THREAD_FUNNELED)
    write_integer(provided, MPI.Init_thread(level))


@entry
def Finalize() -> None:
    MPI.Finalize()


@entry
def Initialized(flag: int) -> None:
    write_integer(flag, MPI.Is_initialized())


@entry
def Finalized(flag: int) -> None:
    write_integer(flag, MPI.Is_finalized())


@entry
def Query_thread(provided: int) -> None:
    write_integer(provided, min(MPI.Query_thread(), MPI.THREAD_FUNNELED))


@entry
def Is_thread_main(flag: int) -> None:
    write_integer(flag, MPI.Is_thread_main())


@entry
def Abort(comm: MPI.Comm, errorcode: int) -> None:
    comm.Abort(errorcode)


@entry
def Get_version(version: int, subversion: int) -> None:
    major, minor = MPI.Get_version()
    write_integer(version, major)
    write_integer(subversion, minor)


@entry
def Get_library_version(version: int, resultlen: int) -> None:
    give_text(version, resultlen, MPI.Get_library_version(), LIBRARY_VERSION)


@entry
def Get_processor_name(name: int, resultlen: int) -> None:
    give_text(name, resultlen, MPI.Get_processor_name(), PROCESSOR_NAME)


@entry
def Get_hw_resource_info(hw_info: int) -> None:
    give(hw_info, MPI.Get_hw_resource_info())


@entry
def Abi_get_version(abi_major: int, abi_minor: int) -> None:
    major, minor = MPI.Get_abi_version()
    write_integer(abi_major, major)
    write_integer(abi_minor, minor)


@entry
def Abi_get_info(info: int) -> None:
    give(info, MPI.Get_abi_info())


@entry
def Abi_get_fortran_info(info: int) -> None:
    give(info, MPI.Get_abi_fortran_info())


@entry
def Wtime() -> float:
    return MPI.Wtime()


@entry
def Wtick() -> float:
    return MPI.Wtick()


@entry
def Pcontrol(level: int) -> None:
    MPI.Pcontrol(level)


@entry
def Abi_set_fortran_info(info: MPI.Info) -> None:
    fail(ERR_ABI, "the representations of Fortran are set already")


@entry
def Abi_get_fortran_booleans(
    logical_size: int, logical_true: int, logical_false: int, is_set: int
) -> None:
    write_integer(is_set, logical_size in (4, 8))
    if logical_size in (4, 8):
        write_integer(logical_true, 1, logical_size)
        write_integer(logical_false, 0, logical_size)


@entry
def Abi_set_fortran_booleans(logical_size: int, logical_true: int, logical_false: int) -> None:
    fail(ERR_ABI, "the representations of Fortran are set already")
