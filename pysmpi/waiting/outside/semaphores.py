"""Semaphores of `multiprocessing`, which wait in C.

Another process may hold one, or another thread of the rank. There is no signal when it becomes
free, so it is polled before the clock moves.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from pysmpi.isolation.kinds.rank_environment import here
from pysmpi.isolation.threads.locks import running
from pysmpi.patching.lookalike import like
from pysmpi.patching.patches import Patches
from pysmpi.patching.replacing import methods
from pysmpi.waiting.outside.descriptors import changing
from pysmpi.waiting.outside.peers import PeerSide, has_children
from pysmpi.waiting.outside.reactor import reactor

_RECURSIVE = 0
_MOST = 0.5e9  # (s), of Python's own semaphores


def _side() -> PeerSide:
    return PeerSide.OUTSIDE if has_children() else PeerSide.INSIDE


def patch_semaphores(patches: Patches, module: ModuleType) -> None:
    """Let other ranks continue during waits for semaphores of `_multiprocessing`."""
    kind = getattr(module, "SemLock", None)
    if kind is None:
        return
    real_acquire, real_release = kind.acquire, kind.release
    # The fibers that hold recursive locks: in C they all are one thread.
    holders: dict[int, Any] = {}

    def is_foreign(self: Any) -> bool:
        """Whether another thread of this process holds a recursive lock."""
        if self.kind != _RECURSIVE or not self._is_mine():
            return False
        return holders.get(id(self)) is not running()

    def take(self: Any) -> bool:
        if is_foreign(self):
            return False
        if not real_acquire(self, False):
            return False
        if self.kind == _RECURSIVE:
            holders[id(self)] = running()
        return True

    def acquire(self: Any, block: bool = True, timeout: float | None = None) -> bool:
        """Acquire the semaphore/lock."""
        current = reactor()
        if current is None:
            return bool(real_acquire(self, block, timeout))
        changing(current)
        if take(self):
            return True
        if timeout is not None:
            timeout = max(0.0, math.ldexp(timeout, 0))  # only real numbers
            if timeout >= _MOST:
                raise OverflowError("timeout is too large")
        if not block or (timeout is not None and not timeout > 0):
            current.missed(side=_side())
            return False
        end = None if timeout is None else current.now() + timeout

        def free() -> bool:
            if is_foreign(self):
                return False
            return self._is_mine() or not self._is_zero()

        while True:
            left = None if end is None else end - current.engine.now
            came = current.wait((), left, free, _side())
            if take(self):
                return True
            if not came:
                return False

    def release(self: Any) -> None:
        """Release the semaphore/lock."""
        current = reactor()
        if current is not None:
            changing(current)
            if is_foreign(self):
                raise AssertionError("attempt to release recursive lock not owned by thread")
        real_release(self)
        if current is not None:
            if holders and not self._is_mine():
                holders.pop(id(self), None)
            current.changed()

    def enter(self: object) -> bool:
        """Enter the semaphore/lock."""
        return acquire(self)

    def leave(self: object, *exception: object) -> None:
        """Exit the semaphore/lock."""
        release(self)

    methods(
        patches,
        kind,
        {"acquire": acquire, "release": release, "__enter__": enter, "__exit__": leave},
    )


class _ProcessCounter:
    """Counts the names of processes for each rank, in the place of `itertools.count`."""

    def __init__(self, real: Iterator[int]) -> None:
        self.real = real
        self.last: dict[int, int] = {}  # by rank

    def __next__(self) -> int:
        environment = here()
        if environment is None:
            return next(self.real)
        number = self.last[environment.number] = self.last.get(environment.number, 0) + 1
        return number


def patch_processes(patches: Patches, module: ModuleType) -> None:
    """Make `multiprocessing.process` handle only the processes of the calling rank."""
    patches.set(module, "_process_counter", _ProcessCounter(vars(module)["_process_counter"]))
    real_cleanup, real_active = module._cleanup, module.active_children

    def mine() -> list[Any]:
        own = os.getpid()
        return [process for process in list(module._children) if process._parent_pid == own]

    def _cleanup() -> None:
        if reactor() is None:
            real_cleanup()
            return
        for process in mine():
            popen = process._popen
            if popen is not None and popen.poll() is not None:
                module._children.discard(process)

    def active_children() -> object:
        if reactor() is None:
            return real_active()
        _cleanup()
        return mine()

    patches.set(module, "_cleanup", like(real_cleanup, _cleanup))
    new = like(real_active, active_children)
    patches.set(module, "active_children", new)
    for name in ("multiprocessing", "multiprocessing.context"):
        holder: object = sys.modules.get(name)
        if holder is not None and hasattr(holder, "active_children"):
            patches.set(holder, "active_children", new)
