"""The C interface: functions in capsules, called as C code calls them."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

from pysmpi.mpi import MPI

pytest.importorskip(
    "pysmpi.mpi.c_interface.conversions", reason="pysmpi was installed without a C compiler"
)

_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def function(name: str, signature: str, result: Any, argument: Any) -> Any:
    address = _pointer(MPI.__pyx_capi__[name], signature.encode())
    return ctypes.PYFUNCTYPE(result, argument)(address)


@pytest.mark.parametrize(
    ("name", "obj"),
    [
        ("Datatype", MPI.DOUBLE), ("Op", MPI.SUM), ("Group", MPI.GROUP_EMPTY),
        ("Info", MPI.INFO_ENV), ("Errhandler", MPI.ERRORS_RETURN), ("Comm", MPI.COMM_SELF),
        ("Message", MPI.MESSAGE_NO_PROC), ("Request", MPI.REQUEST_NULL), ("Win", MPI.WIN_NULL),
        ("File", MPI.FILE_NULL), ("Session", MPI.SESSION_NULL),
    ],
)  # fmt: skip
def test_objects_to_handles_and_back(name: str, obj: Any) -> None:
    to_handle = function(
        f"PyMPI{name}_Get", f"MPI_{name} *(PyObject *)", ctypes.c_void_p, ctypes.py_object
    )
    to_object = function(
        f"PyMPI{name}_New", f"PyObject *(MPI_{name})", ctypes.py_object, ctypes.c_uint32
    )
    handle = ctypes.c_uint32.from_address(to_handle(obj)).value
    assert handle == MPI._handleof(obj)
    assert to_object(handle) == obj
    assert type(to_object(handle)) is type(obj)


def test_objects_of_other_classes_are_errors_for_the_caller() -> None:
    for name in ("Datatype", "Request", "Message", "Op", "Group", "Info", "Errhandler", "Comm",
                 "Win", "File", "Session", "Status"):  # fmt: skip
        to_handle = function(
            f"PyMPI{name}_Get", f"MPI_{name} *(PyObject *)", ctypes.c_void_p, ctypes.py_object
        )
        for other in (1, MPI.Comm if name == "Status" else None):
            kind = type(other).__name__
            with pytest.raises(TypeError, match=f"^Cannot convert {kind} to mpi4py.MPI.{name}$"):
                to_handle(other)


def test_a_status_is_copied() -> None:
    to_address = function(
        "PyMPIStatus_Get", "MPI_Status *(PyObject *)", ctypes.c_void_p, ctypes.py_object
    )
    to_object = function(
        "PyMPIStatus_New", "PyObject *(MPI_Status *)", ctypes.py_object, ctypes.c_void_p
    )
    status = MPI.Status()
    status.tag = 7
    copy = to_object(to_address(status))
    assert copy == status
    status.tag = 8
    assert copy.tag == 7
    assert to_address(None) == 1  # MPI_STATUS_IGNORE of MPICH
    assert to_object(to_address(None)) == to_object(None) == MPI.Status()


def test_kinds_of_requests() -> None:
    for kind in (MPI.Prequest, MPI.Grequest):
        to_object = function(
            f"PyMPI{kind.__name__}_New", "PyObject *(MPI_Request)",
            ctypes.py_object, ctypes.c_uint32,
        )  # fmt: skip
        made = to_object(MPI._handleof(MPI.REQUEST_NULL))
        assert type(made) is kind
        assert made == MPI.REQUEST_NULL
