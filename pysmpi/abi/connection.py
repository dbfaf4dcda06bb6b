"""The functions of MPI that the engine calls: for programs, and for libraries."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache, partial
from signal import Signals

from pysmpi.abi import chapters, engine, sites, smpi
from pysmpi.abi import process as process_calls
from pysmpi.abi.copies import original_of
from pysmpi.abi.entry import ENTRIES, EntryPoint, Refusal
from pysmpi.abi.process import CompiledProcess, here, process_of_caller
from pysmpi.abi.staging import LibraryEntry
from pysmpi.abi.table import Function, functions
from pysmpi.abi.timer import timed
from pysmpi.errors import UsageError
from pysmpi.mpi.base.exceptions import fail
from pysmpi.mpi.base.handles import Handle
from pysmpi.mpi.base.ranks import current
from pysmpi.python.frames import shorten, with_callers
from pysmpi.ranks.stopping import END_RANK


class _Callbacks:
    """Answers the requests of the engine that are no functions of MPI."""

    families: dict[str, type[Handle]] = {}

    def __call__(self, kind: str, number: int) -> Handle | None:
        """The object of a handle that the program has not used before; None if there is none."""
        family = self.families[kind]
        try:
            impl = family._table.find(number)
        except KeyError:
            return None
        handle: Handle = family._wrap(impl)
        if impl is not None:
            here().objects[number] = handle
        return handle

    def refuse(self, function: int, site: int, kind: str, number: int) -> object:
        """The result of a function with a handle that is not valid."""
        if here().outside:
            refusal = _refusals.get(function)
            if refusal is not None:
                refusal.check(site)
        return EntryPoint(partial(self.fail, kind))(site, number)

    def fail(self, kind: str, number: int) -> object:
        """Raise the error of a handle that is not valid."""
        family = self.families[kind]
        fail(family._error, f"no {family.__name__.lower()} has the handle {number:#x}")

    def thread(self) -> None:
        """End the job after a call by a thread that is not the main one of its rank."""
        current().abort(
            1,
            "called MPI from another thread than its main one, the only one that pysmpi serves "
            "(MPI_THREAD_FUNNELED)",
        )

    def crash(self, signal: int, path: str | None, offset: int, name: str | None) -> None:
        """End the job after a fault of a library; nothing if no rank runs."""
        if current().program is None:
            return
        file = original_of(path or "") or path or "a library"
        place, line, function = sites.place_of(sites.number_of(file) << sites.SHIFT | offset + 1)
        if line and os.path.exists(place):
            where = f"at {shorten(place)}:{line} in {function}"
        else:
            known = "a function" if function == "?" else function
            where = f"in {name or known} of {os.path.basename(file)}"
        current().abort(128 + signal, f"got signal {Signals(signal).name} {where}")

    def process(self) -> CompiledProcess | None:
        """The process of the rank whose library calls; None if no rank runs."""
        return process_of_caller()

    def end(self, error: BaseException) -> None:
        """End the rank whose library calls with an exception, and never return."""
        universe = getattr(current(), "universe", None)
        end = None if universe is None else END_RANK.peek(universe)
        if end is None:
            raise error
        end(with_callers(error))


# Gives a library that opens another one, by the address of its name, the file to load; see
# `libraries.py`, which this module does not know.
openers: list[Callable[[int, int], int]] = []


def _open(name: int, everybody: int) -> int:
    return openers[-1](name, everybody) if openers else 0


# In the order of `engine.h`.
CALLS = (*process_calls.CALLS, *smpi.CALLS, _open)
_callbacks = _Callbacks()
_started: list[object] = []
_refusals: dict[int, Refusal] = {}  # by the number of their function


def start() -> None:
    """Connect the entry points with the functions of the chapters, once for a process."""
    if _started:
        return
    chapters.load()
    _Callbacks.families = chapters.FAMILIES
    handlers: list[Callable[..., object]] = []
    direct: list[Callable[..., object]] = []
    for number, name in enumerate(engine.functions()):
        if number < len(CALLS):
            handlers.append(_plain(CALLS[number]))
            direct.append(handlers[-1])
            continue
        function = ENTRIES.get(name) or ENTRIES.get(name.removesuffix("_c"))
        if function is None:
            function = _absent(name)
        entry = EntryPoint(function)
        handlers.append(entry)
        direct.append(partial(_first_of_library, direct, number, function, name))
    for number, name in enumerate(engine.functions()):
        if number >= len(CALLS):
            _refusals[number] = Refusal(name, handlers[number])
    refusals = [_refusals.get(number, handler) for number, handler in enumerate(handlers)]
    _started.append((handlers, refusals, direct))
    engine.start(handlers, refusals, direct, _callbacks)


@cache
def _signatures() -> dict[str, Function]:
    return {function.name: function for function in functions()}


def _first_of_library(
    direct: list[Callable[..., object]],
    number: int,
    function: Callable[..., object],
    name: str,
    site: int,
    *arguments: object,
) -> object:
    """Serve the first call of a function by a library: programs need no entries for libraries."""
    entry = direct[number] = LibraryEntry(function, _signatures()[name])
    return entry(site, *arguments)


def _plain(function: Callable[..., int]) -> Callable[..., object]:
    inner = timed(function)
    return lambda site, *arguments: inner(*arguments)


def _absent(name: str) -> Callable[..., object]:
    def absent(*arguments: object) -> object:
        raise UsageError(f"MPI_{name}, called by a compiled program, cannot be simulated yet")

    return absent
