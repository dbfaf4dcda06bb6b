"""Memory: `MPI.buffer`, `Alloc_mem`, addresses, and the special buffer arguments.

Addresses are real addresses of this process, so that absolute displacements from `BOTTOM` and
`buffer.fromaddress` work as they do under a C library, and are as unchecked.
"""

from __future__ import annotations

from operator import index
from typing import TYPE_CHECKING, Any

import numpy as np

from pysmpi.mpi.base import constants as c
from pysmpi.mpi.base.exceptions import fail, integer, truth, whole
from pysmpi.mpi.base.exported import ACCESSIBLE, at_address
from pysmpi.mpi.base.exporting import Exporter, acquire, address_of
from pysmpi.mpi.base.info import INFO_NULL, Info, check_info
from pysmpi.mpi.base.ranks import Universe, current
from pysmpi.mpi.base.state import StateSlot
from pysmpi.mpi.calls import mpi
from pysmpi.mpi.internal_errors import touches_program

if TYPE_CHECKING:
    from mpi4py.typing import Buffer

__all__ = [
    "buffer",
    "memory",
    "BottomType",
    "InPlaceType",
    "BufferAutomaticType",
    "BOTTOM",
    "IN_PLACE",
    "BUFFER_AUTOMATIC",
    "Alloc_mem",
    "Free_mem",
    "Get_address",
    "Aint_add",
    "Aint_diff",
]


class buffer(Exporter):
    """Buffer."""

    __slots__ = ("_address", "_exporter", "_kind", "_memory", "_owner", "_source")

    # _memory: flat view of the bytes; _exporter: an array of the same, for others to view: a
    # memoryview that is viewed through another object does not survive the garbage collector
    # when both are garbage; _source: the value of `obj`; _owner: an object that has to live as long
    # as the buffer; _address: None until its first use.
    _address: int | None
    _exporter: np.ndarray
    _kind: int
    _owner: object
    _source: object

    def __new__(cls, buf: object = ..., /) -> buffer:
        """Make a buffer that shows the memory of an object."""
        if buf is ...:
            return _make(memoryview(bytearray()), None, address=0)
        exported = acquire(buf)
        return _make(exported.memory, buf, owner=exported.owner, kind=exported.kind)

    def __init_subclass__(cls) -> None:
        raise TypeError("type 'mpi4py.MPI.buffer' is not an acceptable base type")

    @staticmethod
    @mpi.local()
    def allocate(nbytes: int, clear: bool = False) -> buffer:
        """Buffer allocation."""
        size = whole(nbytes)
        truth(clear)
        if size < 0:
            raise ValueError(f"nbytes: expecting non-negative size, got {size}")
        # Always cleared: reads of fresh memory then repeat from run to run.
        memory = np.zeros(size, np.uint8)
        return _make(memory.data, memory, address=address_of(memory))

    @staticmethod
    @mpi.local()
    def frombuffer(obj: Buffer, readonly: bool = False) -> buffer:
        """Buffer from buffer-like object."""
        fixed = truth(readonly)
        exported = acquire(obj, writable=not fixed)
        memory = exported.memory.toreadonly() if fixed else exported.memory
        return _make(memory, obj, owner=exported.owner, kind=exported.kind)

    @staticmethod
    @mpi.local()
    def fromaddress(address: int, nbytes: int, readonly: bool = False) -> buffer:
        """Buffer from address and size in bytes."""
        address, size = integer(address), whole(nbytes)
        if size < 0:
            raise ValueError(f"nbytes: expecting non-negative buffer length, got {size}")
        if size > 0 and address == 0:
            raise ValueError("address: expecting non-NULL address")
        return _make(at_address(address, size, truth(readonly)), None, address=address)

    @property
    def address(self) -> int:
        """Buffer address."""
        if self._address is None:
            self._address = address_of(self._memory)
        return self._address

    @property
    def obj(self) -> object | None:
        """Object exposing buffer."""
        return self._source

    @property
    def nbytes(self) -> int:
        """Buffer size (in bytes)."""
        return self._memory.nbytes

    @property
    def readonly(self) -> bool:
        """Buffer is read-only."""
        return self._memory.readonly

    @property
    def format(self) -> str:
        """Format of each element."""
        return "B"

    @property
    def itemsize(self) -> int:
        """Size (in bytes) of each element."""
        return 1

    @mpi.local()
    @touches_program
    def cast(self, format: str, shape: list[int] | tuple[int, ...] = ...) -> memoryview:  # type: ignore[assignment]
        """Cast to a `memoryview` with new format or shape."""
        self._check_accessible()
        view = memoryview(self._memory)
        return view.cast(format) if shape is ... else view.cast(format, shape)  # type: ignore[call-overload, comparison-overlap, no-any-return]

    @mpi.local()
    def tobytes(self, order: str | None = None) -> bytes:
        """Return the data in the buffer as a byte string."""
        self._check_accessible()
        return self._memory.tobytes()

    @mpi.local()
    def toreadonly(self) -> buffer:
        """Return a readonly version of the buffer object."""
        source = self if self._source is None else self._source
        return _make(
            self._memory.toreadonly(),
            source,
            owner=self._owner,
            kind=self._kind,
            address=self._address,
        )

    @mpi.local()
    def release(self) -> None:
        """Release the underlying buffer exposed by the buffer object."""
        self._memory = memoryview(bytearray())
        self._exporter = np.frombuffer(self._memory, np.uint8)
        self._address = self._kind = 0
        self._owner = self._source = None

    def _check_accessible(self) -> None:
        if self._kind not in ACCESSIBLE:
            raise BufferError("buffer is not CPU-accessible")

    def _bounds(self, item: object) -> tuple[int, int] | int:
        """The (start, stop) of a slice, or the position of an index."""
        size = self._memory.nbytes
        if isinstance(item, slice):
            start, stop, step = item.indices(size)
            if step != 1:
                raise IndexError("slice with step not supported")
            return start, max(start, stop)
        if not hasattr(item, "__index__"):
            raise TypeError("index must be integer or slice")
        position = index(item)
        if position < 0:
            position += size
        if not 0 <= position < size:
            raise IndexError("index out of range")
        return position

    def __len__(self) -> int:
        return self._memory.nbytes

    def __getitem__(self, item: object) -> object:
        self._check_accessible()
        where = self._bounds(item)
        if isinstance(where, int):
            return self._memory[where]
        start, stop = where
        return _make(
            self._memory[start:stop],
            self,
            owner=self,
            kind=self._kind,
            address=None if self._address is None else self._address + start,
        )

    def __setitem__(self, item: object, value: object) -> None:
        self._check_accessible()
        memory = self._memory
        if memory.readonly:
            raise TypeError("buffer is read-only")
        where = self._bounds(item)
        if isinstance(where, int):
            memory[where] = _byte(value)
            return
        start, stop = where
        if hasattr(value, "__index__") and not hasattr(value, "__len__"):
            memory[start:stop] = bytes((_byte(value),)) * (stop - start)
            return
        data = acquire(value).memory
        if data.nbytes != stop - start:
            raise ValueError(
                f"slice length {stop - start} does not match buffer length {data.nbytes}"
            )
        memory[start:stop] = data

    def __delitem__(self, item: object) -> None:
        # The exception that mpi4py raises here.
        raise NotImplementedError("Subscript deletion not supported by mpi4py.MPI.buffer")


memory = buffer  #: the former name of MPI.buffer


def _byte(value: Any) -> int:
    byte = index(value)
    if not 0 <= byte <= 255:
        raise OverflowError(f"value {byte} does not fit in a byte")
    return byte


def _make(
    memory: memoryview,
    source: object,
    owner: object = None,
    kind: int = 0,
    address: int | None = None,
) -> buffer:
    result = object.__new__(buffer)
    result._memory = memory
    result._exporter = np.frombuffer(memory, np.uint8)
    result._source = source
    result._owner = owner
    result._kind = kind
    result._address = address
    return result


def over(
    view: memoryview, owner: object = None, address: int | None = None, source: object = None
) -> buffer:
    """The buffer over a flat view of bytes; without a source, memory allocated by MPI."""
    return _make(view, source, owner=owner, address=address)


class _Special(Exporter):
    """A buffer argument with a special meaning instead of memory."""

    __slots__ = ()
    _exporter = None
    _name: str
    _value: int

    def __bool__(self) -> bool:
        return self._value != 0

    def __int__(self) -> int:
        return self._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __eq__(self, value: object) -> bool:
        same: bool = _same(self, value)  # or NotImplemented
        return same

    def __ne__(self, value: object) -> bool:
        equal = _same(self, value)
        return equal if equal is NotImplemented else not equal

    def __repr__(self) -> str:
        return self._name

    def __reduce__(self) -> str:
        return self._name


class BottomType(_Special):
    """Type of `BOTTOM`."""

    __slots__ = ()
    _name, _value = "BOTTOM", 0

    def __index__(self) -> int:
        return self._value


class InPlaceType(_Special):
    """Type of `IN_PLACE`."""

    __slots__ = ()
    _name, _value = "IN_PLACE", -1


class BufferAutomaticType(_Special):
    """Type of `BUFFER_AUTOMATIC`."""

    __slots__ = ()
    _name, _value = "BUFFER_AUTOMATIC", -2


def _same(constant: _Special, value: object) -> Any:
    if type(value) is type(constant):
        return True
    if isinstance(value, _Special):
        return bool(constant._value == value._value)
    if not hasattr(value, "__index__"):
        return NotImplemented
    try:
        return bool(constant._value == index(value))
    except TypeError:
        return NotImplemented


BOTTOM = BottomType()
IN_PLACE = InPlaceType()
BUFFER_AUTOMATIC = BufferAutomaticType()


class Address:
    """A buffer argument of compiled code: memory from an address on, without an end."""

    __slots__ = ("value",)

    def __init__(self, value: int) -> None:
        self.value = value


def is_bottom(obj: object) -> bool:
    """Whether a buffer argument means absolute addresses, or no memory at all."""
    return obj is None or obj is BOTTOM or obj.__class__ is Address


def origin_of(obj: object) -> int:
    """The address from which displacements of a buffer argument without an end count."""
    return obj.value if isinstance(obj, Address) else 0


def is_in_place(obj: object) -> bool:
    """Whether a buffer argument of a collective selects the in-place form."""
    return obj is None or obj is IN_PLACE


ALLOCATED: StateSlot[Universe, dict[int, np.ndarray]] = StateSlot(Universe, dict)


def _allocated() -> dict[int, np.ndarray]:
    """Memory of Alloc_mem by address.

    It lives until Free_mem or the end of the run, independently of the buffer object: a window or
    an address may still refer to it.
    """
    return ALLOCATED.of(current().universe)


@mpi.local("9.2")
def Alloc_mem(size: int, info: Info = INFO_NULL) -> buffer:
    """Allocate memory for message passing and remote memory access."""
    nbytes = whole(size)
    check_info(info)
    if nbytes < 0:
        fail(c.ERR_ARG, f"size is {nbytes}")
    # At least one byte, so that every allocation has a different address.
    storage = np.zeros(max(nbytes, 1), np.uint8)
    address = address_of(storage)
    _allocated()[address] = storage
    return _make(storage.data[:nbytes], None, owner=storage, address=address)


@mpi.local("9.2")
def Free_mem(mem: buffer) -> None:
    """Free memory allocated with `Alloc_mem`."""
    held = mem if isinstance(mem, buffer) else buffer(mem)
    if held.address and _allocated().pop(held.address, None) is None:
        fail(c.ERR_BASE, "the memory was not allocated with Alloc_mem")
    held.release()


@mpi.local("5.1.5")
def Get_address(location: object) -> int:
    """Get the address of a location in memory."""
    if isinstance(location, _Special):
        return location._value
    if location is None:
        return 0
    if isinstance(location, buffer):
        return location.address
    if type(location) is np.ndarray and location.flags.forc:
        return int(location.__array_interface__["data"][0])
    return address_of(acquire(location).memory)


@mpi.local("5.1.5")
def Aint_add(base: int, disp: int) -> int:
    """Return the sum of base address and displacement."""
    return _address(whole(base) + whole(disp))


@mpi.local("5.1.5")
def Aint_diff(addr1: int, addr2: int) -> int:
    """Return the difference between absolute addresses."""
    return _address(whole(addr1) - whole(addr2))


def _address(value: int) -> int:
    """Wrapped to 64 bits, as address arithmetic in C does."""
    return (value + 2**63) % 2**64 - 2**63
