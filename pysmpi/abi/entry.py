"""Functions of MPI for compiled programs: their registry, and what a call of one does.

A chapter declares a function under its name in C without the prefix `MPI_`:

    @entry
    def Comm_rank(comm: Comm, rank: int) -> None:
        write_integer(rank, comm.Get_rank())

`calls.c` calls it with the arguments in C's order: integers and addresses as integers, handles as
the objects of mpi4py. Functions whose counts are pointers or arrays get the size of a count (bytes)
as one more argument. The result is None for success, or a value in C.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeVar

from pysmpi.abi.process import here
from pysmpi.abi.sites import place_of
from pysmpi.abi.values import RejectedError
from pysmpi.mpi.base.constants import ERR_ARG, ERR_COMM, ERR_REQUEST, ERR_TOPOLOGY, SUCCESS
from pysmpi.mpi.base.exceptions import Exception as MPIError
from pysmpi.mpi.base.exceptions import fail

if TYPE_CHECKING:
    from mpi4py import MPI
else:
    from pysmpi.mpi import MPI

F = TypeVar("F", bound=Callable[..., object])

ENTRIES: dict[str, Callable[..., object]] = {}

# Errors of arguments that a real library would not notice, or find otherwise.
_WRONG = (ValueError, TypeError, OverflowError, KeyError, IndexError)


def entry(function: F) -> F:
    """Declare a function of MPI under its name."""
    ENTRIES[function.__name__] = function
    return function


def _template(function: Any) -> Any:
    # In one line, which the line of the program takes the place of.
    return lambda *arguments: function(*arguments)


class EntryPoint:
    """Calls one function of MPI from the places of programs, and returns its error code.

    A place is a frame of Python for the tools that look for the line of a program.
    """

    __slots__ = ("function", "places")

    def __init__(self, function: Callable[..., object]) -> None:
        self.function = function
        self.places: dict[int, Callable[..., Any]] = {}

    def __call__(self, site: int, *arguments: Any) -> Any:
        call = self.places.get(site)
        if call is None:
            call = self.places[site] = self._place(site)
        try:
            return call(*arguments)
        except MPIError as error:
            process = here()
            if process.handled:  # as MPICH
                process.handled = False
                return SUCCESS
            return error.Get_error_code()

    def _place(self, site: int) -> Callable[..., Any]:
        file, line, function = place_of(site)
        template = _template(self.function)
        code = template.__code__.replace(
            co_filename=file, co_firstlineno=line, co_name=function, co_qualname=function,
        )  # fmt: skip
        made = FunctionType(code, {"__name__": "__main__"}, function, None, template.__closure__)
        return made


def checked(function: Callable[..., object]) -> Callable[..., object]:
    """A function whose errors of Python are errors of MPI."""

    def call(*arguments: Any) -> object:
        try:
            return function(*arguments)
        except RejectedError as error:
            fail(error.code, error.detail, _subject(arguments))
        except AttributeError as error:
            if not isinstance(error.obj, (MPI.Comm, MPI.Request)) or error.name is None:
                raise
            fail(*_unsuited(error.obj, error.name), _subject(arguments))
        except _WRONG as error:
            fail(ERR_ARG, str(error), _subject(arguments))

    return call


def _subject(arguments: tuple[object, ...]) -> object:
    """The communicator, window or file whose error handler gets an error of the call."""
    for each in arguments:
        if isinstance(each, MPI.File) or (isinstance(each, (MPI.Comm, MPI.Win)) and each):
            return each
    return None


def _unsuited(comm: MPI.Comm | MPI.Request, method: str) -> tuple[int, str]:
    """The error of a communicator or request whose kind does not have a method of mpi4py."""
    if isinstance(comm, MPI.Request):
        return ERR_REQUEST, "the request is of another kind of operation"
    if not comm:
        return ERR_COMM, "the communicator is COMM_NULL"
    if comm.Is_inter():
        return ERR_COMM, "the communicator is an intercommunicator"
    if hasattr(MPI.Intercomm, method):
        return ERR_COMM, "the communicator is no intercommunicator"
    return ERR_TOPOLOGY, "the communicator has no such topology"
