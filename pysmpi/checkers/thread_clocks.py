"""The order of the events of the threads of a rank: vector clocks that locks carry on.

Conditions, semaphores, queues, futures, and the beginning and end of a thread use locks, so a
thread learns from each of them what another one did before.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from weakref import WeakKeyDictionary

from greenlet import getcurrent

from pysmpi.isolation.threads.locks import CalledLock, RankLock, RankRLock, ThreadLock
from pysmpi.mpi.base.ranks import Rank

_Clock = dict[int, int]  # by number of the thread, its events that have happened before


class ThreadClocks:
    """The clock of each thread of the ranks of one run."""

    def __init__(self) -> None:
        self._threads: WeakKeyDictionary[object, tuple[int, _Clock]] = WeakKeyDictionary()
        self._numbers = count()  # no two threads have the same, also after the end of some
        self._locks: WeakKeyDictionary[object, _Clock] = WeakKeyDictionary()
        self._replaced: list[tuple[type, str, object]] = []

    def begin(self) -> None:
        """Follow the locks of ranks."""
        for kind in (RankLock, RankRLock, ThreadLock, CalledLock):
            for name, observed in (("acquire", self._acquire), ("release", self._release)):
                real = vars(kind).get(name)
                if real is not None:
                    self._replaced.append((kind, name, real))
                    setattr(kind, name, observed(real))

    def end(self) -> None:
        """Follow them no more."""
        while self._replaced:
            kind, name, real = self._replaced.pop()
            setattr(kind, name, real)

    def now(self, fiber: object, rank: Rank) -> tuple[int, int]:
        """The number of a thread, and that of its next event.

        A thread without a lock at its beginning follows what the main thread of its rank has done.
        """
        new = fiber not in self._threads and fiber is not rank.fiber
        number, clock = self._thread(fiber)
        if new:
            _join(clock, self._thread(rank.fiber)[1])
        clock[number] = clock.get(number, 0) + 1
        return number, clock[number]

    def knows(self, fiber: object, event: tuple[int, int]) -> bool:
        """Whether an event of another thread happened before the present of a thread."""
        return self._thread(fiber)[1].get(event[0], 0) >= event[1]

    def _thread(self, fiber: object) -> tuple[int, _Clock]:
        entry = self._threads.get(fiber)
        if entry is None:
            entry = self._threads[fiber] = next(self._numbers), {}
        return entry

    def _acquire(self, real: Callable[..., bool]) -> Callable[..., bool]:
        def acquire(lock: object, *values: object, **named: object) -> bool:
            success = real(lock, *values, **named)
            clock = self._locks.get(lock) if success else None
            if clock:
                _join(self._thread(getcurrent())[1], clock)
            return success

        return acquire

    def _release(self, real: Callable[..., None]) -> Callable[..., None]:
        def release(lock: object) -> None:
            _join(self._locks.setdefault(lock, {}), self._thread(getcurrent())[1])
            real(lock)

        return release


def _join(clock: _Clock, other: _Clock) -> None:
    for number, event in other.items():
        if clock.get(number, 0) < event:
            clock[number] = event
