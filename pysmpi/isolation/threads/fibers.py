"""Threads of ranks: fibers for module `threading` and the modules that use it.

Inside a rank, starting a thread starts a fiber of the rank, and locks wait in virtual time. The
same holds for conditions, events, queues, timers, barriers and
`concurrent.futures.ThreadPoolExecutor`, which Python builds from them. The modules are not
replaced: the functions that they import from `_thread` are exchanged, and check the caller. Outside
of ranks threads are real.

Switches between threads happen when they wait, sleep, communicate or look at a clock. A loop that
waits for a plain variable to change therefore never ends; one that also looks at a clock, or that
tests an event, a future or a queue, ends.
"""

from __future__ import annotations

import _thread
import sys
import threading
import traceback
import weakref
from collections.abc import Callable, MutableMapping
from importlib import _bootstrap
from types import SimpleNamespace
from typing import Any

from greenlet import GreenletExit

from pysmpi.isolation.kinds import forks
from pysmpi.isolation.kinds.rank_environment import RankEnvironment, here
from pysmpi.isolation.simulator import simulates
from pysmpi.isolation.threads import thread_locals
from pysmpi.isolation.threads.locks import (
    CalledLock,
    RankLock,
    RankRLock,
    ThreadLock,
    begin_turns,
    polling,
    running,
)
from pysmpi.isolation.threads.thread_objects import (
    MainThread,
    RealHandle,
    ThreadHandle,
    begin_numbers,
    identify,
    name_main,
)
from pysmpi.mpi.base import ranks
from pysmpi.patching.lookalike import like
from pysmpi.patching.patches import Patches
from pysmpi.python import holders

StartThread = Callable[[Any, Callable[[], Any], Callable[[], Any]], Any]


class Threads:
    """The threads of all ranks.

    `start_fiber(rank, body, ended)` starts a fiber of a rank; it calls `ended()` last, when the
    time of its compute has passed.
    """

    def __init__(self, start_fiber: StartThread) -> None:
        self.start_fiber = start_fiber
        self.members: weakref.WeakKeyDictionary[threading.Thread, Any]
        self.members = weakref.WeakKeyDictionary()  # thread -> environment of its rank
        self.executors: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        self.sentinels: weakref.WeakSet[RankLock] = weakref.WeakSet()

    # Functions of `_thread`

    def start_new_thread(self, real: Callable[..., int]) -> Callable[..., int]:
        def start_new_thread(function: Callable[..., Any], args: Any, kwargs: Any = None, /) -> int:
            rank = ranks.current()
            if rank.program is None:
                return real(function, args, kwargs or {})
            return self._start(rank, lambda: function(*args, **(kwargs or {})), None)

        return like(real, start_new_thread)

    def start_joinable_thread(self, real: Callable[..., Any]) -> Callable[..., object]:
        def start_joinable_thread(
            function: Callable[[], Any], handle: Any = None, daemon: bool = True
        ) -> object:
            rank = ranks.current()
            if rank.program is None:
                return real(function, handle=handle, daemon=daemon)
            if handle is None:
                handle = ThreadHandle()
            handle.begin()
            handle.ident = self._start(rank, function, handle)
            return handle

        return like(real, start_joinable_thread)

    def _start(self, rank: ranks.Rank, body: Callable[[], Any], handle: ThreadHandle | None) -> int:
        environment = rank.program
        environment.threaded = True
        begin_turns()

        def live() -> None:
            try:
                body()
            except SystemExit:
                pass
            except (GreenletExit, KeyboardInterrupt):
                raise
            except BaseException:
                print(f"Exception ignored in thread started by: {body!r}", file=sys.stderr)
                traceback.print_exc()
            finally:
                if not simulates():
                    forks.leave()

        def ended() -> None:
            """Threads that join this one continue."""
            if handle is not None:
                handle._set_done()
            sentinel = getattr(running(), "sentinel", None)
            if sentinel is not None and sentinel.locked():
                sentinel.release()

        fiber = self.start_fiber(rank, live, ended)
        fiber.is_thread = True
        return identify(fiber)

    def set_sentinel(self, real: Callable[[], Any]) -> Callable[[], object]:
        def set_sentinel() -> object:
            if here() is None:
                return real()
            # `threading` holds this lock while the thread lives, until 3.12.
            lock = ThreadLock()
            fiber: Any = running()
            fiber.sentinel = lock
            self.sentinels.add(lock)
            return lock

        return like(real, set_sentinel)

    @staticmethod
    def get_ident(real: Callable[[], int]) -> Callable[[], int]:
        def get_ident() -> int:
            if here() is None:
                return real()
            return identify(running())

        return like(real, get_ident)

    # Functions of `threading`

    def main_of(self, environment: RankEnvironment) -> MainThread:
        """The main thread of a rank."""
        thread = environment.main_thread
        if not isinstance(thread, MainThread):
            thread = environment.main_thread = MainThread()
            fiber = getattr(ranks.current(), "fiber", None)
            if fiber is not None:
                name_main(thread, identify(fiber))
        return thread

    def unknown_thread(self, real: Callable[[], Any]) -> Callable[[], object]:
        """Called by `current_thread` for a thread that `threading` has not started."""

        def unknown_thread() -> object:
            environment = here()
            if environment is None or getattr(running(), "is_thread", False):
                return real()
            thread = self.main_of(environment)
            ident = threading.get_ident()
            name_main(thread, ident)
            threading._active[ident] = thread  # type: ignore[attr-defined]
            return thread

        return unknown_thread

    def bootstrap(self, real: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def _bootstrap(thread: Any) -> None:
            environment = here()
            if environment is not None:
                self.members[thread] = environment
                thread._invoke_excepthook = _passing_exits(thread._invoke_excepthook)
            real(thread)

        return _bootstrap

    def count(self, real: Callable[[], int], what: str, first: int) -> Callable[[], int]:
        """A counter of names, such as that of `Thread-1`, which each process has."""

        def count() -> int:
            environment = here()
            if environment is None:
                return real()
            counts = self.main_of(environment).counts
            counts[what] = number = counts.get(what, first - 1) + 1
            return number

        return count

    def main_thread(self, real: Callable[[], object]) -> Callable[[], object]:
        def main_thread() -> object:
            environment = here()
            return real() if environment is None else self.main_of(environment)

        return like(real, main_thread)

    def enumerate(self, real: Callable[[], list[Any]]) -> Callable[[], list[Any]]:
        def enumerate() -> list[Any]:
            environment = here()
            if environment is None:
                return [thread for thread in real() if thread not in self.members]
            mine = [thread for thread in real() if self.members.get(thread) is environment]
            return [self.main_of(environment), *mine]

        return like(real, enumerate)

    # The end of a rank

    def awaited(self, environment: RankEnvironment) -> list[threading.Thread]:
        """The threads that the end of a rank waits for: those that live and are no daemons.

        Python also waits for the threads of pools, which are daemons if a daemon has made them.
        """
        if not self.members:
            return []
        pooled = _pooled()
        return [
            thread
            for thread, owner in list(self.members.items())
            if owner is environment and (not thread.daemon or thread in pooled) and _lives(thread)
        ]

    def finish(self, environment: RankEnvironment, error: BaseException | None = None) -> None:
        """Wait for the threads of the rank that is running, except for daemons.

        As Python does at the end of a process; executors are shut down first. `error` has ended
        the program.
        """
        if self.executors:  # to look at an empty one takes longer than most of a rank's end
            for executor, owner in list(self.executors.items()):
                if owner is environment:
                    # Threads of pools are joined below, where a report can name them.
                    executor.shutdown(wait=not hasattr(executor, "_work_queue"))
        for thread in self.awaited(environment):
            main = self.main_of(environment)
            main.joins, main.ended_by = thread, error
            try:
                thread.join()
            finally:
                main.joins = main.ended_by = None
        if environment.main_thread is not None:
            threading._active.pop(environment.main_thread.ident, None)  # type: ignore[attr-defined]

    def own_executors(self, patches: Patches, kind: Any) -> None:
        """Record the rank of each executor of a class; they end with the threads of the rank."""
        real_init = kind.__init__

        def __init__(executor: Any, *args: Any, **kwargs: Any) -> None:
            real_init(executor, *args, **kwargs)
            environment = here()
            if environment is not None:
                self.executors[executor] = environment

        patches.set(kind, "__init__", like(real_init, __init__))

    def close(self) -> None:
        """Forget the threads that are left at the end of a run: nothing waits for their end."""
        active: dict[int, Any] = threading._active  # type: ignore[attr-defined]
        for ident, thread in list(active.items()):
            if thread in self.members or isinstance(thread, MainThread):
                del active[ident]
        locks = getattr(threading, "_shutdown_locks", None)
        if locks is not None:
            locks.difference_update(self.sentinels)
        for lock in self.sentinels:
            lock._at_fork_reinit()  # frees it, and wakes nobody
        for thread in self.members:
            handle = getattr(thread, forks.HANDLE, None)
            if isinstance(handle, ThreadHandle):
                handle.forget()
            for waited in _waited_at_exit():
                waited.pop(thread, None)


# Module and name of the tables whose threads Python joins at its end.
_WAITED = {
    "concurrent.futures.thread": "_threads_queues",
    "concurrent.futures.process": "_threads_wakeups",
}


def _waited_at_exit() -> list[MutableMapping[threading.Thread, object]]:
    """The tables of threads that Python joins at its end, daemons or not."""
    modules = [(sys.modules.get(module), name) for module, name in _WAITED.items()]
    return [table for module, name in modules if (table := getattr(module, name, None)) is not None]


def _pooled() -> set[threading.Thread]:
    """The threads of pools."""
    return {thread for table in _waited_at_exit() for thread in list(table)}


def _lives(thread: Any) -> bool:
    """Whether a thread has not ended yet, without giving way to it; its last compute may pass."""
    lock, handle = getattr(thread, "_tstate_lock", None), getattr(thread, forks.HANDLE, None)
    if isinstance(handle, ThreadHandle):
        return not handle.ended()
    return lock is not None and bool(lock.locked())


def _passing_exits(hook: Callable[[Any], Any]) -> Callable[[Any], object]:
    """Shows the exception that ends a thread, except at the end of its rank."""

    def invoke_excepthook(thread: Any) -> None:
        if isinstance(sys.exc_info()[1], (GreenletExit, KeyboardInterrupt)):
            raise
        hook(thread)

    return invoke_excepthook


def _chooser(real: Callable[..., object], own: Callable[[], object]) -> Callable[..., object]:
    """Makes the rank's own kind of object inside a rank."""

    def make(*args: object, **kwargs: object) -> object:
        return real(*args, **kwargs) if args or kwargs or here() is None else own()

    return _ChoosingKind(real, make) if isinstance(real, type) else like(real, make)


class _ChoosingKind(type):
    """A class in the place of a real one: its call chooses, and it knows both kinds of objects."""

    def __new__(cls, real: type, make: Callable[..., object]) -> _ChoosingKind:
        names = {"__module__": real.__module__, "__doc__": real.__doc__}
        return super().__new__(cls, real.__name__, (), names)

    def __init__(cls, real: type, make: Callable[..., object]) -> None:
        super().__init__(real.__name__, (), {})
        cls._real, cls._make = real, make

    def __call__(cls, *args: object, **kwargs: object) -> object:
        return cls._make(*args, **kwargs)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls._real)


def install(patches: Patches, start_fiber: StartThread) -> Threads:
    """Let ranks have threads until the patches are undone."""
    begin_numbers()
    threads = Threads(start_fiber)
    patches.call_back(threads.close)
    begin_turns()
    # The import system distinguishes real threads: ranks may be switched during an import.
    patches.set(_bootstrap, "_thread", SimpleNamespace(**vars(_thread)))
    kind: Any = CalledLock if isinstance(threading.Lock, type) else RankLock
    low: dict[str, Callable[..., Any]] = {
        "allocate_lock": _chooser(_thread.allocate_lock, kind),
        "RLock": RankRLock,
        "start_new_thread": threads.start_new_thread(_thread.start_new_thread),
        "get_ident": threads.get_ident(_thread.get_ident),
    }
    if hasattr(_thread, "_set_sentinel"):
        low["_set_sentinel"] = threads.set_sentinel(_thread._set_sentinel)
    if hasattr(_thread, "start_joinable_thread"):
        real = _thread.start_joinable_thread
        low["start_joinable_thread"] = threads.start_joinable_thread(real)
        low["_ThreadHandle"] = _chooser(RealHandle, ThreadHandle)
    low["allocate"] = low["allocate_lock"]
    low["start_new"] = low["start_new_thread"]
    lock: Any = low["allocate_lock"]
    if kind is CalledLock:
        lock = low["lock"] = low["LockType"] = kind
    for name, function in low.items():
        if hasattr(_thread, name):
            patches.set(_thread, name, function)
    high: dict[str, Any] = {
        "Lock": lock,
        "_LockType": low.get("LockType"),
        "_allocate_lock": low["allocate_lock"],
        "_CRLock": low["RLock"],
        "_start_new_thread": low["start_new_thread"],
        "_set_sentinel": low.get("_set_sentinel"),
        "_start_joinable_thread": low.get("start_joinable_thread"),
        "_ThreadHandle": low.get("_ThreadHandle"),
        "get_ident": low["get_ident"],
        "local": thread_locals.local,
        "_DummyThread": threads.unknown_thread(threading._DummyThread),
        "_MainThread": MainThread,
        "main_thread": threads.main_thread(threading.main_thread),
        "enumerate": threads.enumerate(threading.enumerate),
    }
    for name, value in high.items():
        if value is not None and hasattr(threading, name):
            patches.set(threading, name, value)
    if hasattr(threading, "_counter"):
        patches.set(threading, "_counter", threads.count(threading._counter, "Thread", 1))
    count = like(threading.active_count, lambda: len(threading.enumerate()))
    patches.set(threading, "active_count", count)
    thread: Any = threading.Thread
    patches.set(thread, "_bootstrap", threads.bootstrap(thread._bootstrap))
    patches.set(threading.Event, "is_set", polling(threading.Event.is_set, False))
    _replace_locks(patches)
    return threads


def _replace_locks(patches: Patches) -> None:
    """Replace the locks that modules and their classes have already made by locks of ranks.

    Threads of ranks are one thread of the operating system: if one waited for a real lock that
    another holds, neither could continue to release it.
    """
    kind = type(_thread.allocate_lock())
    new: dict[int, tuple[Any, RankLock]] = {}
    for holder, name, lock in holders.find([vars(each) for each in holders.modules()], [], kind):
        assert isinstance(lock, kind)
        if not lock.locked():
            replacement = new.setdefault(id(lock), (lock, RankLock()))[1]
            if isinstance(holder, dict):
                patches.entry(holder, name, replacement)
            else:
                patches.set(holder, name, replacement)
