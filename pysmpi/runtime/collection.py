"""Python's search for reference cycles, while ranks share one interpreter.

It calls the `__del__` of objects of any rank, whichever rank is running, perhaps in the middle of
an MPI call. Such a finalizer may ask and free; it cannot wait for other ranks.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from greenlet import getcurrent

from pysmpi.mpi.base.ranks import Rank, outside

_WAITING = frozenset({"enter", "process", "sleep"})


class Collecting:
    """Stands in for a rank while it looks for cycles: all of it but what takes simulated time."""

    __slots__ = ("rank",)

    rank: Rank
    in_call = True  # what a finalizer does is not billed: only calls that wait look further

    def __init__(self, rank: Rank) -> None:
        object.__setattr__(self, "rank", rank)

    def __getattr__(self, name: str) -> Any:
        if name in _WAITING:
            raise RuntimeError(
                "Python's garbage collector cannot wait for other ranks: it called the __del__ of "
                "an object in a reference cycle, of whichever rank, which made an MPI call that "
                "waits; make that call in the program, or keep the object out of cycles"
            )
        return getattr(self.rank, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.rank, name, value)


@contextmanager
def rarely(ranks: int) -> Iterator[None]:
    """Inside it, cycles are looked for rarely, more so the more ranks there are to search.

    A simulation makes many objects and hardly a cycle.
    """
    thresholds = gc.get_threshold()
    gc.set_threshold(max(thresholds[0], 400_000, 20 * ranks), *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)


@contextmanager
def announced() -> Iterator[None]:
    """Inside it, whoever runs is `Collecting` while Python looks for cycles."""
    gc.callbacks.append(_follow)
    try:
        yield
    finally:
        gc.callbacks.remove(_follow)


def _follow(phase: str, _: Any) -> None:
    fiber: Any = getcurrent()
    rank = getattr(fiber, "rank", None)
    if phase == "start":
        if not isinstance(rank, Collecting):
            fiber.rank = Collecting(outside if rank is None else rank)
    elif isinstance(rank, Collecting):
        if rank.rank is outside:
            del fiber.rank
        else:
            fiber.rank = rank.rank
