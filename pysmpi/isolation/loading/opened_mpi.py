"""MPI libraries that C code opens when it is called (`dlopen`), which no import shows.

Once a rank has loaded compiled code that can open libraries, the dynamic linker's count of loaded
libraries is read at each switch of ranks (2.5 us) and at the end of each rank. If an MPI library is
new, the run ends: such a library takes every rank for the only one.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
from collections.abc import Callable
from typing import Any

from pysmpi.errors import UsageError
from pysmpi.isolation.exchange import Exchange, State
from pysmpi.isolation.state import ProcessState
from pysmpi.mpi.base import ranks
from pysmpi.mpi.base.state import StateSlot

# Ends the run of a universe with an error.
END_RUN: StateSlot[ranks.Universe, Callable[[UsageError], None]] = StateSlot(ranks.Universe)

_Visitor = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)


class _LibraryInfo(ctypes.Structure):
    """`struct dl_phdr_info` of the C library."""

    _fields_ = [
        ("address", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("headers", ctypes.c_void_p),
        ("count", ctypes.c_ushort),
        ("added", ctypes.c_ulonglong),
    ]


class OpensMPI(UsageError):
    """C code of a program has opened an MPI library."""


class OpenedLibraries(ProcessState):
    """Looks for MPI libraries among those that the process has loaded since it was armed."""

    name = "opened libraries"
    polled = True

    def __init__(self, exchange: Exchange, pattern: str) -> None:
        super().__init__(exchange)
        self.pattern = re.compile(pattern)
        self.armed = False
        self._count = 0
        self._known: set[str] = set()
        self._added = 0
        self._names: list[str] | None = None
        self._iterate: Any = None
        self._visit = _Visitor(self._note)

    def _note(self, info: int, size: int, data: object) -> int:
        found = _LibraryInfo.from_address(info)
        self._added = found.added
        if self._names is None:
            return 1  # all have the same count
        self._names.append(os.fsdecode(found.name or b""))
        return 0

    def _libraries(self) -> set[str]:
        self._names = []
        try:
            self._iterate(self._visit, None)
            return set(self._names)
        finally:
            self._names = None

    def arm(self) -> None:
        """A rank can open libraries from now on."""
        if self.armed or not sys.platform.startswith("linux"):
            return
        try:
            self._iterate = ctypes.PyDLL(None).dl_iterate_phdr
        except AttributeError:
            return
        self.armed = True
        self.begin()
        self.follow()

    def begin(self) -> None:
        """Take the libraries that are loaded now for granted."""
        if self.armed:
            self._known = self._libraries()
            self._count = self._added

    def differs(self) -> bool:
        """Whether the dynamic linker has loaded libraries since the last look."""
        self._iterate(self._visit, None)
        return self._added != self._count

    def record(self, state: State) -> None:
        """Look what the rank that has run has opened."""
        self.look(state)

    def look(self, state: State) -> None:
        """End the run if an MPI library is new."""
        if not self.armed or not self.differs():
            return
        before = self._known
        self.begin()
        for path in sorted(self._known - before):
            if self.pattern.match(os.path.basename(path)):
                self._end(state, path)
                return

    def _end(self, state: State, path: str) -> None:
        who = "" if state.owner is None else f" of rank {state.owner.number}"
        error = OpensMPI(
            f"C code{who} has opened {os.path.basename(path)} (dlopen), and cannot be simulated: a "
            "real MPI knows nothing of simulated ranks; use a build without MPI, or leave it out "
            f"under pysmpi ({path})"
        )
        universe = getattr(ranks.current(), "universe", None)
        end = None if universe is None else END_RUN.peek(universe)
        if end is not None:
            end(error)
