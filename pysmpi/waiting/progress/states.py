"""The state that the code of a suspended thread can see: whether a turn of its loop changed it.

The state of a thread has the instructions of its functions, their variables, the global variables
that they name, and the objects that these hold, down to some depth. Two equal states are no proof
that a loop never ends: objects of C code have parts that Python does not show. A state that
changes shows that the loop may end.
"""

from __future__ import annotations

import array
import collections
import dis
import gc
import itertools
import operator
import random
import sys
import threading
import types
import zlib
from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np

from pysmpi.python.frames import Activation, activations, frame_of, is_library

DEPTH = 6  # of objects within objects
OBJECTS = 2000  # that the state of one thread has at most
ITEMS = 64  # of each container, and its length
BYTES = 1 << 16  # of each array
_JUMPS = frozenset((*dis.hasjrel, *dis.hasjabs))
_ATOMS = (int, str, bytes, complex, type(None), type(Ellipsis), type(NotImplemented))
_BUFFERS = (bytearray, memoryview, array.array, np.ndarray)
_SEQUENCES = (list, tuple, collections.deque)
_FIXED = (types.ModuleType, types.BuiltinFunctionType, types.CodeType, types.FrameType)
_COROUTINES = (types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType)
_COUNTERS = (itertools.count, itertools.repeat)
# Of a thread: each thread that a timer starts has others.
_NAMES_OF_THREADS = {
    "_name",
    "_ident",
    "_native_id",
    "_tstate_lock",
    "_handle",
    "_os_thread_handle",
}


_turns = itertools.count()


class StateReader:
    """Reads the state of one thread; with `clocks`, its floating-point numbers are part of it.

    The numbers of Python's own modules never are: they are the dates of timeouts.
    """

    def __init__(self, clocks: bool) -> None:
        self.clocks = clocks
        self.left = OBJECTS
        self.seen: dict[int, int] = {}
        self.kept: list[object] = []  # or another object would have its number

    def thread(self, greenlet: object) -> int:
        """The state of a suspended thread."""
        return hash(tuple(self.activation(one) for one in activations(greenlet)))

    def activation(self, one: Activation) -> Hashable:
        """The state of a function that has not returned."""
        library = is_library(one.code.co_filename)
        parts = [self.value(value, 1, library) for value in one.variables.values()]
        if not library:
            parts += self.names(one.code, one.globals, 1)
            if in_for_loop(one.code, one.instruction):
                parts.append(next(_turns))  # its iterator, which nothing shows, has moved
        return (id(one.code), one.instruction, *parts)

    def names(self, code: types.CodeType, space: dict[str, Any], depth: int) -> list[Hashable]:
        """The values of the global variables that a function names."""
        result: list[Hashable] = []
        for name in code.co_names:
            value = space.get(name)
            if isinstance(value, types.ModuleType):
                inner = vars(value)
                result += [
                    self.value(inner[other], depth + 1, False)
                    for other in code.co_names
                    if other in inner
                ]
            elif name in space:
                result.append(self.value(value, depth + 1, False))
        return result

    def value(self, value: Any, depth: int, library: bool) -> Hashable:
        """The state of an object; `library` means that code of a library has made it."""
        kind = type(value)
        if isinstance(value, _ATOMS):
            return value if kind is not bytes else hash(value)
        if kind is float:
            return value if self.clocks and not library else 0.0
        if isinstance(value, _FIXED):
            return id(kind)
        result = self.seen.get(id(value))
        if result is not None:
            return result
        if depth > DEPTH or self.left <= 0:
            return id(kind)
        self.left -= 1
        self.seen[id(value)] = len(self.seen)
        self.kept.append(value)
        return id(kind), *self._parts(value, kind, depth + 1)

    def _parts(self, value: Any, kind: type, depth: int) -> Iterable[Hashable]:
        if isinstance(value, _BUFFERS):
            return [memory(value)]
        if isinstance(value, _SEQUENCES):
            some = itertools.islice(value, ITEMS)
            return [len(value), *(self.value(one, depth, False) for one in some)]
        if isinstance(value, dict):
            pairs = itertools.islice(list(value.items()), ITEMS)
            return [len(value), *(self.value(one, depth, False) for pair in pairs for one in pair)]
        if isinstance(value, set | frozenset):
            return [len(value)]
        if isinstance(value, type):
            return self._class(value, depth)
        if isinstance(value, types.FunctionType):
            return self._function(value, depth)
        if isinstance(value, types.MethodType):
            return [self.value(one, depth, False) for one in (value.__func__, value.__self__)]
        if isinstance(value, types.CellType):
            return [] if not _filled(value) else [self.value(value.cell_contents, depth, False)]
        if isinstance(value, _COROUTINES):
            frame = frame_of(value)
            return [] if frame is None else [self.activation(frame)]
        if isinstance(value, _COUNTERS):
            return [repr(value)]
        if isinstance(value, random.Random):
            return [hash(value.getstate())]
        return self._instance(value, kind, depth)

    def _class(self, kind: type, depth: int) -> list[Hashable]:
        module = getattr(kind, "__module__", None)
        if not isinstance(module, str) or _is_library(module):
            return []
        return [self.value(one, depth, False) for one in list(vars(kind).values())[:ITEMS]]

    def _function(self, function: types.FunctionType, depth: int) -> list[Hashable]:
        cells = [self.value(cell, depth, False) for cell in function.__closure__ or ()]
        code = function.__code__
        if is_library(code.co_filename):
            return cells
        defaults = [self.value(one, depth, False) for one in function.__defaults__ or ()]
        return cells + defaults + self.names(code, function.__globals__, depth)

    def _instance(self, value: Any, kind: type, depth: int) -> list[Hashable]:
        module = getattr(kind, "__module__", "")
        if module.partition(".")[0] in ("pysmpi", "mpi4py"):
            held = getattr(value, "_held", None)
            return [held] if isinstance(held, bool) else []
        try:
            content = vars(value)
        except TypeError:
            content = None
        result: list[Hashable] = []
        library = _is_library(module)
        if not isinstance(content, dict) or not content:
            result += _buffer(value)
            if not result:
                # An object of C code: iterators know how much is left.
                result.append(operator.length_hint(value, -1) if hasattr(value, "__next__") else 0)
                result += [self.value(one, depth, library) for one in _referents(value)]
            return result
        hidden = _NAMES_OF_THREADS if isinstance(value, threading.Thread) else ()
        return [
            self.value(one, depth, library)
            for name, one in list(content.items())[:ITEMS]
            if name not in hidden
        ]


def loops(code: types.CodeType, instruction: int) -> list[tuple[int, int]]:
    """The begin and the end of the loops around an instruction, the widest first."""
    result: dict[int, int] = {}
    for one in dis.get_instructions(code):
        if one.opcode in _JUMPS and one.argval <= instruction <= one.offset:
            result[one.argval] = max(one.offset, result.get(one.argval, 0))
    return sorted(result.items())


def in_for_loop(code: types.CodeType, instruction: int) -> bool:
    """Whether an instruction is in a loop over the items of an iterator."""
    begins = {begin for begin, _ in loops(code, instruction)}
    return bool(begins) and any(
        one.opname == "FOR_ITER" and one.offset in begins for one in dis.get_instructions(code)
    )


def names_in_loop(code: types.CodeType, instruction: int) -> frozenset[str] | None:
    """The names in the widest loop around an instruction; None if it is in no loop."""
    around = loops(code, instruction)
    if not around:
        return None
    begin, end = around[0]
    return frozenset(
        one.argval
        for one in dis.get_instructions(code)
        if begin <= one.offset <= end and isinstance(one.argval, str)
    )


def _is_library(module: str) -> bool:
    entry = sys.modules.get(module)
    file = getattr(entry, "__file__", None)
    if file is None:
        return module not in ("__main__", "")
    return is_library(file)


def _filled(cell: types.CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def _referents(value: object) -> list[object]:
    return [one for one in gc.get_referents(value) if not isinstance(one, type)][:ITEMS]


def _buffer(value: Any) -> list[Hashable]:
    """The content of an object with memory, such as one of `ctypes`; none for others."""
    try:
        return [memory(memoryview(value))]
    except (TypeError, ValueError, BufferError):
        return []


def memory(value: Any) -> int:
    """A checksum of the first bytes of an array, and its size."""
    try:
        view = memoryview(value)
        if not view.c_contiguous:
            view = memoryview(view.tobytes())
        content = view.cast("B")
        return zlib.crc32(content[:BYTES], content.nbytes)
    except (TypeError, ValueError, BufferError):
        return 0
