"""Queues between threads of a rank."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from pysmpi.isolation.kinds.rank_environment import here
from pysmpi.isolation.loading.libraries import PatchedRun, when_loaded
from pysmpi.isolation.threads.locks import give_way, polling, reduce_as, state_without
from pysmpi.patching.lookalike import like
from pysmpi.time.seconds import check_seconds, round_up


@when_loaded("queue")
def wait_for_items(run: PatchedRun, module: ModuleType) -> None:
    """Let queues wait in simulated time."""
    patches = run.patches
    patches.set(module, "SimpleQueue", _simple_queue(module))
    kind = module.Queue
    patches.set(kind, "empty", polling(kind.empty, True))
    real_get = kind.get

    def get(self: Any, block: bool = True, timeout: float | None = None) -> Any:
        if not block and not self._qsize():
            give_way()
        return real_get(self, block, timeout)

    patches.set(kind, "get", like(real_get, get))


def _simple_queue(module: Any) -> type:
    """The class `queue.SimpleQueue`; in ranks its objects wait in virtual time."""
    real: Any = module.SimpleQueue

    class SimpleQueue(module._PySimpleQueue):  # type: ignore[misc]
        """Simple, unbounded, reentrant FIFO queue."""

        def __new__(cls, *args: Any, **kwargs: Any) -> Any:
            if here() is None or (cls is SimpleQueue and (args or kwargs)):
                return real(*args, **kwargs)
            self = super().__new__(cls)
            super().__init__(self)
            return self

        def __init__(self, *args: object, **kwargs: object) -> None:
            pass

        def get(self, block: bool = True, timeout: float | None = None) -> Any:
            if block and timeout is not None:
                timeout = round_up(check_seconds(timeout), 1e-9)
            return super().get(block, timeout)

        def __reduce_ex__(self, protocol: Any) -> Any:
            return reduce_as(real(), self, SimpleQueue, protocol)

        def __reduce__(self) -> Any:
            return self.__reduce_ex__(0)

        def __getstate__(self) -> Any:
            return state_without(self, ("_queue", "_count"))

    SimpleQueue.__module__, SimpleQueue.__qualname__ = real.__module__, real.__qualname__
    return SimpleQueue
