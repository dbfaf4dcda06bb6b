"""Python's search for reference cycles, while ranks share one interpreter.

It may run in the middle of an MPI call of any rank. The `__del__` methods of the program's own
classes are put off until their rank runs (`finalizers.py`). Other finalizers, such as the `finally`
of a generator in a cycle, may read state and free objects; they cannot wait for other ranks.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from greenlet import getcurrent

from pysmpi.isolation.finalizers import Finalizers
from pysmpi.mpi.base.ranks import Rank, outside

_WAITING = frozenset({"enter", "process", "sleep"})


class CollectingRank:
    """Replaces a rank while it collects cycles: refuses calls that take simulated time."""

    __slots__ = ("rank",)

    rank: Rank
    in_call = True  # as in a call, so that the time of a finalizer is not billed

    def __init__(self, rank: Rank) -> None:
        object.__setattr__(self, "rank", rank)

    def poll(self, seconds: float) -> None:
        """Do nothing: a look at the clock during a collection is not the program's."""

    def settle(self) -> None:
        """Do nothing: nobody else can run meanwhile."""

    def now(self) -> float:
        """The rank's own clock (s), without the compute of the running block."""
        rank = self.rank
        inside, rank.in_call = rank.in_call, True
        try:
            return rank.now()
        finally:
            rank.in_call = inside

    def __getattr__(self, name: str) -> object:
        if name in _WAITING:
            raise RuntimeError(
                "Python's garbage collector cannot wait for other ranks: it called a finalizer of "
                "an object in a reference cycle of some rank, which made an MPI call that "
                "waits; make that call in the program, or keep the object out of cycles"
            )
        return getattr(self.rank, name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self.rank, name, value)


def interval(ranks: int) -> int:
    """The number of new objects after which Python searches for cycles.

    Processes of their own would search once for 700 new objects each. In a linear Alltoall, a rank
    holds ten new objects for each message, and the messages of all ranks exist together: a search
    would look at all of them and find nothing. Ranks that proceed together hold some tens of new
    objects each.
    """
    return min(400_000 + min(4_000 * ranks, 4_000_000) + 200 * ranks, 2**31 - 1)


@contextmanager
def rarely(ranks: int, last: bool = False) -> Iterator[None]:
    """Inside it, cycles are collected rarely; the interval grows with the number of ranks.

    A simulation creates many objects but hardly any cycles. If it is the `last` of the process,
    its cycles are left to the end of the process: to look at all objects would take a tenth of the
    time of a job of many ranks.
    """
    thresholds = gc.get_threshold()
    gc.set_threshold(max(thresholds[0], interval(ranks)), *thresholds[1:])
    try:
        yield
    finally:
        if last:
            gc.freeze()
        gc.set_threshold(*thresholds)


def let_go() -> None:
    """Collect the unreachable cycles of a run that has ended.

    Python looked at the objects of the run while the run still used them, so it would look again
    only after some ten runs. Old objects are left out, so a large caller costs nothing here.
    """
    if gc.isenabled():
        gc.collect(1)


@contextmanager
def announced(finalizers: Finalizers) -> Iterator[None]:
    """Inside it, the running rank is `CollectingRank` while Python collects cycles.

    Older callbacks of `gc` see it too: they are not the program's.
    """

    def begin(phase: str, details: object) -> None:
        if phase == "start":
            finalizers.begin()
        _begin(phase, details)

    def end(phase: str, details: object) -> None:
        _end(phase, details)
        if phase == "stop":
            finalizers.end()

    gc.callbacks.insert(0, begin)
    gc.callbacks.append(end)
    try:
        yield
    finally:
        gc.callbacks.remove(begin)
        gc.callbacks.remove(end)


def _begin(phase: str, _: object) -> None:
    fiber: Any = getcurrent()
    rank = getattr(fiber, "rank", None)
    if not isinstance(rank, CollectingRank):
        fiber.rank = CollectingRank(outside if rank is None else rank)


def _end(phase: str, _: object) -> None:
    if phase == "start":  # the finalizers come between the two phases
        return
    fiber: Any = getcurrent()
    rank = getattr(fiber, "rank", None)
    if isinstance(rank, CollectingRank):
        if rank.rank is outside:
            del fiber.rank
        else:
            fiber.rank = rank.rank
