"""Buffers and handles of MPI calls that another thread of the rank uses without an order."""

from __future__ import annotations

import ast
import linecache
from functools import cache

from pysmpi.checkers.describing import place
from pysmpi.checkers.memory import MemoryWatch, Touch, WatchedRegion, overlap
from pysmpi.checkers.memory_of_calls import memory_of_arguments, receives, uses_memory
from pysmpi.checkers.problems.buffers import BuffersOverlap, BufferTouched
from pysmpi.checkers.thread_clocks import ThreadClocks
from pysmpi.mpi.base.ranks import Rank
from pysmpi.mpi.calls import CallKind, MpiCall
from pysmpi.python.frames import CallSite
from pysmpi.reports.findings import Finding, Place

_EVERYTHING = WatchedRegion(0, 1 << 62)
_MOST = 512  # of calls and of uses by one line of a thread that are remembered
_RULE = "MPI 4.1, sections 3.4 and 11.6: "
_CURE = "let one thread wait for the other in between (join, a lock, an event, a barrier)"

_Event = tuple[int, int]


class CallMemory:
    """The memory that a call of a thread reads and writes, at an event of this thread."""

    __slots__ = ("event", "call", "reads", "writes")

    def __init__(
        self,
        event: _Event,
        call: MpiCall,
        reads: list[WatchedRegion],
        writes: list[WatchedRegion],
    ) -> None:
        self.event = event
        self.call = call
        self.reads = reads
        self.writes = writes


class _Use:
    """The use of memory by a line, at an event of its thread."""

    __slots__ = ("event", "memory")

    def __init__(self, event: _Event, memory: WatchedRegion) -> None:
        self.event = event
        self.memory = memory


class ThreadMemory:
    """Compares the memory of the calls of each thread with the uses by other threads.

    A rank is followed from the start of its second thread to the end of its last one. Locks are an
    order. So is a call of MPI that returns, since it may have waited for another thread. Programs
    whose threads sleep in a loop, which may wait for a variable, are spared.
    """

    def __init__(self, clocks: ThreadClocks, memory: MemoryWatch) -> None:
        self.clocks = clocks
        self.memory = memory
        self.findings: list[Finding] = []
        # By pid: the calls, and the uses by thread, line, and whether they write.
        self.calls: dict[int, list[CallMemory]] = {}
        self.uses: dict[int, dict[tuple[int, CallSite, bool], dict[tuple[int, int], _Use]]] = {}
        self.past: dict[object, dict[int, int]] = {}  # of each thread, events that it follows
        self.published: dict[int, dict[int, int]] = {}  # by pid, the last call of each thread
        self.reported: set[object] = set()

    # Threads.

    def begun(self, rank: Rank) -> None:
        """A rank has a second thread, which runs."""
        self.memory.watch(rank, "threads", [_EVERYTHING], self.touched)

    def resumed(self, rank: Rank) -> None:
        """A thread of a rank with several takes or frees a lock."""
        self.memory.resumed(rank)

    def ended(self, rank: Rank) -> None:
        """Only the main thread of a rank is left, and runs."""
        self.memory.forget(rank, "threads")
        self.calls.pop(rank.pid, None)
        self.uses.pop(rank.pid, None)

    def _follows(self, fiber: object, number: int, event: _Event) -> bool:
        return self.clocks.knows(fiber, event) or (
            self.past.get(number, {}).get(event[0], 0) >= event[1]
        )

    # Uses.

    def touched(self, rank: Rank, touch: Touch) -> None:
        """A line of the program uses memory."""
        fiber = self.clocks.running(rank)
        if fiber is None:
            return
        event = self.clocks.now(fiber, rank)
        memory = [touch.memory]
        for other in self.calls.get(rank.pid, ()):
            if other.event[0] == event[0]:
                continue
            if overlap(memory, other.writes) or (touch.writes and overlap(memory, other.reads)):
                if not self._follows(fiber, event[0], other.event):
                    self._used(rank, other.call, touch.site, touch.writes)
        uses = self.uses.setdefault(rank.pid, {}).setdefault(
            (event[0], touch.site, touch.writes), {}
        )
        if len(uses) >= _MOST:
            del uses[next(iter(uses))]
        uses[touch.memory.low, touch.memory.high] = _Use(event, touch.memory)

    # Calls.

    def call_made(self, call: MpiCall) -> None:
        """Compare the memory of a call with that of other threads."""
        rank = call.rank
        number, count = self.clocks.now(call.fiber, rank)
        if call.kind is not CallKind.LOCAL:
            self.published.setdefault(rank.pid, {})[number] = count
        if not uses_memory(call) or call.name[0].islower():
            return
        reads: list[WatchedRegion] = []
        writes: list[WatchedRegion] = []
        for name, regions in memory_of_arguments(call).items():
            (writes if receives(call, name) else reads).extend(regions)
        if not reads and not writes:
            return
        mine = CallMemory((number, count), call, reads, writes)
        calls = self.calls.setdefault(rank.pid, [])
        for other in calls:
            if other.event[0] != number and not self._follows(call.fiber, number, other.event):
                if (
                    overlap(writes, other.writes)
                    or overlap(writes, other.reads)
                    or overlap(reads, other.writes)
                ):
                    self._both(call, other.call)
        for (thread, site, writing), uses in self.uses.get(rank.pid, {}).items():
            if thread == number:
                continue
            for use in uses.values():
                memory = [use.memory]
                if overlap(memory, writes) or (writing and overlap(memory, reads)):
                    if not self._follows(call.fiber, number, use.event):
                        self._used(rank, call, site, writing)
                        break
        if len(calls) >= _MOST:
            del calls[0]
        calls.append(mine)

    def call_returned(self, call: MpiCall) -> None:
        """A call may have waited for those that other threads have made."""
        if call.kind is not CallKind.LOCAL:
            number = self.clocks.now(call.fiber, call.rank)[0]
            past = self.past.setdefault(number, {})
            for thread, event in self.published.get(call.rank.pid, {}).items():
                past[thread] = max(past.get(thread, 0), event - 1)

    def _used(self, rank: Rank, call: MpiCall, site: CallSite, writes: bool) -> None:
        key = rank.pid, site, call.site
        if key in self.reported or _polls(site) or _polls(call.site):
            return
        self.reported.add(key)
        verb = "writes" if writes else "reads"
        self.findings.append(
            Finding(
                BufferTouched,
                f"a thread {verb} the buffer of {call.name}, which another thread calls, without "
                "an order",
                [
                    Place([rank.pid], f"the program {verb}", site, "in a thread"),
                    place(call, "in another thread"),
                ],
                _RULE + "until a call ends, no thread writes to a buffer that it reads, or uses "
                "one that it writes",
                _CURE,
            )
        )

    def _both(self, call: MpiCall, other: MpiCall) -> None:
        key = call.rank.pid, frozenset((call.site, other.site))
        if key in self.reported or _polls(call.site) or _polls(other.site):
            return
        self.reported.add(key)
        self.findings.append(
            Finding(
                BuffersOverlap,
                f"{call.name} and {other.name} of two threads use one buffer, without an order",
                [place(call, "in a thread"), place(other, "in another thread")],
                _RULE + "a buffer that a call writes belongs to it until it ends",
                "use different buffers, or " + _CURE,
            )
        )


def _polls(site: CallSite | None) -> bool:
    return site is not None and _polls_in(site.file)


@cache
def _polls_in(file: str) -> bool:
    """Whether a file has a loop that sleeps, or does nothing, until its condition is false."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return True
    for loop in ast.walk(tree):
        if isinstance(loop, ast.While):
            if all(isinstance(one, ast.Pass) for one in loop.body):
                return True
            for node in ast.walk(loop):
                if isinstance(node, ast.Call):
                    name = getattr(node.func, "attr", getattr(node.func, "id", ""))
                    if name in ("sleep", "backoff"):
                        return True
    return False
