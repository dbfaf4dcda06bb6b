"""Access to the memory that any Python object exposes, and `Exporter` for classes of our own.

`acquire` converts every object that mpi4py accepts as a buffer (the buffer protocol, DLPack, the
CUDA array interface) into one flat view of bytes. All memory of a simulated rank is host memory. An
array that claims to be on a device is accessed like any other, but it is not *accessible*:
`MPI.buffer` refuses to index it, as in mpi4py.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from pysmpi.mpi.base import devices
from pysmpi.mpi.base.exceptions import named
from pysmpi.mpi.base.exported import OF_HOSTS, Exported
from pysmpi.mpi.base.ranks import Universe, current
from pysmpi.mpi.base.state import StateSlot
from pysmpi.mpi.internal_errors import touches_program

try:
    from pysmpi.mpi.base.exporter import Exporter
except ImportError:  # installed without a C compiler
    from pysmpi.mpi.base.plain_exporter import Exporter  # type: ignore[assignment]

__all__ = ["Exporter", "acquire", "address_of", "flat"]

# The types of the objects on devices whose memory a run has accessed.
ON_DEVICES: StateSlot[Universe, set[str]] = StateSlot(Universe, set)

_BYTE = np.dtype(np.uint8)
_address = ctypes.addressof
_first_byte = ctypes.c_char.from_buffer


@touches_program
def acquire(obj: Any, writable: bool = False, described: bool = False) -> Exported:
    """The memory of `obj`, which must be contiguous in C or Fortran order.

    With `described` its format is needed, too.

    Raises TypeError if `obj` exposes no memory, and BufferError if it is not contiguous, or
    read-only although `writable` is set.
    """
    try:
        view = memoryview(obj)
    except TypeError as error:
        foreign = _foreign(obj, writable)
        if foreign is None:
            raise TypeError(
                f"{named(obj)}expecting an object with a buffer, got '{type(obj).__name__}'"
            ) from error
        return foreign
    except ValueError:
        # numpy cannot spell some dtypes (datetime64, bfloat16) as a format.
        if described:
            foreign = _foreign(obj, writable)
            if foreign is None:
                raise
            return foreign
        view = memoryview(_plain(obj))
    if writable and view.readonly:
        raise BufferError(f"{named(obj)}'{type(obj).__name__}' object is not writable")
    return Exported(flat(view), view.format, view.itemsize, obj, 0)


def flat(view: memoryview) -> memoryview:
    """The bytes of a contiguous view, in the order of memory."""
    if view.format == "B" and view.ndim == 1 and view.c_contiguous:
        return view
    if not view.contiguous:
        raise BufferError("buffer is not contiguous")
    if view.nbytes == 0:
        empty = np.ndarray((0,), _BYTE, view if view.c_contiguous else b"")
        return empty.data
    if not view.c_contiguous:
        array = np.asarray(view).T
        return np.ndarray((view.nbytes,), _BYTE, array).data
    try:
        return view.cast("B")
    except (TypeError, ValueError):
        # memoryview supports only native formats of one character.
        return np.ndarray((view.nbytes,), _BYTE, view).data


def _plain(obj: object) -> Any:
    """An array over the same memory with a simple dtype: bytes of the same item size."""
    if not isinstance(obj, np.ndarray):
        raise BufferError(f"cannot read the memory of a '{type(obj).__name__}' object")
    return obj.view(np.dtype((np.void, obj.dtype.itemsize)))


def _foreign(obj: object, writable: bool) -> Exported | None:
    """Memory through DLPack or the CUDA array interface, None if the object has neither."""
    if not (hasattr(obj, "__dlpack__") or hasattr(obj, "__cuda_array_interface__")):
        return None
    found = devices.acquire(obj, writable)
    if found.kind not in OF_HOSTS:
        ON_DEVICES.of(current().universe).add(type(obj).__name__)
    return found


def address_of(memory: Any) -> int:
    """The address of a contiguous buffer."""
    try:
        return _address(_first_byte(memory))  # a tenth of the time of numpy's way
    except (TypeError, ValueError):  # read-only, empty, or not in C order
        pass
    if not isinstance(memory, np.ndarray):
        memory = np.ndarray((memoryview(memory).nbytes,), _BYTE, memory)
    address: int = memory.__array_interface__["data"][0]
    return address
