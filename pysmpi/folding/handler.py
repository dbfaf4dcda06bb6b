"""numpy's hook for allocating the data of arrays (NEP 49), from Python.

A handler is a capsule with four C functions and a number that they get with every call. Each rank
has its own handler. The number identifies the rank of an array even if the garbage collector frees
the array in another rank. numpy takes the handler from a context variable, and every greenlet has
its own context, so nothing outside the ranks changes. An array keeps its handler, which may outlive
the run; the functions are therefore never freed.

Arrays that are not folded go to numpy's own allocator, see `hooks.c`.
"""

from __future__ import annotations

import contextvars
import ctypes
from _thread import interrupt_main, start_new_thread
from collections.abc import Callable, Sequence
from importlib import import_module
from time import sleep
from typing import Any, Protocol

import numpy as np

from pysmpi.errors import UsageError
from pysmpi.python import facts

try:
    from pysmpi.folding import hooks
except ImportError:  # pysmpi was installed without a C compiler
    hooks = None  # type: ignore[assignment]

_NAME = b"mem_handler"
# Places in numpy's table of C functions, numpy 1.22 and later.
_SET_HANDLER, _GET_HANDLER = 304, 305

_pointer, _size = ctypes.c_void_p, ctypes.c_size_t
_Malloc = ctypes.PYFUNCTYPE(_pointer, _pointer, _size)
_Calloc = ctypes.PYFUNCTYPE(_pointer, _pointer, _size, _size)
_Realloc = ctypes.PYFUNCTYPE(_pointer, _pointer, _pointer, _size)


class _Allocator(ctypes.Structure):
    _fields_ = [
        ("context", _pointer),
        ("malloc", _pointer),
        ("calloc", _pointer),
        ("realloc", _pointer),
        ("free", _pointer),
    ]


class _Handler(ctypes.Structure):
    """PyDataMem_Handler of numpy/ndarraytypes.h, version 1."""

    _fields_ = [
        ("name", ctypes.c_char * 127),
        ("version", ctypes.c_uint8),
        ("allocator", _Allocator),
    ]


class Allocations(Protocol):
    """The interface that decides about the large arrays of one rank."""

    def allocate(self, nbytes: int, zero: bool) -> int:
        """The address for a new array; 0 if numpy should allocate it."""

    def resize(self, address: int, nbytes: int) -> bool:
        """Let the array at an address grow or shrink in place, if it can."""

    def size(self, address: int) -> int:
        """The bytes of the array at an address."""

    def free(self, address: int) -> None:
        """Release the array at an address."""


class Numpy:
    """numpy's own functions."""

    def __init__(self) -> None:
        try:
            core = import_module("numpy._core._multiarray_umath")
        except ImportError:  # numpy 1
            core = import_module("numpy.core._multiarray_umath")
        pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
        pointer_of.restype, pointer_of.argtypes = _pointer, [ctypes.py_object, ctypes.c_char_p]
        new = ctypes.pythonapi.PyCapsule_New
        new.restype = ctypes.py_object
        new.argtypes = [_pointer, ctypes.c_char_p, _pointer]
        self.new_capsule = new
        table = pointer_of(core._ARRAY_API, None)
        functions = (_pointer * (_GET_HANDLER + 1)).from_address(table)
        set_handler, get_handler = functions[_SET_HANDLER], functions[_GET_HANDLER]
        assert set_handler is not None and get_handler is not None
        self.set = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(set_handler)
        self.get = ctypes.PYFUNCTYPE(ctypes.py_object)(get_handler)
        # The handler of a fresh context is numpy's own.
        self.usual = contextvars.Context().run(self.get)
        found = _Handler.from_address(pointer_of(self.usual, _NAME))
        if found.version != 1:
            raise UsageError(
                f"--fold: numpy {np.__version__} has allocation handlers of version "
                f"{found.version}, expected 1"
            )
        self.name = found.name
        theirs = found.allocator
        self.addresses = theirs.malloc, theirs.calloc, theirs.realloc, theirs.free
        self.context = theirs.context
        self.malloc = _Malloc(theirs.malloc)
        self.calloc = _Calloc(theirs.calloc)
        self._structures: list[_Handler] = []

    def handler(self, name: bytes, context: int, addresses: Sequence[int | None]) -> object:
        """A handler for `set`: its functions, which get `context` as their first argument."""
        structure = _Handler(name, 1, _Allocator(context, *addresses))
        self._structures.append(structure)
        return self.new_capsule(ctypes.addressof(structure), _NAME, None)


class AllocationHandlers:
    """Handlers of ranks, for all runs: they own arrays with addresses from `start` to `stop`."""

    def __init__(self, start: int, stop: int) -> None:
        if hooks is None:
            raise UsageError(
                "--fold: expected pysmpi installed with a C compiler (gcc or clang), got one "
                "installed without"
            )
        if not facts.holds("numpy-memory"):
            raise UsageError(
                f"--fold: numpy {np.__version__}: {facts.false_facts()['numpy-memory']}"
            )
        self.numpy = numpy = Numpy()
        self.users: dict[int, Allocations] = {}
        self._functions = _functions(numpy, self.users)
        for function in self._functions:
            # They may be called when modules are being taken down.
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(function))
        large = [ctypes.cast(f, ctypes.c_void_p).value or 0 for f in self._functions]
        self._addresses = hooks.connect(
            numpy.addresses, (large[0], large[1], large[2]), numpy.context or 0, start, stop
        )
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self))

    def offer(self, least: int) -> None:
        """Offer arrays of at least `least` bytes to their ranks' `Allocations`."""
        hooks.offer(least)

    def collect(self) -> None:
        """Report freed arrays to the handlers of their ranks."""
        for number, address in hooks.freed():
            self.users[number].free(address)

    def capsule(self, user: Allocations) -> object:
        """A handler that calls `user`, for `install`."""
        number = len(self.users) + 1
        self.users[number] = user
        return self.numpy.handler(b"pysmpi fold", number, self._addresses)

    def install(self, capsule: object) -> object:
        """Use a handler in the running context from now on; return the previous one."""
        return self.numpy.set(capsule)


def _functions(numpy: Numpy, users: dict[int, Allocations]) -> tuple[Any, ...]:
    """The functions for large arrays: malloc, calloc, and realloc for folded ones.

    They hold all the state that they need, because they may be called late. An exception cannot
    pass through numpy: if memory is missing they return a null pointer, and an interrupt is raised
    again a little later.
    """
    malloc_: Callable[[int | None, int], int | None] = numpy.malloc
    calloc_: Callable[[int | None, int, int], int | None] = numpy.calloc
    context = numpy.context
    move = ctypes.memmove
    again = _again

    def malloc(rank: int, nbytes: int) -> int | None:
        try:
            return users[rank].allocate(nbytes, False) or malloc_(context, nbytes)
        except MemoryError:
            return None
        except KeyboardInterrupt:
            again()
            return malloc_(context, nbytes)

    def calloc(rank: int, number: int, each: int) -> int | None:
        try:
            return users[rank].allocate(number * each, True) or calloc_(context, number, each)
        except MemoryError:
            return None
        except KeyboardInterrupt:
            again()
            return calloc_(context, number, each)

    def realloc(rank: int, address: int, nbytes: int) -> int | None:
        try:
            user = users[rank]
            if user.resize(address, nbytes):
                return address
            moved = user.allocate(nbytes, False) or malloc_(context, nbytes)
            if moved is not None:
                move(moved, address, min(nbytes, user.size(address)))
                user.free(address)
            return moved
        except MemoryError:
            return None

    return _Malloc(malloc), _Calloc(calloc), _Realloc(realloc)


def _again() -> None:
    """Raise an interrupt of a callback again after the callback has ended."""

    def interrupt() -> None:
        sleep(0.02)
        interrupt_main()

    start_new_thread(interrupt, ())
