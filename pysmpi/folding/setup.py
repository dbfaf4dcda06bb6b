"""`--fold`: the folded arrays of a run, and the memory that they save."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import index
from types import CodeType
from typing import Any

import numpy as np

from pysmpi import hints
from pysmpi.errors import UsageError
from pysmpi.folding.arena import Arena
from pysmpi.folding.faults import Faults
from pysmpi.folding.handler import AllocationHandlers
from pysmpi.folding.ledger import PAGE, Ledger, MemoryOwner, Tally
from pysmpi.folding.partial import Partial, array_at, runs_of
from pysmpi.mpi.base.ranks import Rank, current, outside
from pysmpi.mpi.buffers.payload import PAYLOAD
from pysmpi.platform.units import parse_size
from pysmpi.python.frames import stack
from pysmpi.ranks.instruments import Instrument
from pysmpi.time.figures import FoldedLineFigures, FoldingFigures
from pysmpi.time.stopwatch import Stopwatch

# Smaller arrays (bytes) of a named function are not worth an inspection of the stack.
LEAST = 1 << 16
_NEVER = 1 << 62
_NAME = r"[^\W\d]\w*(\.[^\W\d]\w*)*\Z"
# Frames of libraries that allocate on behalf of their callers.
_BEHALF = ("numpy", "pysmpi.shadow", "pysmpi.hints", "pysmpi.folding")

_process: list[Any] = []  # the arena and the handlers; arrays may need them after a run


class FoldRules:
    """The targets of `--fold`: arrays of at least `size` bytes, and those of some functions.

    `off` is true if `pysmpi.shared_empty` also allocates private memory.
    """

    def __init__(self, words: Iterable[str]) -> None:
        self.size: int | None = None
        self.functions: set[tuple[str, str]] = set()
        self.off = False
        for word in words:
            if word == "none":
                self.off = True
            elif word[:1].isdigit():
                self.size = self._size(word)
            else:
                module, colon, path = word.partition(":")
                if not (colon and re.match(_NAME, module) and re.match(_NAME, path)):
                    raise UsageError(
                        f"--fold {word}: expected a size such as 1MiB, MODULE:FUNCTION such as "
                        "__main__:new_field, or none"
                    )
                self.functions.add((module, path))
        if self.off and self:
            raise UsageError("--fold none: expected no other --fold with it")

    def _size(self, word: str) -> int:
        try:
            size = parse_size(word)
        except UsageError as error:
            raise UsageError(f"--fold {word}: {error}") from None
        if size < PAGE:
            raise UsageError(f"--fold {word}: expected a size from 4KiB on")
        return size

    def __bool__(self) -> bool:
        return self.size is not None or bool(self.functions)

    @property
    def least(self) -> int:
        """The size (bytes) from which arrays have to be looked at."""
        sizes = [] if self.size is None else [self.size]
        return min(sizes + [LEAST] if self.functions else sizes, default=_NEVER)


class Folding(Instrument):
    """The folded memory of one run; a context manager."""

    def __init__(self, words: Iterable[str] | str, stopwatch: Stopwatch) -> None:
        self.rules = FoldRules([words] if isinstance(words, str) else words)
        self.stopwatch = stopwatch
        self.ledger: Ledger | None = None
        self.partial: Partial | None = None
        self._owners: dict[int, RankMemory] = {}  # by pid
        self._matches: dict[CodeType, bool] = {}
        self._ours: dict[str, int] = {}
        self.thread_begun = self.enter if self.rules else None

    def finish(self, result: Any) -> None:
        result.folding = self.report()

    def __enter__(self) -> Folding:
        if self.rules:
            self._begin()
        _running.append(self)
        hints.allocate = None if self.rules.off else self.shared_empty
        return self

    def _begin(self) -> None:
        """Prepare folding; only a run that folds does this."""
        if self.ledger is not None:
            return
        if not sys.platform.startswith("linux"):
            raise UsageError(f"--fold: expected Linux, got platform {sys.platform}")
        if not _process:
            arena = Arena()
            _process[:] = arena, AllocationHandlers(arena.start, arena.stop)
        arena, handlers = _process
        self.arena: Arena = arena
        self.handlers: AllocationHandlers = handlers
        self.stopwatch.pause()
        try:
            self.ledger = Ledger(arena.allocate, arena.release)
            self.partial = Partial(arena.pages)
            self.faults = Faults()
            handlers.offer(self.rules.least)
        finally:
            self.stopwatch.resume()
        PAYLOAD.fold(arena.start, arena.stop, PAGE, self.partial.shared)

    def __exit__(self, *exception: object) -> None:
        _running.remove(self)
        hints.allocate = None
        if self.ledger is not None and self.partial is not None:
            self.handlers.offer(_NEVER)
            self.handlers.collect()
            PAYLOAD.unfold()
            self.ledger.close()
            self.partial.close()

    def enter(self, rank: Rank) -> None:
        """Start to fold the arrays of a rank, in the greenlet that runs."""
        self.handlers.install(self.memory_of(rank.pid).capsule)

    def memory_of(self, pid: int) -> RankMemory:
        """The folded arrays of a rank."""
        memory = self._owners.get(pid)
        if memory is None:
            self._begin()
            assert self.ledger is not None
            memory = self._owners[pid] = RankMemory(self, self.ledger.owner())
            memory.capsule = self.handlers.capsule(memory)
        return memory

    def shared_empty(
        self,
        shape: Any,
        dtype: np.dtype[Any],
        private: Sequence[object],
        place: tuple[CodeType, int],
    ) -> np.ndarray | None:
        """The result of `pysmpi.shared_empty`; None for `numpy.empty`."""
        rank = current()
        shape = (shape,) if hasattr(shape, "__index__") else tuple(shape)
        shape = tuple(map(index, shape))
        nbytes = dtype.itemsize * math.prod(shape)
        if rank is outside or nbytes == 0 or min(shape, default=1) < 0 or dtype.hasobject:
            return None
        self.stopwatch.pause()
        _state.busy = True
        try:
            memory = self.memory_of(rank.pid)
            self.handlers.collect()
            if not private:
                address = memory.take(place, nbytes, False)
                return array_at(address, shape, dtype, memory.drop, address)
            runs = [run for item in private for run in runs_of(shape, dtype, item)]
            assert self.partial is not None
            address = self.partial.allocate(rank.pid, place, nbytes, runs)
            return array_at(address, shape, dtype, self._drop, rank.pid, address)
        finally:
            _state.done()
            self.stopwatch.resume()

    def _drop(self, pid: int, address: int) -> None:
        assert self.partial is not None
        if _state.busy:
            _state.waiting.append((self.partial.free, (pid, address)))
        else:
            self.partial.free(pid, address)

    def place(
        self, nbytes: int, callers: Iterator[tuple[CodeType, int, str]]
    ) -> tuple[CodeType, int] | None:
        """The line of the program that allocates an array; None if it is not to be folded."""
        # The innermost line outside numpy; without one, the array is folded on behalf of pysmpi.
        for code, line, module in callers:
            kind = self._kind(module)
            if kind == _SIMULATOR:
                return None
            if kind == _PROGRAM:
                place = code, line
                break
        else:
            return None
        size = self.rules.size
        if size is not None and nbytes >= size:
            return place
        matches = self._matches
        while True:
            match = matches.get(code)
            if match is None:
                match = matches[code] = (module, code.co_qualname) in self.rules.functions
            if match:
                return place
            caller = next(callers, None)
            if caller is None:
                return None
            code, _, module = caller

    def _kind(self, name: str) -> int:
        kind = self._ours.get(name)
        if kind is None:
            if any(name == root or name.startswith(root + ".") for root in _BEHALF):
                kind = _LIBRARY
            else:
                simulator = name == "pysmpi" or name.startswith("pysmpi.")
                kind = _SIMULATOR if simulator else _PROGRAM
            self._ours[name] = kind
        return kind

    def report(self) -> FoldingFigures | None:
        """The sizes of folded arrays, in bytes; None if no array was folded.

        `needed_bytes` is the largest size of all arrays that a rank held at one time, summed over
        the ranks; `taken_bytes` the largest amount of shared memory; `resident_bytes` the peak
        memory of this process; and `job_bytes` its peak memory without folding.
        """
        parts = [self.ledger, self.partial.ledger if self.partial is not None else None]
        ledgers = [ledger for ledger in parts if ledger is not None]
        tallies = [item for ledger in ledgers for item in ledger.tallies.items()]
        if not tallies or self.partial is None:
            return None
        needed = sum(ledger.needed for ledger in ledgers)
        taken = sum(ledger.most_taken for ledger in ledgers) + self.partial.most_private
        resident = resident_bytes()
        lines = sorted(tallies, key=lambda item: -item[1].most_live)
        return {
            "needed_bytes": needed,
            "taken_bytes": taken,
            "resident_bytes": resident,
            "job_bytes": None if resident is None else resident + max(0, needed - taken),
            "arrays": sum(tally.arrays for _, tally in lines),
            "lines": [_line(place, tally) for place, tally in lines],
        }


def _line(place: Any, tally: Tally) -> FoldedLineFigures:
    code, number = place
    return {
        "place": f"{code.co_filename}:{number}",
        "function": code.co_qualname,
        "arrays": tally.arrays,
        "needed_bytes": tally.most_live,
        "taken_bytes": tally.most_taken,
    }


class RankMemory:
    """The folded arrays of one rank, for its handler."""

    __slots__ = ("capsule", "folding", "owner")

    capsule: object

    def __init__(self, folding: Folding, owner: MemoryOwner) -> None:
        self.folding = folding
        self.owner = owner

    def allocate(self, nbytes: int, zero: bool) -> int:
        """The address for a new array; 0 if numpy should allocate it."""
        if _state.busy:
            return 0
        folding = self.folding
        stopwatch = folding.stopwatch
        stopwatch.pause()
        _state.busy = True
        try:
            folding.handlers.collect()
            place = folding.place(nbytes, stack(2))
            return 0 if place is None else self.take(place, nbytes, zero)
        finally:
            _state.done()
            stopwatch.resume()

    def take(self, place: object, nbytes: int, zero: bool) -> int:
        """The address for an array that is allocated at a place of the program."""
        folding = self.folding
        ledger, owner = folding.ledger, self.owner
        assert ledger is not None
        before = owner.peak
        block = ledger.take(owner, place, nbytes)
        if block.fresh:
            return block.address
        if zero and block.holders == 1:
            folding.arena.clear(block.address, block.nbytes)
        else:
            cost = folding.faults.cost(nbytes, owner.peak - before)
            folding.stopwatch.charge(cost)
        return block.address

    def resize(self, address: int, nbytes: int) -> bool:
        """Let the array at an address grow or shrink in its block, if it can."""
        block, before = self.owner.held[address]
        if nbytes > block.nbytes:
            return False
        owner = self.owner
        owner.held[address] = block, nbytes
        owner.live += nbytes - before
        owner.peak = max(owner.peak, owner.live)
        assert block.line is not None
        block.line.tally.live += nbytes - before
        return True

    def size(self, address: int) -> int:
        """The bytes of the array at an address."""
        return self.owner.held[address][1]

    def free(self, address: int) -> None:
        """Release the array at an address."""
        ledger = self.folding.ledger
        assert ledger is not None
        ledger.give(self.owner, address)

    def drop(self, address: int) -> None:
        """Release an array of `shared_empty`, perhaps during an allocation."""
        if _state.busy:
            _state.waiting.append((self.free, (address,)))
        else:
            self.free(address)


class _State:
    """Whether an allocation is under way, and the arrays that were freed meanwhile.

    The collector may free arrays while another is being allocated: they wait until that is done.
    """

    def __init__(self) -> None:
        self.busy = False
        self.waiting: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []

    def done(self) -> None:
        """The allocation is done."""
        while self.waiting:
            free, arguments = self.waiting.pop()
            free(*arguments)
        self.busy = False


_PROGRAM, _LIBRARY, _SIMULATOR = range(3)
_state = _State()
_running: list[Folding] = []


def running() -> Folding | None:
    """The folding of the run that is under way."""
    return _running[-1] if _running else None


def resident_bytes() -> int | None:
    """The peak memory of this process so far; None if the system does not give it."""
    try:
        with open("/proc/self/status") as stream:
            for line in stream:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return None
