"""Buffers of libraries that lie on the stack of the thread.

Code that Python calls runs on the stack of the thread, and greenlets exchange what ranks have
there. A message may arrive, or be read, while another rank runs. A call with a buffer on the stack
therefore gets a copy of the stack from the buffer on. When the call, or the request that it has
started, is over, the bytes of the copy that have changed are written to the stack: no others are
of a message that has been received.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from pysmpi.abi import engine
from pysmpi.abi.entry import error_code
from pysmpi.abi.process import CompiledProcess, here
from pysmpi.abi.table import Function
from pysmpi.abi.values import read_integers
from pysmpi.errors import UsageError

_BUFFERS = frozenset("buf buffer sendbuf recvbuf origin_addr result_addr compare_addr base".split())
# A buffer may stay: other ranks read and write it at any time.
_WINDOWS = frozenset(("Win_create", "Win_attach"))
_LOCAL = frozenset(
    (*_WINDOWS, "Win_detach", "Buffer_attach", "Comm_attach_buffer", "Session_attach_buffer",
     "Free_mem", "Reduce_local")
)  # fmt: skip
# Calls after which the buffers of accesses are the program's again: those of one target, and all.
_ONE = frozenset(("Win_unlock", "Win_flush"))
_ALL = frozenset(("Win_fence", "Win_complete", "Win_unlock_all", "Win_flush_all", "Win_free"))
_LOCALLY = frozenset(("Win_flush_local", "Win_flush_local_all"))

_stack = [0, 0]  # the addresses of the thread's stack


def begin() -> None:
    """The stack is that of the thread that runs."""
    _stack[:] = engine.stack()


class StackCopy:
    """A copy of the stack of a rank, from an address on."""

    def __init__(self, low: int, key: object, target: int | None = None) -> None:
        self.low = low
        self.size = _stack[1] - low
        self.key: Any = key  # the request, window or file that it waits for
        self.target = target
        self.active = True
        self.memory = numpy.frombuffer(engine.view(low, self.size), numpy.uint8).copy()
        self.before = self.memory.copy()
        self.offset = self.memory.ctypes.data - low

    def refresh(self) -> None:
        """Copy the stack again, for a request that starts again."""
        self.memory[:] = self.before[:] = numpy.frombuffer(
            engine.view(self.low, self.size), numpy.uint8
        )
        self.active = True

    def give(self) -> None:
        """Write to the stack what has been received."""
        changed = numpy.flatnonzero(self.memory != self.before)
        if len(changed):
            stack = numpy.frombuffer(engine.view(self.low, self.size), numpy.uint8)
            stack[changed] = self.before[changed] = self.memory[changed]


class LibraryEntry:
    """Calls one function of MPI for libraries, and returns its error code."""

    __slots__ = ("buffers", "datatypes", "function", "name", "names", "settles")

    def __init__(self, function: Callable[..., object], signature: Function) -> None:
        self.function = function
        self.name = signature.name.removesuffix("_c")
        self.names = {each.name: place for place, each in enumerate(signature.arguments)}
        self.buffers = [
            place
            for place, each in enumerate(signature.arguments)
            if each.type == "void" and each.stars == "*" and each.name in _BUFFERS
            if self.name not in _LOCAL or self.name in _WINDOWS
        ]
        self.datatypes = [
            place
            for place, each in enumerate(signature.arguments)
            if each.type == "Datatype" and not each.pointer
        ]
        self.settles = (
            self.name in _ONE | _ALL | _LOCALLY
            or self.name.endswith("_end")
            or any(each.type == "Request" for each in signature.arguments)
        )

    def __call__(self, site: int, *arguments: Any) -> Any:
        low, high = _stack
        for place in self.buffers:
            if low <= arguments[place] < high or not arguments[place]:
                arguments = self._staged(arguments)
                break
        try:
            if self.settles or self.buffers:
                return self._settling(arguments)
            return self.function(*arguments)
        except Exception as error:
            return error_code(error, arguments)

    def _staged(self, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments with copies in place of buffers on the stack."""
        low, high = _stack
        places = [place for place in self.buffers if low <= arguments[place] < high]
        if any(not arguments[place] for place in self.buffers):
            self._check_absolute(arguments)
        if not places:
            return arguments
        if self.name in _WINDOWS:
            raise UsageError(
                f"MPI_{self.name}: the memory of the window is on the stack of a library, which "
                "is another rank's while that runs; allocate it (malloc, MPI_Alloc_mem)"
            )
        first = min(arguments[place] for place in places)
        first += min(0, *(arguments[place].Get_true_extent()[0] for place in self.datatypes), 0)
        target = arguments[self.names["target_rank"]] if "target_rank" in self.names else None
        stage = StackCopy(max(first, low), None, target)
        here().stages.append(stage)
        changed = list(arguments)
        for place in places:
            changed[place] += stage.offset
        return tuple(changed)

    def _check_absolute(self, arguments: tuple[Any, ...]) -> None:
        """Refuse types with addresses on the stack, at `MPI_BOTTOM`."""
        low, high = _stack
        for place in self.datatypes:
            begin, length = arguments[place].Get_true_extent()
            if length and begin < high and begin + length > low:
                raise UsageError(
                    f"MPI_{self.name}: a datatype at MPI_BOTTOM has addresses on the stack of a "
                    "library, which is another rank's while that runs; allocate these variables"
                )

    def _settling(self, arguments: tuple[Any, ...]) -> Any:
        process = here()
        if not process.stages:
            return self.function(*arguments)
        if self.name in ("Start", "Startall"):
            self._restart(process, arguments)
        try:
            return self.function(*arguments)
        finally:
            self._settle(process, arguments)

    def _requests(self, arguments: tuple[Any, ...]) -> list[int]:
        """The integers of the requests among the arguments."""
        if "request" in self.names:
            return [read_integers(arguments[self.names["request"]], 1)[0] & 0xFFFFFFFF]
        place = self.names["array_of_requests"]
        numbers = read_integers(arguments[place], arguments[self.names["count"]])
        return [number & 0xFFFFFFFF for number in numbers]

    def _restart(self, process: CompiledProcess, arguments: tuple[Any, ...]) -> None:
        for number in self._requests(arguments):
            for stage in process.stages:
                if stage.key == ("request", number):
                    stage.refresh()

    def _settle(self, process: CompiledProcess, arguments: tuple[Any, ...]) -> None:
        """After a call: give what has been received, and remember what has been started."""
        process.stages = [
            stage for stage in process.stages if not self._is_over(stage, process, arguments)
        ]

    def _is_over(
        self, stage: StackCopy, process: CompiledProcess, arguments: tuple[Any, ...]
    ) -> bool:
        names = self.names
        if stage.key is None:  # of this call
            if "request" in names:
                stage.key = "request", self._requests(arguments)[0]
                stage.active = not self.name.endswith("_init")
            elif "win" in names and stage.target is not None:
                stage.key = "window", id(arguments[names["win"]]._impl)
            elif self.name.endswith("_begin"):
                stage.key = "file", arguments[names["fh"]]
            else:
                stage.give()
            return stage.key is None
        kind, number = stage.key
        if kind == "request":
            request = process.objects.get(number)
            if request is None:
                stage.give()
                if self.name == "Request_free":  # it may go on
                    stage.key = "nothing", 0
                return self.name != "Request_free"
            if stage.active and self.name.startswith(("Wait", "Test")) and request.Get_status():
                stage.give()
                stage.active = False
        elif kind == "window" and number == id(getattr(self._of(arguments, "win"), "_impl", None)):
            if self.name in _ONE | _ALL | _LOCALLY:
                stage.give()
            rank = self._of(arguments, "rank")
            return self.name in _ALL or self.name in _ONE and rank == stage.target
        elif kind == "file" and self.name.endswith("_end") and number == self._of(arguments, "fh"):
            stage.give()
            return True
        return False

    def _of(self, arguments: tuple[Any, ...], name: str) -> Any:
        place = self.names.get(name)
        return None if place is None else arguments[place]
