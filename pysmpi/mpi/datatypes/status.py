"""Status: information about a received message, or a completed operation."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from copyreg import __newobj__  # type: ignore[attr-defined]
from typing import Any, Self, overload

from pysmpi.mpi.base.constants import (
    ANY_SOURCE,
    ANY_TAG,
    ERR_ARG,
    ERR_COUNT,
    F_ERROR,
    F_SOURCE,
    F_STATUS_SIZE,
    F_TAG,
    SUCCESS,
    UNDEFINED,
)
from pysmpi.mpi.base.exceptions import cint, fail, sequence, truth, whole
from pysmpi.mpi.base.handles import CForm, form_of_program, structures, wrong_type
from pysmpi.mpi.calls import mpi
from pysmpi.mpi.datatypes.datatypes import BYTE, Datatype
from pysmpi.mpi.datatypes.layouts import Signature, members
from pysmpi.mpi.internal_errors import touches_program

__all__ = ["Status"]

# The fields are C ints in MPICH's order: the low half of the byte count, its high half shifted
# by one with the cancelled flag below it, source, tag, error.
_EMPTY = array("i", [0, 0, ANY_SOURCE, ANY_TAG, SUCCESS])


def check_status(status: object, argument: str = "status") -> None:
    """Refuse an argument that is not a status, before the call has any effect."""
    if not isinstance(status, Status):
        raise wrong_type(argument, Status, status)


class Status:
    """Status object."""

    # As large as mpi4py's in any interface: that for C compares the sizes.
    __slots__ = ("_fields", "_room_1", "_room_2", "_room_3", "_room_4", "__weakref__")

    _fields: array[int] | SharedFields

    def __new__(cls, status: Status | None = None) -> Self:
        self = object.__new__(cls)
        if status is None:
            self._fields = _EMPTY[:]
        elif isinstance(status, Status):
            self._fields = status._fields[:]
        else:
            raise wrong_type("status", Status, status)
        return self

    # Called by requests and receives.

    def _fill(self, source: int, tag: int, nbytes: int, cancelled: bool = False) -> None:
        """Set everything but the error, which is set by calls that complete many requests."""
        fields = self._fields
        if nbytes < 0x80000000:
            fields[0] = nbytes
            fields[1] = cancelled
        else:
            self._set_bytes(nbytes, cancelled)
        fields[2] = source
        fields[3] = tag

    def _set_bytes(self, nbytes: int, cancelled: bool) -> None:
        low = nbytes & 0xFFFFFFFF
        self._fields[0] = low - 0x100000000 if low > 0x7FFFFFFF else low
        high = nbytes >> 32 << 1 | cancelled
        self._fields[1] = high - 0x100000000 if high > 0x7FFFFFFF else high

    def _bytes(self) -> int:
        return (self._fields[1] >> 1 & 0x7FFFFFFF) << 32 | self._fields[0] & 0xFFFFFFFF

    def _address(self) -> int:
        form = form_of_program()
        if form.status != CForm.status and isinstance(self._fields, array):
            self._fields = SharedFields(self._fields, form)
        return self._fields.buffer_info()[0]

    # Public methods.

    def __eq__(self, other: object) -> bool:
        """Return self==value."""
        if not isinstance(other, Status):
            return NotImplemented
        return self._fields == other._fields

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
        """Reduce to the fields."""
        return (__newobj__, (type(self),), self.__getstate__())

    def __getstate__(self) -> dict[str, int]:
        """Return the fields."""
        return {
            "source": self.Get_source(),
            "tag": self.Get_tag(),
            "error": self.Get_error(),
            "count": self._bytes(),
            "cancelled": self.Is_cancelled(),
        }

    def __setstate__(self, state: dict[str, int]) -> None:
        """Set the fields."""
        self.Set_source(state["source"])
        self.Set_tag(state["tag"])
        self.Set_error(state["error"])
        self._set_bytes(state.get("count", 0), bool(state.get("cancelled", False)))

    @mpi.local("3.2.5")
    def Get_source(self) -> int:
        """Get message source."""
        return self._fields[F_SOURCE]

    @mpi.local("13.3")
    def Set_source(self, source: int) -> None:
        """Set message source."""
        self._fields[F_SOURCE] = cint(source)

    @property
    def source(self) -> int:
        """Message source."""
        return self.Get_source()

    @source.setter
    def source(self, value: int) -> None:
        self.Set_source(value)

    @mpi.local("3.2.5")
    def Get_tag(self) -> int:
        """Get message tag."""
        return self._fields[F_TAG]

    @mpi.local("13.3")
    def Set_tag(self, tag: int) -> None:
        """Set message tag."""
        self._fields[F_TAG] = cint(tag)

    @property
    def tag(self) -> int:
        """Message tag."""
        return self.Get_tag()

    @tag.setter
    def tag(self, value: int) -> None:
        self.Set_tag(value)

    @mpi.local("3.2.5")
    def Get_error(self) -> int:
        """Get message error."""
        return self._fields[F_ERROR]

    @mpi.local("13.3")
    def Set_error(self, error: int) -> None:
        """Set message error."""
        self._fields[F_ERROR] = cint(error)

    @property
    def error(self) -> int:
        """Message error."""
        return self.Get_error()

    @error.setter
    def error(self, value: int) -> None:
        self.Set_error(value)

    @mpi.local("3.2.5")
    def Get_count(self, datatype: Datatype = BYTE) -> int:
        """Get the number of *top level* elements."""
        size = _type(datatype).Get_size()
        nbytes = self._bytes()
        if size == 0:
            return 0 if nbytes == 0 else UNDEFINED
        return UNDEFINED if nbytes % size else nbytes // size

    @property
    def count(self) -> int:
        """Byte count."""
        return self.Get_count(BYTE)

    @count.setter
    def count(self, value: int) -> None:
        self.Set_elements(BYTE, value)

    @mpi.local("5.1.11")
    def Get_elements(self, datatype: Datatype) -> int:
        """Get the number of basic elements in a datatype."""
        elements, rest = _elements(_type(datatype)._live().layout.signature, self._bytes())
        return UNDEFINED if rest else elements

    @mpi.local("13.3")
    def Set_elements(self, datatype: Datatype, count: int) -> None:
        """Set the number of elements in a status.

        .. note:: This method should be only used when implementing
           query callback functions for generalized requests.
        """
        signature, count = _type(datatype)._live().layout.signature, whole(count)
        if count < 0:
            fail(ERR_COUNT, f"count is {count}")
        nbytes = _bytes_of(signature, count)
        if nbytes > 0x7FFFFFFFFFFFFFFF:
            fail(ERR_ARG, f"{count} elements of {nbytes} bytes are too many for a status")
        self._set_bytes(nbytes, self.Is_cancelled())

    @mpi.local("3.8.4")
    def Is_cancelled(self) -> bool:
        """Test to see if a request was cancelled."""
        return bool(self._fields[1] & 1)

    @mpi.local("13.3")
    def Set_cancelled(self, flag: bool) -> None:
        """Set the cancelled state associated with a status.

        .. note:: This method should be used only when implementing
           query callback functions for generalized requests.
        """
        self._fields[1] = self._fields[1] & ~1 | truth(flag)

    @property
    def cancelled(self) -> bool:
        """Cancelled state."""
        return self.Is_cancelled()

    @cancelled.setter
    def cancelled(self, value: bool) -> None:
        self.Set_cancelled(value)

    @mpi.local()
    def tomemory(self) -> memoryview:
        """Return status memory view."""
        self._address()  # in the form of the program's C code
        fields = self._fields
        return fields.memory() if isinstance(fields, SharedFields) else memoryview(fields)

    @mpi.local("19.3.5")
    def py2f(self) -> list[int]:
        """Translate object to Fortran status."""
        return self._fields.tolist()

    @classmethod
    @mpi.local("19.3.5")
    @touches_program
    def f2py(cls, arg: list[int]) -> Self:
        """Translate Fortran status to object."""
        status = cls()
        numbers = sequence(arg)
        for field in range(F_STATUS_SIZE):
            status._fields[field] = cint(numbers[field])
        return status


def _type(datatype: Datatype) -> Datatype:
    if not isinstance(datatype, Datatype):
        raise wrong_type("datatype", Datatype, datatype)
    return datatype


def _elements(signature: Signature, nbytes: int) -> tuple[int, int]:
    """The number of basic elements in `nbytes` of a repeated signature, and the remaining bytes.

    The remaining bytes are those of an incomplete element.
    """
    size = _size(signature)
    if size == 0 or nbytes == 0:
        return 0, nbytes
    whole, rest = divmod(nbytes, size)
    found = whole * members(signature) if whole else 0
    for count, what in signature:
        if not rest:
            break
        taken = min(rest, _size(((count, what),)))
        if isinstance(what, tuple):
            elements, left = _elements(what, taken)
        else:
            elements, left = divmod(taken, what.layout.size)
        found += elements
        rest -= taken
        if left:
            return found, left
    return found, rest


def _bytes_of(signature: Signature, elements: int) -> int:
    """The bytes of basic elements of a repeated signature, counted as by `_elements`."""
    each = members(signature)
    if each == 0:
        return 0
    whole, rest = divmod(elements, each)
    found = whole * _size(signature)
    for count, what in signature:
        if not rest:
            break
        if isinstance(what, tuple):
            taken = min(rest, count * members(what))
            found += _bytes_of(what, taken)
        else:
            taken = min(rest, count)
            found += taken * what.layout.size
        rest -= taken
    return found


def _size(signature: Signature) -> int:
    """The bytes of data in a signature."""
    return sum(
        count * (_size(what) if isinstance(what, tuple) else what.layout.size)
        for count, what in signature
    )


class SharedFields:
    """The fields of a status in the memory that C code of another interface reads and writes.

    They behave as the array of a status that no such code knows.
    """

    __slots__ = ("_cell", "_form")

    def __init__(self, fields: Sequence[int], form: CForm) -> None:
        self._form = form
        self._cell = array("i", to_form(fields, form))

    def _read(self) -> array[int]:
        return of_form(self._cell, self._form)

    def __len__(self) -> int:
        return F_STATUS_SIZE

    @overload
    def __getitem__(self, place: int) -> int: ...

    @overload
    def __getitem__(self, place: slice) -> array[int]: ...

    def __getitem__(self, place: int | slice) -> int | array[int]:
        return self._read()[place]

    def __iter__(self) -> Iterator[int]:
        return iter(self._read())

    def __setitem__(self, place: int, value: int) -> None:
        fields = self._read()
        fields[place] = value
        self._cell[:] = array("i", to_form(fields, self._form))

    def __eq__(self, other: object) -> bool:
        return self._read() == (other._read() if isinstance(other, SharedFields) else other)

    __hash__ = None  # type: ignore[assignment]

    def tolist(self) -> list[int]:
        """The fields."""
        return self._read().tolist()

    def buffer_info(self) -> tuple[int, int]:
        """The address of the memory that C code knows, and its integers."""
        return self._cell.buffer_info()

    def memory(self) -> memoryview:
        """That memory."""
        return memoryview(self._cell)


def to_form(fields: Sequence[int], form: CForm) -> list[int]:
    """The integers of a status in a form."""
    parts = {"more": fields[1] >> 1 & 0x7FFFFFFF, "cancelled": fields[1] & 1, "unused": 0}
    return [parts[part] if isinstance(part, str) else fields[part] for part in form.status]


def of_form(integers: Sequence[int], form: CForm) -> array[int]:
    """The fields of a status whose integers in a form are given."""
    fields, parts = array("i", bytes(4 * F_STATUS_SIZE)), {"more": 0, "cancelled": 0}
    for part, value in zip(form.status, integers, strict=True):
        if isinstance(part, str):
            parts[part] = value
        else:
            fields[part] = value
    if "more" in form.status:
        high = (parts["more"] & 0x7FFFFFFF) << 1 | (parts["cancelled"] != 0)
        fields[1] = high - (high >> 31 << 32)
    return fields


structures[Status] = lambda: 4 * len(form_of_program().status)
