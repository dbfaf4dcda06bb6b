"""Memory of ranks that the program must not touch, and the lines that touch it.

While a rank has such memory, a tracing function follows the lines of its program. Before each line
it compares the memory that the line uses (`accesses.py`) with the watched pieces. Libraries and
pysmpi run untraced. A rank without watched memory has no tracing function.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from types import CodeType, FrameType
from typing import Any

import numpy as np

from pysmpi.checkers.accesses import Use, uses_of
from pysmpi.checkers.expressions import Elements, memory_of
from pysmpi.mpi.base.exporting import address_of
from pysmpi.mpi.base.ranks import Rank, current
from pysmpi.mpi.buffers.spellings import MessageRegion
from pysmpi.python.frames import (
    CallSite,
    call_site,
    get_trace,
    is_assigned,
    is_ours,
    set_trace,
    trace_callers,
)

_MOST = 1 << 18  # intervals of one region; beyond this its gaps count, too


class WatchedRegion:
    """Memory as intervals of addresses, sorted and apart from each other, from `low` to `high`.

    `starts` and `stops` are their ends; without `starts` there is one interval.
    """

    __slots__ = ("_starts", "_stops", "low", "high")

    def __init__(self, low: int, high: int, starts: Any = None, stops: Any = None) -> None:
        self.low = low
        self.high = high
        self._starts = starts
        self._stops = stops

    @property
    def starts(self) -> Any:
        """The begins of the intervals."""
        return np.array([self.low]) if self._starts is None else self._starts

    @property
    def stops(self) -> Any:
        """The addresses after the intervals."""
        return np.array([self.high]) if self._stops is None else self._stops

    @classmethod
    def flat(cls, memory: Any) -> WatchedRegion:
        """The region of contiguous memory."""
        address = address_of(memory)
        nbytes: int = memory.nbytes
        return cls(address, address + nbytes)

    @classmethod
    def of_intervals(cls, starts: Any, stops: Any) -> WatchedRegion:
        """The region of sorted intervals."""
        return cls(int(starts[0]), int(stops[-1]), starts, stops)

    @classmethod
    def of_array(cls, array: Any) -> WatchedRegion:
        """The region of an array with any strides."""
        flags = array.flags
        if flags.c_contiguous or flags.f_contiguous:
            low = address_of(array)
            nbytes: int = array.nbytes
            return cls(low, low + nbytes)
        low, high = np.lib.array_utils.byte_bounds(array)
        length = array.itemsize
        outer: list[tuple[int, int]] = []
        for stride, count in sorted((abs(s), n) for s, n in zip(array.strides, array.shape)):
            if count == 1 or stride == 0:
                continue
            if stride == length and not outer:
                length *= count
            else:
                outer.append((stride, count))
        total = 1
        starts = np.array([low], np.int64)
        for stride, count in outer:
            total *= count
            if total > _MOST:
                return cls(low, high)
            starts = (starts[:, None] + np.arange(count, dtype=np.int64) * stride).ravel()
        starts.sort()
        return cls.of_intervals(starts, starts + length)

    @classmethod
    def of_offsets(cls, address: int, offsets: Any) -> WatchedRegion:
        """The region of single bytes at sorted offsets from an address."""
        breaks = np.flatnonzero(np.diff(offsets) != 1)
        first = np.concatenate(([0], breaks + 1))
        last = np.concatenate((breaks, [len(offsets) - 1]))
        return cls.of_intervals(address + offsets[first], address + offsets[last] + 1)

    def overlaps(self, other: WatchedRegion) -> bool:
        """Whether the two have a byte in common."""
        if self.high <= other.low or other.high <= self.low:
            return False
        if self._starts is None and other._starts is None:
            return self.low < self.high and other.low < other.high
        if len(self.starts) > len(other.starts):
            self, other = other, self
        # The first interval of the other that ends behind the begin of each of these.
        where = np.searchsorted(other.stops, self.starts, side="right")
        inside = where < len(other.starts)
        return bool(np.any(other.starts[where[inside]] < self.stops[inside]))


class Touch:
    """The use of some memory by a line of the program; `polls` if a loop waits for a change."""

    __slots__ = ("writes", "memory", "site", "polls")

    def __init__(self, writes: bool, memory: WatchedRegion, site: CallSite, polls: bool) -> None:
        self.writes = writes
        self.memory = memory
        self.site = site
        self.polls = polls


# Called before a line uses memory that overlaps.
Report = Callable[[Rank, Touch], None]


def region_of(message: object) -> WatchedRegion | None:
    """The memory of a message; None if it has none."""
    if not isinstance(message, MessageRegion) or message.nbytes == 0:
        return None
    if message.data is not None:
        return WatchedRegion.flat(message.data)
    memory = message.memory
    if memory.nbytes > 1 << 24:
        return WatchedRegion.flat(memory)
    # Let the layout pick the numbers of its bytes.
    numbers = np.zeros(message.nbytes, np.int64)
    index = np.arange(memory.nbytes, dtype=np.int64)
    for byte in range(3):
        part = ((index >> 8 * byte) & 0xFF).astype(np.uint8).data
        stream = bytearray(message.nbytes)
        message.plan.pack(part, message.origin, stream)
        numbers |= np.frombuffer(stream, np.uint8).astype(np.int64) << 8 * byte
    return WatchedRegion.of_offsets(address_of(memory), np.unique(numbers))


def regions_of(message: object) -> list[WatchedRegion]:
    """The memory of a message, as a list that may be empty."""
    region = region_of(message)
    return [] if region is None else [region]


def overlap(some: Sequence[WatchedRegion], others: Sequence[WatchedRegion]) -> bool:
    """Whether one of some regions has a byte in common with one of the others."""
    return any(one.overlaps(other) for one in some for other in others)


class Watched:
    """Some memory of one rank, and the function that hears of its uses."""

    __slots__ = ("regions", "report")

    def __init__(self, regions: Sequence[WatchedRegion], report: Report) -> None:
        self.regions = regions
        self.report = report


class MemoryWatch:
    """The watched memory of all ranks."""

    def __init__(self) -> None:
        self.watched: dict[int, dict[object, Watched]] = {}  # by pid, by key
        self.tracing: set[int] = set()
        self._on_call = self._called  # one object each
        self._on_line = self._line
        self._follows = False
        self._statements: dict[int, _Statement] = {}  # that are under way, by id of the frame
        # Whether a code is the program's, by its identity: its hash takes long. The codes are kept.
        self._program: dict[int, tuple[CodeType, bool]] = {}

    def watch(
        self, rank: Rank, key: object, regions: Sequence[WatchedRegion], report: Report
    ) -> None:
        """Report the uses of some memory of the running rank, until `forget(rank, key)`."""
        if regions:
            self.watched.setdefault(rank.pid, {})[key] = Watched(regions, report)
            if rank.pid not in self.tracing:
                self._begin(rank)
            else:
                before = get_trace()
                if before is None or before == self._on_call:
                    set_trace(self._on_call)
                    # Those of another thread.
                    trace_callers(self._on_line, self._is_program, self._program)

    def forget(self, rank: Rank, key: object) -> None:
        """Stop watching a piece of memory."""
        mine = self.watched.get(rank.pid)
        if mine is not None:
            mine.pop(key, None)
            if not mine and rank.pid in self.tracing and current() is rank:
                self.tracing.discard(rank.pid)
                if get_trace() == self._on_call:
                    set_trace(None)

    def resumed(self, rank: Rank) -> None:
        """A thread of the running rank goes on, perhaps while another one is in an MPI call."""
        if rank.pid in self.tracing and get_trace() is None:
            set_trace(self._on_call)

    def pause(self) -> bool:
        """Stop tracing until `proceed`, as MPI's functions do not count; return whether it ran."""
        if not self.tracing or get_trace() != self._on_call:
            return False
        set_trace(None)
        return True

    def proceed(self, rank: Rank, paused: bool) -> None:
        """Trace again after an MPI call; `paused` is the value that `pause` returned."""
        if rank.pid in self.tracing and (paused or get_trace() is None):
            set_trace(self._on_call)

    def _begin(self, rank: Rank) -> None:
        before = get_trace()
        if current() is not rank or (before is not None and before != self._on_call):
            return  # a debugger or coverage has the function
        self.tracing.add(rank.pid)
        self._statements.clear()
        if self._follows:
            set_trace(self._on_call)
        else:
            # From here on, each greenlet has a tracing function of its own.
            sys.settrace(self._on_call)
            self._follows = True
        trace_callers(self._on_line, self._is_program, self._program)

    def _is_program(self, frame: FrameType) -> bool:
        code = frame.f_code
        entry = self._program.get(id(code))
        if entry is None:
            site = call_site(frame) if not is_ours(code.co_filename) else None
            entry = code, site is not None and site.file == code.co_filename
            self._program[id(code)] = entry
        return entry[1]

    def _called(self, frame: FrameType, event: str, argument: object) -> Any:
        if event != "call":
            return None
        self._statements.pop(id(frame), None)
        return self._on_line if self._is_program(frame) else None

    def _line(self, frame: FrameType, event: str, argument: object) -> object:
        if event != "line" and event != "return":
            return self._on_line
        line = frame.f_lineno if event == "line" else 0
        if self._statements:
            before = self._statements.get(id(frame))
            if before is not None:
                if before.line < line <= before.last:
                    before.inside = True
                    return self._on_line
                if before.inside and line == before.line:
                    return self._on_line  # back at its first line
                del self._statements[id(frame)]
                self._look(before.late, frame, before.line)
        if line:
            code = frame.f_code
            uses = uses_of(code).get(line)
            if uses is not None:
                early, late, last = uses
                if late or last > line:
                    self._statements[id(frame)] = _Statement(line, last, late)
                if early:
                    self._look(early, frame, line)
        return self._on_line

    def _look(self, uses: Sequence[Use], frame: FrameType, line: int) -> None:
        """Compare the memory that a line uses with the watched memory of the running rank."""
        rank = current()
        watched = self.watched.get(rank.pid)
        if watched:
            for use in uses:
                if use.when and not _has_come(use, frame, line):
                    continue
                memory = memory_of(use, frame)
                if memory is not None:
                    self._compare(rank, watched, use, memory, frame, line)

    def _compare(
        self,
        rank: Rank,
        watched: dict[object, Watched],
        use: Use,
        memory: object,
        frame: FrameType,
        line: int,
    ) -> None:
        if isinstance(memory, Elements):
            region = WatchedRegion.of_intervals(memory.starts, memory.starts + memory.itemsize)
        else:
            region = WatchedRegion.of_array(memory)
        for one in list(watched.values()):
            if overlap(one.regions, (region,)):
                code = frame.f_code
                site = CallSite(code.co_filename, line, code.co_qualname)
                one.report(rank, Touch(use.writes, region, site, use.polls))


class _Statement:
    """A statement that a frame executes: its lines, and its uses that follow a call."""

    __slots__ = ("line", "last", "late", "inside")

    def __init__(self, line: int, last: int, late: Sequence[Use]) -> None:
        self.line = line
        self.last = last
        self.late = late
        self.inside = False  # whether the frame has left its first line


def _has_come(use: Use, frame: FrameType, line: int) -> bool:
    """Whether a loop is at the step in which it uses the memory."""
    code = frame.f_code
    if use.when == "again":  # a comprehension has had its first item
        return len(code.co_varnames) > 1 and is_assigned(frame, code.co_varnames[1], True)
    starts = (first for first, _, number in code.co_lines() if number == line)
    return frame.f_lasti == min(starts, default=-1)
