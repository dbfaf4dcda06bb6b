"""Distinguishes pysmpi's own errors from those that an MPI call raises on purpose.

An error inside a call is on purpose if it ends at a `raise` statement of pysmpi. It belongs to the
program if it occurred in the program's code, or in a function that uses the program's objects and
is marked with `touches_program`. All other errors are bugs of pysmpi.
"""

from __future__ import annotations

import dis
import os
from types import CodeType, TracebackType
from typing import TypeVar

from pysmpi.errors import PysmpiError, PysmpiInternalError
from pysmpi.python.frames import is_compiled, is_own

F = TypeVar("F")
E = TypeVar("E", bound=BaseException)

_RAISES = frozenset(dis.opmap[name] for name in ("RAISE_VARARGS", "RERAISE"))
# The interpreter's own limits, and warnings that the program has made errors.
_deliberate: tuple[type[BaseException], ...] = (
    PysmpiError, Warning, MemoryError, RecursionError,
)  # fmt: skip

_touching: set[CodeType] = set()


def touches_program(function: F) -> F:
    """Mark a function that uses objects or calls functions of the program.

    Their exceptions, such as the `TypeError` of an object without a buffer, are for the program.
    """
    _touching.add(function.__code__)  # type: ignore[attr-defined]
    return function


def may_raise_for_program(code: CodeType) -> bool:
    """Whether code belongs to a function that is marked with `touches_program`."""
    return code in _touching


def deliberate(cls: type[E]) -> type[E]:
    """Mark a class of exceptions that are only raised on purpose."""
    global _deliberate
    _deliberate += (cls,)
    return cls


def is_internal(error: BaseException) -> bool:
    """Whether an exception out of an MPI call is a bug of pysmpi."""
    if not isinstance(error, Exception) or isinstance(error, _deliberate):
        return False
    found: TracebackType | None = None  # the innermost frame of pysmpi
    inside: list[str] = []  # files of the frames in it
    trace = error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if is_own(file):
            found = trace
            inside.clear()
        else:
            inside.append(file)
        trace = trace.tb_next
    if found is None:
        return False
    code = found.tb_frame.f_code
    if code in _touching:
        return False
    if is_compiled(code.co_filename):
        return not isinstance(error, RuntimeError)  # the only one that the kernel raises
    if inside:
        return all(_is_library(file) for file in inside)
    return isinstance(error, AssertionError) or code.co_code[found.tb_lasti] not in _RAISES


def _is_library(file: str) -> bool:
    return file.startswith("<frozen") or "site-packages" in file or file.startswith(_STDLIB)


_STDLIB = os.path.dirname(os.__file__)


def internal(error: BaseException, name: str) -> PysmpiInternalError:
    """The error to show for one that is a bug of pysmpi."""
    text: object = error
    try:
        text = str(error)
    except Exception:
        text = ""
    return PysmpiInternalError(
        f"a bug in pysmpi, please report it: {type(error).__name__}: {text} (in {name})"
    )
