"""Statuses (MPI 4.1, sections 3.2.5 and 13.3), and the integers of handles for Fortran."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pysmpi.abi.entry import ENTRIES, entry
from pysmpi.abi.values import (
    IGNORED,
    number_of,
    read_integers,
    read_status,
    write_integer,
    write_integers,
    write_status,
)

if TYPE_CHECKING:
    from mpi4py import MPI
else:
    from pysmpi.mpi import MPI


@entry
def Get_count(status: int, datatype: MPI.Datatype, count: int, width: int) -> None:
    _counted(count, read_status(status).Get_count(datatype), width)


@entry
def Get_elements(status: int, datatype: MPI.Datatype, count: int, width: int) -> None:
    _counted(count, read_status(status).Get_elements(datatype), width)


@entry
def Get_elements_x(status: int, datatype: MPI.Datatype, count: int) -> None:
    _counted(count, read_status(status).Get_elements(datatype), 8)


def _counted(address: int, count: int, width: int) -> None:
    write_integer(address, count if width == 8 or count < 1 << 31 else MPI.UNDEFINED, width)


@entry
def Test_cancelled(status: int, flag: int) -> None:
    write_integer(flag, read_status(status).Is_cancelled())


def _set(change: Callable[[Any], object], address: int) -> None:
    if address != IGNORED:
        status = read_status(address)
        change(status)
        write_status(address, status)


@entry
def Status_set_cancelled(status: int, flag: int) -> None:
    _set(lambda made: made.Set_cancelled(bool(flag)), status)


@entry
def Status_set_elements(status: int, datatype: MPI.Datatype, count: int) -> None:
    _set(lambda made: made.Set_elements(datatype, count), status)


@entry
def Status_set_elements_x(status: int, datatype: MPI.Datatype, count: int) -> None:
    _set(lambda made: made.Set_elements(datatype, count), status)


def _field(name: str, place: int) -> None:
    def get(status: int, value: int) -> None:
        write_integer(value, read_integers(status, 5)[place])

    def put(status: int, value: int) -> None:
        write_integer(status + 4 * place, value)

    ENTRIES[f"Status_get_{name}"] = get
    ENTRIES[f"Status_set_{name}"] = put


_field("source", 2)
_field("tag", 3)
_field("error", 4)


def _copy_status(source: int, target: int) -> None:
    write_integers(target, read_integers(source, 5))


for _name in ("c2f", "f2c", "c2f08", "f082c", "f082f", "f2f08"):
    ENTRIES[f"Status_{_name}"] = _copy_status


# Integers of handles for Fortran, which are those of C here.


def _same(prefix: str, letter: str) -> None:
    def number(handle: Any) -> int:
        return number_of(handle)

    def same(value: int) -> int:
        return value

    for name in ("c2f", "toint"):
        ENTRIES[f"{prefix}_{name}"] = number
    for name in ("f2c", "fromint"):
        ENTRIES[f"{prefix}_{name}"] = same


for _prefix, _letter in (
    ("Comm", "C"), ("Type", "D"), ("Request", "R"), ("Message", "M"), ("Op", "O"), ("Group", "G"),
    ("Info", "I"), ("Errhandler", "E"), ("Session", "S"), ("Win", "W"), ("File", "F"),
):  # fmt: skip
    _same(_prefix, _letter)
