"""Pools of threads and processes of `concurrent.futures`."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from types import ModuleType
from typing import Any

from greenlet import GreenletExit

from pysmpi.isolation.kinds.rank_environment import here
from pysmpi.isolation.loading.libraries import PatchedRun, when_loaded
from pysmpi.isolation.threads.locks import RankLock, give_way, polling
from pysmpi.mpi.base import ranks
from pysmpi.patching.lookalike import like


@when_loaded("concurrent.futures._base")
def poll_futures(run: PatchedRun, module: ModuleType) -> None:
    """Let time pass for a program that polls a future.

    The workers of pools do not complain about their end with their rank.
    """
    patches = run.patches
    patches.set(module, "LOGGER", _Complaints(module.LOGGER))
    kind = module.Future
    patches.set(kind, "done", polling(kind.done, False))
    real_wait = module.wait

    def wait(fs: Any, timeout: Any = None, return_when: Any = module.ALL_COMPLETED) -> Any:
        if here() is not None:
            give_way()  # a program may wait again for a finished thread
        return real_wait(fs, timeout, return_when)

    new = like(real_wait, wait)
    patches.set(module, "wait", new)
    holder = sys.modules.get("concurrent.futures")
    if holder is not None and hasattr(holder, "wait"):
        patches.set(holder, "wait", new)


@when_loaded("concurrent.futures._base")
def order_futures(run: PatchedRun, module: ModuleType) -> None:
    """Give sets of futures, as those of `wait` and `as_completed`, the same order in each run.

    That of their addresses changes. The futures of a rank are numbered when they are first hashed.
    """
    numbers: dict[int, int] = {}
    plain = object.__hash__

    def __hash__(self: object) -> int:
        own = vars(self)
        found: int | None = own.get("_pysmpi_number")
        if found is None:
            rank = ranks.current()
            if rank.program is None:
                return plain(self)
            found = own["_pysmpi_number"] = numbers[rank.pid] = numbers.get(rank.pid, 0) + 1
        return found

    def __init__(self: object, futures: Iterable[object]) -> None:
        vars(self)["futures"] = sorted(futures, key=hash)

    run.patches.set(module.Future, "__hash__", __hash__)
    kind = module._AcquireFutures
    run.patches.set(kind, "__init__", like(kind.__init__, __init__))


@when_loaded("concurrent.futures.thread")
def end_pools(run: PatchedRun, module: ModuleType) -> None:
    """End pools of threads with their rank."""
    patches, threads = run.patches, run.threads
    if threads is None:
        return
    kind = module.ThreadPoolExecutor
    threads.own_executors(patches, kind)
    if hasattr(kind, "_counter"):
        patches.set(kind, "_counter", staticmethod(threads.count(kind._counter, "Pool", 0)))
    # Held while a thread starts, which is where ranks may be switched.
    patches.set(module, "_global_shutdown_lock", RankLock())


@when_loaded("concurrent.futures.process")
def end_process_pools(run: PatchedRun, module: ModuleType) -> None:
    """End pools of processes with the threads of their rank."""
    if run.threads is not None:
        run.threads.own_executors(run.patches, module.ProcessPoolExecutor)


class _Complaints:
    """A logger that does not report the end of a rank."""

    def __init__(self, logger: Any) -> None:
        self._logger = logger

    def critical(self, *args: object, **kwargs: object) -> None:
        if not isinstance(sys.exc_info()[1], GreenletExit):
            self._logger.critical(*args, **kwargs)

    def __getattr__(self, name: str) -> object:
        return getattr(self._logger, name)
