"""The objects that stand for the threads of ranks in module `threading`, and their numbers."""

from __future__ import annotations

import _thread
import itertools
import mmap
import sys
import threading
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

from pysmpi.isolation.kinds import forks
from pysmpi.isolation.threads.locks import RankLock, give_way, reduce_as

_SPACE = 1 << 30  # bytes of addresses for the numbers of threads


@cache
def _zeros() -> Any:
    """Zeros at the addresses that are numbers of threads; None where there are none.

    Pages that are only read take no memory.
    """
    if not sys.platform.startswith("linux"):
        return None
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    return np.frombuffer(mmap.mmap(-1, _SPACE, flags, mmap.PROT_READ), np.uint8)


def _numbers() -> Iterator[int]:
    """Numbers for threads, the same in each run: addresses, like the numbers of real threads.

    Libraries pass them to C functions such as `pthread_setname_np`, which read the memory there.
    They find zeros, and report that the thread does not exist.
    """
    zeros = _zeros()
    if zeros is not None:
        first = int(zeros.ctypes.data)
        yield from range(first, first + _SPACE - (1 << 16), 16)
    # Beyond the addresses that Python uses for real threads.
    yield from itertools.count(1 << 62)


_idents = _numbers()


def begin_numbers() -> None:
    """Begin a run: the numbers of its threads do not depend on earlier runs in this process."""
    global _idents
    _idents = _numbers()


def identify(fiber: Any) -> int:
    """The number of a fiber as a thread."""
    number: int | None = getattr(fiber, "thread_number", None)
    if number is None:
        number = fiber.thread_number = next(_idents)
    return number


class MainThread(threading.Thread):
    """The main thread of a rank's program."""

    def __init__(self) -> None:
        super().__init__(name="MainThread", daemon=False)
        self._started.set()  # type: ignore[attr-defined]
        self.joins: threading.Thread | None = None  # at the end of the program
        self.ended_by: BaseException | None = None
        self.counts: dict[str, int] = {}  # of the names that its process has given

    def is_alive(self) -> bool:
        return True

    def join(self, timeout: float | None = None) -> None:
        if threading.current_thread() is self:
            raise RuntimeError("cannot join current thread")
        raise RuntimeError("cannot join the main thread of a rank")


MainThread.__module__ = "threading"
MainThread.__name__ = MainThread.__qualname__ = "_MainThread"  # as Python names it


def name_main(thread: MainThread, ident: int) -> None:
    """Give a main thread its number."""
    space = vars(thread)
    space["_ident"] = ident
    handle = space.get(forks.HANDLE)
    if isinstance(handle, ThreadHandle):
        handle.ident = ident  # a fork compares it


RealHandle: Any = getattr(_thread, "_ThreadHandle", None)


class ThreadHandle:
    """The handle of a thread from Python 3.13 on (`_thread._ThreadHandle`)."""

    def __init__(self) -> None:
        self.ident: int | None = None
        self._running = RankLock()
        self._begun = False

    def begin(self) -> None:
        self._begun = True
        self._running.acquire()

    def ended(self) -> bool:
        return self._begun and not self._running.locked()

    def is_done(self) -> bool:
        if self.ended():
            return True
        give_way()  # a program may be polling `is_alive`
        return False

    def join(self, timeout: float | None = None) -> None:
        if not self._begun:
            raise RuntimeError("thread not started")
        if self._running.acquire(True, -1 if timeout is None or timeout < 0 else timeout):
            self._running.release()

    def forget(self) -> None:
        """Be done, and wake nobody: no fiber is resumed any more."""
        self._running._at_fork_reinit()

    def _set_done(self) -> None:
        if self._running.locked():
            self._running.release()

    def __reduce_ex__(self, protocol: Any) -> Any:
        return reduce_as(RealHandle(), self, type(self), protocol)


ThreadHandle.__module__, ThreadHandle.__name__, ThreadHandle.__qualname__ = (
    "_thread", "_ThreadHandle", "_ThreadHandle",
)  # fmt: skip
