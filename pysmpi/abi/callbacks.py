"""Functions of compiled programs that MPI calls."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pysmpi.abi.process import here
from pysmpi.abi.values import number_of
from pysmpi.mpi.base.exporting import address_of

if TYPE_CHECKING:
    from mpi4py import MPI
else:
    from pysmpi.mpi import MPI


class Scratch:
    """Integers in memory for the time of a call."""

    def __init__(self, *values: int, size: int = 4) -> None:
        kind: Any = ctypes.c_int32 if size == 4 else ctypes.c_int64
        self.values = (kind * len(values))()
        for place, value in enumerate(values):
            self.values[place] = value - (1 << 32) if size == 4 and value >= 1 << 31 else value
        self.size = size

    def address(self, place: int = 0) -> int:
        return ctypes.addressof(self.values) + place * self.size

    def __getitem__(self, place: int) -> int:
        return int(self.values[place])


def _check(code: int) -> None:
    if code:
        raise MPI.Exception(code)


def copy_function(function: int, state: int) -> Any:
    """The copy callback of a keyval: a function of the program, or NULL_COPY_FN."""
    if not function:
        return None

    def copy(subject: Any, keyval: int, value: int) -> Any:
        result, flag = Scratch(0, size=8), Scratch(0)
        _check(
            _int(
                here().call(
                    function,
                    number_of(subject),
                    keyval,
                    state,
                    value,
                    result.address(),
                    flag.address(),
                )  # fmt: skip
            )
        )
        return result[0] if flag[0] else NotImplemented

    return copy


def delete_function(function: int, state: int) -> Any:
    """The delete callback of a keyval, or NULL_DELETE_FN."""
    if not function:
        return None

    def delete(subject: Any, keyval: int, value: int) -> None:
        _check(_int(here().call(function, number_of(subject), keyval, value, state)))

    return delete


def _int(value: int) -> int:
    return (value & 0xFFFFFFFF ^ 0x80000000) - 0x80000000


# Predefined attributes whose values in C are addresses of integers, and the bytes of these.
_POINTERS = {
    0x64400003: 4,  # HOST
    MPI.TAG_UB: 4, MPI.IO: 4, MPI.WTIME_IS_GLOBAL: 4, MPI.UNIVERSE_SIZE: 4, MPI.APPNUM: 4,
    MPI.LASTUSEDCODE: 4, MPI.WIN_SIZE: 8, MPI.WIN_DISP_UNIT: 4,
    MPI.WIN_CREATE_FLAVOR: 4, MPI.WIN_MODEL: 4,
}  # fmt: skip
_kept: dict[tuple[int, int], Scratch] = {}


def value_address(keyval: int, value: Any) -> int:
    """The value of an attribute as C gets it."""
    size = _POINTERS.get(keyval)
    if size is None:
        return int(value)
    kept = _kept.get((size, int(value)))
    if kept is None:
        kept = _kept[size, int(value)] = Scratch(int(value), size=size)
    return kept.address()


def reduction(function: int, wide: bool) -> Callable[[Any, Any, MPI.Datatype], None]:
    """A reduction operator: a function of the program."""

    def reduce(into: Any, out: Any, datatype: MPI.Datatype) -> None:
        extent = datatype.Get_extent()[1]
        count = Scratch(len(out) // extent if extent else 0, size=8 if wide else 4)
        handle = Scratch(number_of(datatype))
        here().call(
            function, address_of(memoryview(into)), address_of(memoryview(out)), count.address(),
            handle.address(),
        )  # fmt: skip

    return reduce


def error_function(function: int) -> Callable[[Any, int], None]:
    """An error handler: a function of the program."""

    def handle(subject: Any, code: int) -> None:
        place = Scratch(number_of(subject))
        error = Scratch(code)
        process = here()
        process.call(function, place.address(), error.address())
        process.handled = True

    return handle
