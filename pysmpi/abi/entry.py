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

import re
from collections.abc import Callable
from functools import cache, partial
from types import FunctionType
from typing import TYPE_CHECKING, NoReturn, TypeVar

from pysmpi.abi.process import here
from pysmpi.abi.sites import later, shown
from pysmpi.abi.timer import timed
from pysmpi.abi.values import RejectedError
from pysmpi.mpi.base.constants import ERR_ARG, ERR_COMM, ERR_REQUEST, ERR_TOPOLOGY, SUCCESS
from pysmpi.mpi.base.exceptions import Exception as MPIError
from pysmpi.mpi.base.exceptions import fail
from pysmpi.mpi.base.options import of_rank
from pysmpi.mpi.base.ranks import current

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


class EntryPoint:
    """Calls one function of MPI from the places of programs, and returns its error code.

    A place is a frame of Python for the tools that look for the line of a program. The engine calls
    those that have been there before by itself, but before MPI_Init and after MPI_Finalize; the
    exceptions go to `failed`.
    """

    __slots__ = ("function", "timed", "untimed")

    def __init__(self, function: Callable[..., object]) -> None:
        self.function = function
        self.untimed: dict[int, Callable[..., object]] = {}
        self.timed: dict[int, Callable[..., object]] = {}  # of ranks whose compute is measured

    def __call__(self, site: int, *arguments: object) -> object:
        if here().timer is None:
            places, function = self.untimed, self.function
        else:
            places, function = self.timed, timed(self.function)
        call = places.get(site)
        if call is None:
            call = places[site] = call_at(site, function, len(arguments))
        try:
            return call(*arguments)
        except Exception as error:
            return self.failed(error, site, arguments)

    def failed(self, error: Exception, site: int, arguments: tuple[object, ...]) -> int:
        """The error code of a call from a place that has ended with an exception."""
        return error_code(error, arguments, site)


class Refusal:
    """Takes the place of a function while MPI is not initialized in a rank."""

    def __init__(self, name: str, entry: Callable[..., object]) -> None:
        self.name = name
        self.entry = entry

    def __call__(self, site: int, *arguments: object) -> object:
        self.check(site)
        return self.entry(site, *arguments)

    def check(self, site: int) -> None:
        """End the job, unless the rank has a session: no error handler gets this error."""
        if allowed_outside(self.name):
            return
        environment = of_rank()
        if not environment.sessions:
            when = "after MPI_Finalize" if environment.finalized else "before MPI_Init"
            current().abort(1, f"called MPI_{self.name} {when}, at {shown(site)}")


# MPI 4.1, section 11.4.1, and what Open MPI allows too: a clock, and sums of addresses.
_ALWAYS = (
    r"Init(_thread|ialized)?|Finalized?|Get_(library_)?version|Abi_\w+|Info_\w+|Session_\w+|"
    r"Error_(class|string)|(Add|Remove)_error_\w+|Errhandler_free|\w+_(c2f|f2c|toint|fromint)|"
    r"Status_(\w+2\w+|[gs]et_(source|tag|error)|set_cancelled)|T_\w+|Wti(me|ck)|Aint_(add|diff)"
)


_OFTEN = frozenset(("Init", "Init_thread", "Initialized", "Finalize", "Finalized"))


@cache
def allowed_outside(name: str) -> bool:
    """Whether programs may call a function before MPI is initialized, and after it is finalized."""
    return name in _OFTEN or re.fullmatch(_ALWAYS, name) is not None


_TEMPLATES: dict[int, Callable[[object], FunctionType]] = {}


def call_at(site: int, function: Callable[..., object], count: int) -> Callable[..., object]:
    """A function with `count` arguments that calls another one from a place of a program."""
    template = _TEMPLATES.get(count)
    if template is None:
        names = ", ".join(f"_{i}" for i in range(count))
        # In one line, which the line of the program takes the place of.
        source = f"lambda _function: lambda {names}: _function({names})"
        template = _TEMPLATES[count] = eval(source, {"__name__": "__main__"})
    inner = template(function)
    file, line, name = later(site)
    code = inner.__code__
    code = code.replace(
        co_filename=file, co_firstlineno=line, co_name=name, co_qualname=name,
        co_linetable=_one_line(len(code.co_code) // 2),
    )  # fmt: skip
    return FunctionType(code, inner.__globals__, name, None, inner.__closure__)


def _one_line(units: int) -> bytes:
    """The table of lines of code that is all in its first line, without columns.

    Each entry is for up to 8 units of code (CPython, Objects/locations.md).
    """
    entry = bytearray()
    while units > 0:
        entry += bytes((0x80 | 13 << 3 | min(units, 8) - 1, 0))
        units -= 8
    return bytes(entry)


def error_code(error: Exception, arguments: tuple[object, ...], site: int = 0) -> int:
    """The code of an error of MPI. Some other exceptions stand for one; the rest are raised."""
    if not isinstance(error, MPIError):
        raising = partial(_raise_for, error, arguments)
        try:
            (call_at(site, raising, 0) if site else raising)()
        except MPIError as made:
            error = made
    assert isinstance(error, MPIError)
    process = here()
    if process.handled:  # as MPICH
        process.handled = False
        return SUCCESS
    return error.Get_error_code()


def _raise_for(error: Exception, arguments: tuple[object, ...]) -> NoReturn:
    """Raise the error of MPI that an exception stands for, or the exception itself."""
    subject = _subject(arguments)
    if isinstance(error, RejectedError):
        fail(error.code, error.detail, subject)
    if isinstance(error, AttributeError):
        if isinstance(error.obj, (MPI.Comm, MPI.Request)) and error.name is not None:
            fail(*_unsuited(error.obj, error.name), subject)
    elif isinstance(error, _WRONG):
        fail(ERR_ARG, str(error), subject)
    raise error


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
