"""The CPU clock of compute that goes on in another thread."""

from __future__ import annotations

from time import thread_time_ns

from pysmpi.time.cpu_clock import CpuClock


class _Since:
    """The CPU time of the running thread (ns), which continues that of another."""

    def __init__(self) -> None:
        self.offset = 0

    def __call__(self) -> int:
        return thread_time_ns() + self.offset


def continue_in_thread(clock: CpuClock | None) -> None:
    """Let a clock go on from its latest reading, on the CPU time of the calling thread."""
    if clock is not None:
        reader = clock._cpu_ns
        if not isinstance(reader, _Since):
            reader = clock._cpu_ns = _Since()
        reader.offset = clock._latest - thread_time_ns()
