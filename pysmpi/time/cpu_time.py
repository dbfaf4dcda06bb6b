"""The CPU time of ranks: `time.process_time`, `os.times`, `resource.getrusage` and their relatives.

The program's own compute counts, and the time inside MPI calls: a real MPI library tests again and
again while it waits, and so keeps its core busy. Sleeps do not count, nor waits for locks, other
threads, child processes and sockets, nor the time in which others have the core.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from pysmpi.kernel.process import Process
from pysmpi.mpi.base import ranks
from pysmpi.mpi.base.ranks import Rank
from pysmpi.mpi.base.state import StateSlot
from pysmpi.patching.lookalike import like
from pysmpi.patching.patches import Patches


class OtherThreads:
    """The threads of a rank besides its main one: those that live, and the seconds of the rest."""

    __slots__ = ("living", "cpu_seconds", "compute_seconds")

    def __init__(self) -> None:
        self.living: list[Process] = []
        self.cpu_seconds = 0.0
        self.compute_seconds = 0.0

    def ended(self, process: Process) -> None:
        """A thread has ended."""
        self.living.remove(process)
        self.cpu_seconds += _spent(process)
        self.compute_seconds += process.compute_seconds


# Kept, because the report of a run counts them after the end of the ranks.
OTHER_THREADS: StateSlot[Rank, OtherThreads] = StateSlot(Rank, OtherThreads, kept=True)


def _spent(process: Process) -> float:
    return process.compute_seconds + process.comm_seconds + process.debt


def _running() -> Any:
    """The running rank, also while Python collects cycles."""
    rank: Any = ranks.current()
    return getattr(rank, "rank", rank)


def thread_time() -> float:
    """The CPU time of the running thread (s)."""
    rank = _running()
    ranks.current().now()
    return _spent(rank.process)


def process_time() -> float:
    """The CPU time of all threads of the running rank (s)."""
    others = OTHER_THREADS.peek(_running())
    mine = thread_time()
    if others is None:
        return mine
    rank = _running()
    processes = [rank.fiber.process, *others.living]
    rest = sum(_spent(process) for process in processes if process is not rank.process)
    return mine + others.cpu_seconds + rest


def _times(real: Callable[[], os.times_result], poll_cost: float) -> Callable[[], object]:
    def times() -> os.times_result:
        rank = ranks.current()
        if rank.program is None:
            return real()
        rank.poll(poll_cost)
        answer = real()
        spent = process_time()
        # Children take real time.
        children = answer.children_user, answer.children_system
        running = _running()
        elapsed = running.engine.now + running.process.debt  # no block ends here
        return os.times_result((spent, 0.0, *children, elapsed))

    return like(real, times)


def install(patches: Patches, poll_cost: float) -> None:
    """Let ranks see their own CPU time in `os.times` until the patches are undone."""
    if hasattr(os, "times"):
        patches.set(os, "times", _times(os.times, poll_cost))


def patch_resource(patches: Patches, module: Any, poll_cost: float) -> None:
    """Let ranks see their own CPU time in `resource.getrusage`."""
    real = module.getrusage
    clocks = {module.RUSAGE_SELF: process_time}
    if hasattr(module, "RUSAGE_THREAD"):
        clocks[module.RUSAGE_THREAD] = thread_time

    def getrusage(who: int, /) -> Any:
        rank = ranks.current()
        result = real(who)
        if rank.program is None or who not in clocks:
            return result
        rank.poll(poll_cost)
        return module.struct_rusage((clocks[who](), 0.0, *result[2:]))

    patches.set(module, "getrusage", like(real, getrusage))
