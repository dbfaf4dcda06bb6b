"""Memory of ranks that the program must not touch: who touches it, and at which line.

While a rank has such memory, a tracing function follows the lines of its program. Before each line
it compares the memory that the line uses (`accesses.py`) with the watched pieces. Libraries and
pysmpi run untraced. A rank without watched memory has no tracing function.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np

from pysmpi.checkers.accesses import memory_of, uses_of
from pysmpi.frames import CallSite, call_site, is_ours, trace_callers
from pysmpi.mpi.base.ranks import Rank, current
from pysmpi.mpi.buffers.spellings import MessageRegion

# `told(rank, writes, memory, site)` when a line is about to use memory that overlaps.
Told = Callable[[Rank, bool, Any, CallSite], None]

_EFFORT: Any = 20_000  # of the exact comparison of two arrays
_PIECES = 4096  # of a message that is not contiguous; above this its gaps count, too


class Watched:
    """A piece of memory of one rank, and whom to tell of its uses."""

    __slots__ = ("pieces", "low", "high", "told")

    def __init__(self, pieces: list[Any], told: Told) -> None:
        self.pieces = pieces
        self.told = told
        bounds = [bounds_of(piece) for piece in pieces]
        self.low = min((low for low, _ in bounds), default=0)
        self.high = max((high for _, high in bounds), default=0)

    def overlaps(self, memory: Any, low: int, high: int) -> bool:
        """Whether an array, which lies from `low` to `high`, shares memory."""
        if high <= self.low or self.high <= low:
            return False
        return any(shares(piece, memory) for piece in self.pieces)


def bounds_of(array: Any) -> tuple[int, int]:
    """The addresses from the first byte of an array to behind its last."""
    low, high = np.lib.array_utils.byte_bounds(array)
    return int(low), int(high)


def shares(one: Any, other: Any) -> bool:
    """Whether two arrays have an element in common; False if that is too hard to find out."""
    try:
        return bool(np.shares_memory(one, other, max_work=_EFFORT))
    except Exception:  # np.exceptions.TooHardError has moved between versions
        return False


def pieces_of(message: Any) -> list[Any]:
    """The memory of a message, as arrays of bytes."""
    if not isinstance(message, MessageRegion) or message.nbytes == 0:
        return []
    if message.data is not None:
        return [np.frombuffer(message.data, np.uint8)]
    memory = message.memory
    if memory.nbytes > 1 << 24:
        return [np.frombuffer(memory, np.uint8)]
    # Let the layout pick the numbers of its bytes.
    numbers = np.zeros(message.nbytes, np.int64)
    index = np.arange(memory.nbytes, dtype=np.int64)
    for byte in range(3):
        part = ((index >> 8 * byte) & 0xFF).astype(np.uint8).data
        stream = bytearray(message.nbytes)
        message.plan.pack(part, message.origin, stream)
        numbers |= np.frombuffer(stream, np.uint8).astype(np.int64) << 8 * byte
    numbers = np.unique(numbers)
    breaks = np.flatnonzero(np.diff(numbers) != 1) + 1
    if len(breaks) > _PIECES:
        return [np.frombuffer(memory, np.uint8)]
    whole = np.frombuffer(memory, np.uint8)
    return [whole[int(run[0]) : int(run[-1]) + 1] for run in np.split(numbers, breaks) if len(run)]


class MemoryWatch:
    """The watched memory of all ranks."""

    def __init__(self) -> None:
        self.watched: dict[int, dict[Any, Watched]] = {}  # by pid, by key
        self.tracing: set[int] = set()
        self._program: dict[Any, bool] = {}

    def watch(self, rank: Rank, key: Any, pieces: list[Any], told: Told) -> None:
        """Tell of the uses of some memory of the running rank, until `forget(rank, key)`."""
        if pieces:
            self.watched.setdefault(rank.pid, {})[key] = Watched(pieces, told)
            if rank.pid not in self.tracing:
                self._begin(rank)

    def forget(self, rank: Rank, key: Any) -> None:
        """Watch a piece of memory no more."""
        mine = self.watched.get(rank.pid)
        if mine is not None:
            mine.pop(key, None)
            if not mine and rank.pid in self.tracing and current() is rank:
                self.tracing.discard(rank.pid)
                if sys.gettrace() == self._called:
                    sys.settrace(None)

    def _begin(self, rank: Rank) -> None:
        if current() is not rank or (sys.gettrace() not in (None, self._called)):
            return  # a debugger or coverage has the function
        self.tracing.add(rank.pid)
        sys.settrace(self._called)
        trace_callers(self._line, self._is_program)

    def _is_program(self, frame: FrameType) -> bool:
        code = frame.f_code
        known = self._program.get(code)
        if known is None:
            site = call_site(frame) if not is_ours(code.co_filename) else None
            known = site is not None and site.file == code.co_filename
            self._program[code] = known
        return known

    def _called(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event != "call":
            return None
        return self._line if self._is_program(frame) else None

    def _line(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line":
            rank = current()
            watched = self.watched.get(rank.pid)
            if watched:
                uses = uses_of(frame.f_code).get(frame.f_lineno)
                if uses:
                    for use in uses:
                        memory = memory_of(use, frame)
                        if memory is not None:
                            self._compare(rank, watched, use.writes, memory, frame)
        return self._line

    def _compare(
        self, rank: Rank, watched: dict[Any, Watched], writes: bool, memory: Any, frame: FrameType
    ) -> None:
        low, high = bounds_of(memory)
        for one in list(watched.values()):
            if one.overlaps(memory, low, high):
                code = frame.f_code
                site = CallSite(code.co_filename, frame.f_lineno, code.co_qualname)
                one.told(rank, writes, memory, site)
