"""The C interface of `mpi4py.MPI`: capsules with functions that turn handles to objects and back.

C code finds them under the names and signatures of mpi4py's `MPI_api.h`. The handles are those that
`_handleof` returns: integers as in MPICH, or those of the interface of the program's libraries.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from pysmpi.mpi.base.errhandlers import Errhandler
from pysmpi.mpi.base.handles import _addressof, form_of_program, type_name
from pysmpi.mpi.base.info import Info
from pysmpi.mpi.communicators.comm import Comm
from pysmpi.mpi.datatypes.datatypes import Datatype
from pysmpi.mpi.datatypes.status import Status, of_form
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

# Builds of pysmpi without a compiler have no such functions; they run no code that calls them.
try:
    from pysmpi.mpi.c_interface.conversions import capsule
except ImportError:
    capsule = None  # type: ignore[assignment]


def _status(address: int) -> Status:
    """A copy of the status at an address; an empty one for STATUS_IGNORE."""
    made, form = Status(), form_of_program()
    if address and address != form.status_ignore:
        integers = (ctypes.c_int * len(form.status)).from_address(address)
        made._fields = of_form(list(integers), form)
    return made


def _address(cls: type) -> Callable[[object], int]:
    def address(obj: object) -> int:
        if obj is None and cls is Status:
            return form_of_program().status_ignore
        if not isinstance(obj, cls):
            raise TypeError(f"Cannot convert {type_name(obj)} to mpi4py.MPI.{cls.__name__}")
        return _addressof(obj)

    return address


def _request(kind: type[Request]) -> Callable[[int], Request]:
    def request(handle: int) -> Request:
        made: Request = kind(Request.fromhandle(handle))
        return made

    return request


def _functions() -> dict[str, Callable[[Any], object]]:
    made: dict[str, Callable[[Any], object]] = {}
    for cls in (*_CLASSES, Status):
        made[f"PyMPI{cls.__name__}_Get"] = _address(cls)
    for cls in _CLASSES:
        made[f"PyMPI{cls.__name__}_New"] = cls.fromhandle
    for kind in (Prequest, Grequest):
        made[f"PyMPI{kind.__name__}_New"] = _request(kind)
    made["PyMPIStatus_New"] = _status
    return made


__pyx_capi__ = (
    {} if capsule is None
    else {name: capsule(name, function) for name, function in _functions().items()}
)  # fmt: skip
