"""The C interface of `mpi4py.MPI`: capsules with functions that turn handles to objects and back.

C code finds them under the names and signatures of mpi4py's `MPI_api.h`. The handles are those that
`_handleof` returns: integers as in MPICH, or those of the interface of the program's libraries.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from pysmpi.mpi.base.errhandlers import Errhandler
from pysmpi.mpi.base.handles import _addressof, type_name
from pysmpi.mpi.base.info import Info
from pysmpi.mpi.communicators.comm import Comm
from pysmpi.mpi.datatypes.datatypes import Datatype
from pysmpi.mpi.datatypes.status import Status
from pysmpi.mpi.files.files import File
from pysmpi.mpi.groups.groups import Group
from pysmpi.mpi.operators.operators import Op
from pysmpi.mpi.point_to_point.generalized import Grequest
from pysmpi.mpi.point_to_point.matched import Message
from pysmpi.mpi.point_to_point.persistent_requests import Prequest
from pysmpi.mpi.point_to_point.requests import Request
from pysmpi.mpi.processes.sessions import Session
from pysmpi.mpi.rma.windows import Win

__all__ = ["__pyx_capi__"]

_CLASSES = (
    Datatype, Request, Message, Op, Group, Info, Errhandler, Session, Comm, Win, File
)  # fmt: skip

_ToObject = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_uint64)  # the upper half may be anything
_ToStatus = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p)
_ToHandle = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object)
_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", ctypes.pythonapi)
)

# The targets of capsules, and their names: both must stay alive.
_kept: list[object] = []


def _status(address: int | None) -> Status:
    """A copy of the status at an address; an empty one for STATUS_IGNORE."""
    made = Status()
    if address:
        ctypes.memmove(_addressof(made), address, ctypes.sizeof(ctypes.c_int) * 5)
    return made


def _address(cls: type) -> Callable[[object], int]:
    def address(obj: object) -> int:
        if obj is None and cls is Status:
            return 0
        if not isinstance(obj, cls):
            raise TypeError(f"Cannot convert {type_name(obj)} to mpi4py.MPI.{cls.__name__}")
        return _addressof(obj)

    return address


def _capsules() -> dict[str, object]:
    made = {}

    def add(name: str, signature: str, function: Any) -> None:
        _kept.extend((function, text := signature.encode()))
        made[name] = _capsule(ctypes.cast(function, ctypes.c_void_p), text, None)

    for cls in (*_CLASSES, Status):
        name = cls.__name__
        add(f"PyMPI{name}_Get", f"MPI_{name} *(PyObject *)", _ToHandle(_address(cls)))
    for cls in _CLASSES:
        name = cls.__name__
        add(f"PyMPI{name}_New", f"PyObject *(MPI_{name})", _ToObject(cls.fromhandle))
    for kind in (Prequest, Grequest):
        function = _ToObject(lambda handle, kind=kind: kind(Request.fromhandle(handle)))
        add(f"PyMPI{kind.__name__}_New", "PyObject *(MPI_Request)", function)
    add("PyMPIStatus_New", "PyObject *(MPI_Status *)", _ToStatus(_status))
    return made


__pyx_capi__ = _capsules()
