"""How the fibers of ranks are resumed and suspended."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pysmpi.kernel.process import Process
from pysmpi.mpi.base.ranks import Fiber, Rank, current
from pysmpi.python import facts

try:
    if not facts.holds("frame-stacks"):
        raise ImportError
    from pysmpi.isolation.frame_stacks import beginning, waiting
except ImportError:  # pysmpi was installed without a C compiler

    def waiting(function: Callable[..., Any], /) -> Callable[..., Any]:
        return function

    beginning = waiting

__all__ = ["beginning", "keeper", "nothing", "refuse_ended", "switcher", "thrower", "waiting"]


def switcher(rank: Rank, process: Process, fiber: Fiber) -> Callable[[], Any]:
    """Resume one thread of a rank that has several."""

    def resume() -> Any:
        rank.process = process
        return fiber.switch()

    return resume


def keeper(rank: Rank, fiber: Fiber, suspend: Callable[[], object]) -> Callable[[], Any]:
    """Suspend one thread of a rank with several threads; each has its own call."""

    def keep() -> Any:
        fiber.record, rank.record = rank.record, None
        try:
            return suspend()
        finally:
            fiber.record, rank.record = None, fiber.record

    return keep


def thrower(fiber: Fiber, deadlock: Any, usual: Callable[[], object]) -> Callable[[], object]:
    """Resume a fiber with an exception, this once."""

    def resume() -> Any:
        fiber.process.resume = usual
        fiber.rank.process = fiber.process
        return (fiber.waiting or fiber).throw(deadlock.exception())

    return resume


def nothing() -> None:
    """Resume a thread or a rank that is no longer there."""


def refuse_ended() -> None:
    """Refuse a call that would wait, from an object that outlives the program of its rank."""
    rank = current()
    rank.process.reset()
    raise RuntimeError(
        f"rank {rank.index} has ended: an object that it had left made an MPI call that waits for "
        "other ranks (from a __del__ for instance); make that call before MPI.Finalize"
    )
