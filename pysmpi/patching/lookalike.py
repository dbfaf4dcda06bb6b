"""Functions that look like the built-in functions that they replace.

A built-in function does not bind when a class keeps it as an attribute
(`logging.Formatter.converter = time.localtime`), is pickled by its name, and has its own type. A
Python function differs in all three. A replacement of a built-in function is therefore also a
built-in function: the C API makes one from any C function with the usual arguments, and
`PyObject_Call` is such a function. The replacement object takes the place of the module, and
`PyObject_Call` calls it.
"""

from __future__ import annotations

import ctypes
import inspect
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, TypeVar

from pysmpi.python import facts, frames

F = TypeVar("F", bound=Callable[..., object])

_VARARGS_AND_KEYWORDS = 0x0001 | 0x0002


class _Definition(ctypes.Structure):
    """`PyMethodDef` of Python's C API."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


class _Stand(ModuleType):
    """Takes the place of a built-in function's module; calling it calls the replacement."""

    def __call__(self, *args: object, **kwargs: object) -> object:
        try:
            return self.__dict__["function"](*args, **kwargs)
        except TypeError as error:
            trace = error.__traceback__
            if trace is None or trace.tb_next is not None or self._accepts(args, kwargs):
                raise
        return self.__dict__["real"](*args, **kwargs)  # raises an error in its own words

    def _accepts(self, args: tuple[object, ...], kwargs: dict[str, object]) -> bool:
        """Whether the replacement can be called with these arguments."""
        function = self.__dict__["function"]
        if type(function) is not FunctionType:
            return True
        try:
            inspect.signature(function).bind(*args, **kwargs)
        except TypeError:
            return False
        return True


frames.stands.add(_Stand.__call__.__code__)

_call = ctypes.cast(ctypes.pythonapi.PyObject_Call, ctypes.c_void_p).value
_new = ctypes.pythonapi.PyCFunction_NewEx
_new.restype = ctypes.py_object
_new.argtypes = [ctypes.POINTER(_Definition), ctypes.py_object, ctypes.py_object]


def builtin(real: Any, function: F) -> F:
    """`made_builtin`, or a function in Python if the fact "builtin-functions" is false."""
    if facts.holds("builtin-functions"):
        return made_builtin(real, function)
    if type(function) is FunctionType:
        return _dressed(real, function)

    def call(*args: Any, **kwargs: Any) -> object:
        return function(*args, **kwargs)

    return _dressed(real, call)  # type: ignore[return-value]  # a method takes no attributes


def made_builtin(real: Any, function: F) -> F:
    """A built-in function with the name, module, docstring and signature of `real`.

    Calling it calls `function`. Its `__self__` looks like the module of `real`.
    """
    module = real.__module__
    stand = _Stand(module or "builtins")
    if type(function) is FunctionType:
        # Errors of wrong arguments name the function by this.
        function.__qualname__ = f"{module}.{real.__name__}" if module else real.__name__
    signature = real.__text_signature__
    doc = real.__doc__ or ""
    if signature is not None:
        doc = f"{real.__name__}{signature}\n--\n\n{doc}"
    definition = _Definition(real.__name__.encode(), _call, _VARARGS_AND_KEYWORDS, doc.encode())
    # The function refers to its definition without owning it.
    stand.__dict__["definition"] = definition
    stand.__dict__["function"] = function
    stand.__dict__["real"] = real
    stand.__dict__["replaces"] = real.__name__
    made: F = _new(ctypes.byref(definition), stand, module)
    return made


def like(real: object, function: F) -> F:
    """`function` in the shape of `real`: a built-in if that is one, else a Python function."""
    if type(real) is BuiltinFunctionType:
        return builtin(real, function)
    return _dressed(real, function)


def _dressed(real: object, function: F) -> F:
    for name in ("__module__", "__name__", "__qualname__", "__doc__"):
        setattr(function, name, getattr(real, name, None))
    function.__dict__["__wrapped__"] = real  # where `inspect.signature` looks
    return function
