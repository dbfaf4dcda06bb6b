"""The order of the events of the threads of a rank: vector clocks that locks carry on.

Conditions, semaphores, queues, futures, and the beginning and end of a thread use locks, so a
thread learns from each of them what another one did before.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any, Protocol
from weakref import WeakKeyDictionary

from greenlet import getcurrent

from pysmpi.isolation.threads.locks import CalledLock, RankLock, RankRLock, ThreadLock
from pysmpi.mpi.base.ranks import Rank

_Clock = dict[int, int]  # by number of the thread, its events that have happened before


class ThreadListener(Protocol):
    """Hears of the threads of ranks."""

    def begun(self, rank: Rank) -> None:
        """A rank has a second thread, which runs."""

    def resumed(self, rank: Rank) -> None:
        """A thread of a rank with several takes or frees a lock."""

    def ended(self, rank: Rank) -> None:
        """Only the main thread of a rank is left, and runs."""


class ThreadClocks:
    """The clock of each thread of the ranks of one run."""

    def __init__(self) -> None:
        self.listener: ThreadListener | None = None
        self.threaded: set[int] = set()  # the pids of ranks that have had a second thread
        self._others: dict[int, list[Any]] = {}  # by pid, its threads but the main one
        self._followed: set[int] = set()  # of the threads whose frames are traced
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

    def has_others(self, rank: Rank) -> bool:
        """Whether a rank has a thread beside the main one."""
        return rank.pid in self._others

    def running(self, rank: Rank) -> object:
        """The running thread of a rank, if it has been noticed."""
        fiber = getcurrent()
        return fiber if fiber is rank.fiber or fiber in self._threads else None

    def _notice(self) -> None:
        """Note the running thread, and whether the others of its rank have ended."""
        fiber = getcurrent()
        rank = getattr(fiber, "rank", None)
        if rank is None or self.listener is None:
            return
        others = self._others.get(rank.pid)
        if fiber is rank.fiber:
            if others is None:
                return
            mine = self._thread(fiber)[1]
            for one in list(others):
                number, clock = self._thread(one)
                if one.dead and mine.get(number, 0) >= clock.get(number, 0):
                    others.remove(one)
            if not others:
                del self._others[rank.pid]
                self._followed.discard(id(fiber))
                self.listener.ended(rank)
                return
        elif others is None or all(one is not fiber for one in others):
            _join(self._thread(fiber)[1], self._thread(rank.fiber)[1])
            self._others.setdefault(rank.pid, []).append(fiber)
            self.threaded.add(rank.pid)
        if id(fiber) not in self._followed:
            self._followed.add(id(fiber))
            self.listener.begun(rank)
        else:
            self.listener.resumed(rank)

    def _acquire(self, real: Callable[..., bool]) -> Callable[..., bool]:
        def acquire(lock: object, *values: object, **named: object) -> bool:
            success = real(lock, *values, **named)
            clock = self._locks.get(lock) if success else None
            if clock:
                _join(self._thread(getcurrent())[1], clock)
            self._notice()
            return success

        return acquire

    def _release(self, real: Callable[..., None]) -> Callable[..., None]:
        def release(lock: object) -> None:
            self._notice()
            _join(self._locks.setdefault(lock, {}), self._thread(getcurrent())[1])
            real(lock)

        return release


def _join(clock: _Clock, other: _Clock) -> None:
    for number, event in other.items():
        if clock.get(number, 0) < event:
            clock[number] = event
