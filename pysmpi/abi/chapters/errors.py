"""Error handlers and error codes (MPI 4.1, chapter 9)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pysmpi.abi.callbacks import error_function
from pysmpi.abi.entry import ENTRIES, entry
from pysmpi.abi.values import (
    give,
    give_text,
    release,
    text,
    write_integer,
)

if TYPE_CHECKING:
    from mpi4py import MPI
else:
    from pysmpi.mpi import MPI

ERROR_STRING = 512  # bytes of a text


def error_handlers(prefix: str, family: Any) -> None:
    """Declare the functions for the error handlers of one class of objects."""

    def create(function: int, errhandler: int) -> None:
        give(errhandler, family.Create_errhandler(error_function(function)))

    def put(subject: Any, errhandler: MPI.Errhandler) -> None:
        subject.Set_errhandler(errhandler)

    def get(subject: Any, errhandler: int) -> None:
        give(errhandler, subject.Get_errhandler())

    def call(subject: Any, errorcode: int) -> None:
        subject.Call_errhandler(errorcode)

    ENTRIES[f"{prefix}_create_errhandler"] = create
    ENTRIES[f"{prefix}_set_errhandler"] = put
    ENTRIES[f"{prefix}_get_errhandler"] = get
    ENTRIES[f"{prefix}_call_errhandler"] = call


error_handlers("Comm", MPI.Comm)
error_handlers("Win", MPI.Win)
error_handlers("File", MPI.File)
error_handlers("Session", MPI.Session)

# The names of MPI-1.
for _old, _new in (
    ("Errhandler_create", "Comm_create_errhandler"),
    ("Errhandler_set", "Comm_set_errhandler"),
    ("Errhandler_get", "Comm_get_errhandler"),
):
    ENTRIES[_old] = ENTRIES[_new]


@entry
def Errhandler_free(errhandler: int) -> None:
    release(errhandler, "E", MPI.ERRHANDLER_NULL)


@entry
def Error_class(errorcode: int, errorclass: int) -> None:
    write_integer(errorclass, MPI.Get_error_class(errorcode))


@entry
def Error_string(errorcode: int, string: int, resultlen: int) -> None:
    give_text(string, resultlen, MPI.Get_error_string(errorcode), ERROR_STRING)


@entry
def Add_error_class(errorclass: int) -> None:
    write_integer(errorclass, MPI.Add_error_class())


@entry
def Add_error_code(errorclass: int, errorcode: int) -> None:
    write_integer(errorcode, MPI.Add_error_code(errorclass))


@entry
def Add_error_string(errorcode: int, string: int) -> None:
    MPI.Add_error_string(errorcode, text(string))


@entry
def Remove_error_class(errorclass: int) -> None:
    MPI.Remove_error_class(errorclass)


@entry
def Remove_error_code(errorcode: int) -> None:
    MPI.Remove_error_code(errorcode)


@entry
def Remove_error_string(errorcode: int) -> None:
    MPI.Remove_error_string(errorcode)
