"""MPI.Exception, error classes and codes, and the handling of errors (MPI 4.1, chapter 9).

A chapter detects an error. The error goes to the error handler of its object and, if that handler
returns, is raised as `MPI.Exception`: `fail` does all three.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import index
from typing import Any, NoReturn

from pysmpi.mpi.base import constants
from pysmpi.mpi.base.constants import ERR_LASTCODE, ERR_OTHER, ERR_UNKNOWN, SUCCESS
from pysmpi.mpi.base.ranks import Rank, current
from pysmpi.mpi.base.state import StateSlot
from pysmpi.mpi.calls import mpi
from pysmpi.mpi.internal_errors import deliberate, touches_program

__all__ = [
    "Exception",
    "Get_error_class",
    "Get_error_string",
    "Add_error_class",
    "Remove_error_class",
    "Add_error_code",
    "Remove_error_code",
    "Add_error_string",
    "Remove_error_string",
]

LARGE = 1 << 63  # beyond the numbers of a C long

_STRINGS = {
    "SUCCESS": "No error",
    "ERR_ABI": "Invalid ABI request",
    "ERR_TYPE": "Invalid datatype",
    "ERR_REQUEST": "Invalid request",
    "ERR_OP": "Invalid reduction operation",
    "ERR_GROUP": "Invalid group",
    "ERR_INFO": "Invalid info object",
    "ERR_ERRHANDLER": "Invalid error handler",
    "ERR_SESSION": "Invalid session",
    "ERR_COMM": "Invalid communicator",
    "ERR_WIN": "Invalid window",
    "ERR_FILE": "Invalid file handle",
    "ERR_BUFFER": "Invalid buffer",
    "ERR_COUNT": "Invalid count",
    "ERR_TAG": "Invalid tag",
    "ERR_RANK": "Invalid rank",
    "ERR_ROOT": "Invalid root",
    "ERR_TRUNCATE": "Message truncated",
    "ERR_IN_STATUS": "The error codes are in the statuses",
    "ERR_PENDING": "Request is still pending",
    "ERR_TOPOLOGY": "Invalid topology",
    "ERR_DIMS": "Invalid dimensions",
    "ERR_ARG": "Invalid argument",
    "ERR_OTHER": "Other error",
    "ERR_UNKNOWN": "Unknown error",
    "ERR_INTERN": "Internal error of the MPI library",
    "ERR_KEYVAL": "Invalid attribute key",
    "ERR_NO_MEM": "Out of memory",
    "ERR_INFO_KEY": "Invalid info key",
    "ERR_INFO_VALUE": "Invalid info value",
    "ERR_INFO_NOKEY": "Info key is not defined",
    "ERR_SPAWN": "Processes could not be spawned",
    "ERR_PORT": "Invalid port name",
    "ERR_SERVICE": "Service name is not published",
    "ERR_NAME": "Invalid service name",
    "ERR_PROC_ABORTED": "A peer process was aborted",
    "ERR_BASE": "Invalid base address",
    "ERR_SIZE": "Invalid size",
    "ERR_DISP": "Invalid displacement",
    "ERR_ASSERT": "Invalid assertion",
    "ERR_LOCKTYPE": "Invalid lock type",
    "ERR_RMA_CONFLICT": "Conflicting accesses to a window",
    "ERR_RMA_SYNC": "Wrong synchronization of one-sided communication",
    "ERR_RMA_RANGE": "Target memory is outside the window",
    "ERR_RMA_ATTACH": "Memory cannot be attached",
    "ERR_RMA_SHARED": "Memory cannot be shared",
    "ERR_RMA_FLAVOR": "Window has the wrong flavor",
    "ERR_BAD_FILE": "Invalid file name",
    "ERR_NO_SUCH_FILE": "File does not exist",
    "ERR_FILE_EXISTS": "File exists",
    "ERR_FILE_IN_USE": "File is in use",
    "ERR_AMODE": "Invalid access mode",
    "ERR_ACCESS": "Permission denied",
    "ERR_READ_ONLY": "File or file system is read-only",
    "ERR_NO_SPACE": "No space left",
    "ERR_QUOTA": "Quota exceeded",
    "ERR_NOT_SAME": "Arguments of a collective call differ between processes",
    "ERR_IO": "Other input or output error",
    "ERR_UNSUPPORTED_OPERATION": "Unsupported operation",
    "ERR_UNSUPPORTED_DATAREP": "Unsupported data representation",
    "ERR_CONVERSION": "A user's data conversion function failed",
    "ERR_DUP_DATAREP": "Data representation is already registered",
    "ERR_VALUE_TOO_LARGE": "Value is too large",
    "ERR_REVOKED": "Communicator is revoked",
    "ERR_PROC_FAILED": "A process has failed",
    "ERR_PROC_FAILED_PENDING": "Request is pending because a process has failed",
}
_CLASSES: dict[int, str] = {getattr(constants, name): text for name, text in _STRINGS.items()}


@deliberate
class Exception(RuntimeError):
    """Exception class."""

    args: tuple[int]

    # The details of this error, for the message; empty if only the code is known.
    detail = ""

    def __init__(self, ierr: int = SUCCESS, /) -> None:
        """Initialize self."""
        code = cint(ierr)
        super().__init__(ERR_UNKNOWN if code < SUCCESS else code)

    def __int__(self) -> int:
        """Return int(self)."""
        return self.args[0]

    def __bool__(self) -> bool:
        """Return bool(self)."""
        return self.args[0] != SUCCESS

    def __hash__(self) -> int:
        """Return hash(self)."""
        return hash(self.args[0])

    def __eq__(self, other: object, /) -> bool:
        """Return self==value."""
        return self.args[0] == other

    def __ne__(self, other: object, /) -> bool:
        """Return self!=other."""
        return self.args[0] != other

    def __lt__(self, other: int, /) -> bool:
        """Return self<other."""
        return self.args[0] < other

    def __le__(self, other: int, /) -> bool:
        """Return self<=other."""
        return self.args[0] <= other

    def __gt__(self, other: int, /) -> bool:
        """Return self>other."""
        return self.args[0] > other

    def __ge__(self, other: int, /) -> bool:
        """Return self>=other."""
        return self.args[0] >= other

    def __repr__(self) -> str:
        """Return repr(self)."""
        return f"MPI.Exception({self.args[0]})"

    def __str__(self) -> str:
        """Return str(self)."""
        text = self.Get_error_string()
        return f"{text}: {self.detail}" if self.detail else text

    @mpi.local("9.4")
    def Get_error_code(self) -> int:
        """Error code."""
        return self.args[0]

    @mpi.local("9.4")
    def Get_error_class(self) -> int:
        """Error class."""
        return Get_error_class(self.args[0])

    @mpi.local("9.3.5")
    def Get_error_string(self) -> str:
        """Error string."""
        return Get_error_string(self.args[0])

    @property
    def error_code(self) -> int:
        """Error code."""
        return self.Get_error_code()

    @property
    def error_class(self) -> int:
        """Error class."""
        return self.Get_error_class()

    @property
    def error_string(self) -> str:
        """Error string."""
        return self.Get_error_string()


def named(value: object, otherwise: str = "") -> str:
    """`"dest: "` if `value` is the argument `dest` of the program's call.

    The names are looked up in the arguments of the call, for error messages only. `otherwise`
    stands in for a name that is not found.
    """
    call = current().call
    label = otherwise if call is None else _place(value, call.arguments) or otherwise
    return f"{label}: " if label else ""


def _place(value: object, known: dict[str, object]) -> str:
    """The parameter that has the value, or a list with the value in it: `dest`, `counts[2]`."""
    known.pop("self", None)
    # None often means an omitted argument: a list that contains None is the better guess.
    for name, argument in known.items():
        where = _index(value, argument)
        if where:
            return name + where
    for name, argument in known.items():
        if argument is value:
            return name
        if type(value) is type(argument) is str and argument == value:
            return name
    return ""


def _index(value: object, items: object, depth: int = 3) -> str:
    """The place of a value in nested lists: `[1][0]`; an empty text if it is not in them.

    Equal small numbers are one object, so they are looked up in the outer list only.
    """
    if depth and isinstance(items, (list, tuple)):
        for i, item in enumerate(items):
            if item is value:
                return f"[{i}]"
            where = "" if type(value) is int else _index(value, item, depth - 1)
            if where:
                return f"[{i}]{where}"
    return ""


@touches_program
def whole(value: Any) -> int:
    """A number, converted as in C: a float loses its fraction, as in mpi4py.

    TypeError for other objects.
    """
    try:
        number = index(value)
    except TypeError:
        convert = getattr(type(value), "__int__", None)
        if convert is None:
            raise no_integer(value) from None
        number = convert(value)
        if not isinstance(number, int):
            raise no_integer(value) from None
    if not -LARGE <= number < LARGE:
        raise OverflowError(f"{named(value)}{number} is too large to convert to a C long")
    return number


@touches_program
def integer(value: Any) -> int:
    """An integer as Python takes it, no float: of 64 bits, OverflowError for others."""
    try:
        number = index(value)
    except TypeError:
        raise no_integer(value) from None
    if not -LARGE <= number < LARGE:
        raise OverflowError(f"{named(value)}{number} is too large to convert to a C long")
    return number


@touches_program
def sequence(values: Any) -> list[Any]:
    """The items of a sequence."""
    try:
        return [values[i] for i in range(len(values))]
    except TypeError:
        kind = type(values).__name__
        raise TypeError(f"{named(values)}expecting a sequence, got {kind}") from None


@touches_program
def listed(values: Any) -> list[Any]:
    """The items of an iterable."""
    try:
        return list(values)
    except TypeError:
        kind = type(values).__name__
        raise TypeError(f"{named(values)}expecting an iterable, got {kind}") from None


def no_integer(value: object) -> TypeError:
    """The exception for an object that is not an integer."""
    return TypeError(f"{named(value)}an integer is required, not {type(value).__name__}")


def cint(value: object) -> int:
    """A C int: TypeError for an object that is not a number, OverflowError for one out of range."""
    if value.__class__ is int and -0x80000000 <= value <= 0x7FFFFFFF:
        return value
    number = whole(value)
    if not -0x80000000 <= number <= 0x7FFFFFFF:
        raise OverflowError(f"{named(value)}{number} is too large to convert to a C int")
    return number


@touches_program
def truth(value: object) -> bool:
    """Whether an argument is true."""
    return bool(value)


@touches_program
def cstring(value: object) -> str:
    """Text for C: str, or bytes in UTF-8, without a NUL in it."""
    if isinstance(value, bytes):
        text = value.decode()
    elif isinstance(value, str):
        value.encode()  # no lone surrogates
        text = value
    else:
        raise TypeError(f"{named(value)}expected str or bytes, {type(value).__name__} found")
    if "\0" in text:
        raise ValueError(f"{named(value)}embedded null byte")
    return text


# Called with the object concerned and the error that is about to be raised.
error_handlers: list[Callable[[Any, Exception], None]] = []


def fail(code: int, detail: str = "", subject: object = None) -> NoReturn:
    """Pass an error to its error handler, then raise it.

    `subject` is the handle (communicator, window, file or session) of the error. An error without
    such a handle goes to the handler of COMM_SELF (MPI 4.1, section 9.3). `detail` describes the
    error and the argument.
    """
    error = Exception(code)
    if detail:
        error.detail = detail
    for handle in error_handlers:
        handle(subject, error)
    raise error


class UserErrors:
    """The error classes, codes and strings that a rank has added."""

    __slots__ = ("classes", "strings", "last")

    def __init__(self) -> None:
        self.classes: dict[int, int] = {}  # class or code -> class
        self.strings: dict[int, str] = {}
        self.last = ERR_LASTCODE

    def add(self, errorclass: int | None) -> int:
        """A fresh code in a class, or a fresh class."""
        self.last += 1
        self.classes[self.last] = self.last if errorclass is None else errorclass
        return self.last

    def remove(self, code: int) -> None:
        """Forget a class or code: LASTUSEDCODE follows when it was the newest."""
        del self.classes[code]
        self.last = max(self.classes, default=ERR_LASTCODE)


USER_ERRORS = StateSlot(Rank, UserErrors)


def user_errors() -> UserErrors:
    """The added errors of the calling rank."""
    return USER_ERRORS.of(current())


@mpi.local("9.4")
def Get_error_class(errorcode: int) -> int:
    """Convert an *error code* into an *error class*."""
    code = cint(errorcode)
    if code in _CLASSES:
        return code
    return user_errors().classes.get(code, ERR_UNKNOWN)


@mpi.local("9.3.5")
def Get_error_string(errorcode: int) -> str:
    """Return the *error string* for a given *error class* or *error code*."""
    code = cint(errorcode)
    errors = user_errors()
    text = errors.strings.get(code)
    if text is None:
        text = "" if code in errors.classes else _CLASSES.get(code, "Unknown error code")
    return text


@mpi.local("9.5.1")
def Add_error_class() -> int:
    """Add an *error class* to the known error classes."""
    return user_errors().add(None)


@mpi.local("9.5.1")
def Remove_error_class(errorclass: int) -> None:
    """Remove an *error class* from the known error classes."""
    code = cint(errorclass)
    errors = user_errors()
    if errors.classes.get(code) != code:
        fail(ERR_OTHER, f"errorclass {code} is not a user-defined error class")
    if list(errors.classes.values()).count(code) > 1:
        fail(ERR_OTHER, f"errorclass {code} still has error codes")
    if code in errors.strings:
        fail(ERR_OTHER, f"errorclass {code} still has an error string")
    errors.remove(code)


@mpi.local("9.5.1")
def Add_error_code(errorclass: int) -> int:
    """Add an *error code* to an *error class*."""
    code = cint(errorclass)
    errors = user_errors()
    if code not in _CLASSES and errors.classes.get(code) != code:
        fail(ERR_OTHER, f"errorclass {code} is not an error class")
    return errors.add(code)


@mpi.local("9.5.1")
def Remove_error_code(errorcode: int) -> None:
    """Remove an *error code* from the known error codes."""
    code = cint(errorcode)
    errors = user_errors()
    if errors.classes.get(code, code) == code:
        fail(ERR_OTHER, f"errorcode {code} is not a user-defined error code")
    if code in errors.strings:
        fail(ERR_OTHER, f"errorcode {code} still has an error string")
    errors.remove(code)


@mpi.local("9.5.1")
def Add_error_string(errorcode: int, string: str) -> None:
    """Associate an *error string* with an *error class* or *error code*."""
    code = cint(errorcode)
    text = cstring(string)
    errors = user_errors()
    if code not in errors.classes:
        fail(ERR_OTHER, f"errorcode {code} is not user-defined")
    errors.strings[code] = text[: constants.MAX_ERROR_STRING - 1]


@mpi.local("9.5.1")
def Remove_error_string(errorcode: int) -> None:
    """Remove *error string* association from *error class* or *error code*."""
    code = cint(errorcode)
    errors = user_errors()
    if code not in errors.classes:
        fail(ERR_OTHER, f"errorcode {code} is not user-defined")
    errors.strings.pop(code, None)
