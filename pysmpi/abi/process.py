"""The process that a rank with a compiled program simulates."""

from __future__ import annotations

import os
import sys
import time
from typing import Any

from pysmpi.abi import engine
from pysmpi.abi.engine import Process
from pysmpi.mpi.base.options import ENVIRONMENT, RcOptions
from pysmpi.mpi.base.ranks import Rank, current
from pysmpi.mpi.base.state import StateSlot
from pysmpi.mpi.processes import environment


class CompiledProcess(Process):
    """A process with its own stack, the handles of its program, and its streams."""

    __slots__ = (
        "__weakref__", "free", "handled", "loaded", "numbers", "objects", "program", "references",
        "stages",
    )  # fmt: skip

    objects: dict[int, Any]  # handles by their integers
    numbers: dict[int, int]  # integers of requests, by the addresses of their handles
    references: dict[int, int]  # further ones that the program has, by integers of handles
    free: list[int]  # integers of requests that are over
    stages: list[Any]  # copies of buffers on the stack of the thread, see staging.py
    loaded: dict[str, str]  # the names of the rank's copies, by files
    program: Any  # that runs, None for libraries alone
    handled: bool  # whether a handler of the program has handled the error of a call

    def __new__(cls, stack: int) -> CompiledProcess:
        objects: dict[int, Any] = {}
        made = super().__new__(cls, stack, objects)
        made.objects = objects
        made.numbers = {}
        made.references = {}
        made.free = []
        made.stages = []
        made.loaded = {}
        made.program = None
        made.handled = False
        return made

    def call(self, function: int, /, *arguments: int) -> int:
        """Call a function of the program, whose work is compute of the rank."""
        timer = self.timer
        if timer is None:
            return super().call(function, *arguments)
        timer.leave()
        try:
            return super().call(function, *arguments)
        finally:
            timer.enter()

    def guard(self, inactive: bool) -> None:
        """Whether MPI is not initialized, or finalized, from now on."""
        self.outside = inactive


PROCESS: StateSlot[Rank, CompiledProcess] = StateSlot(Rank)


class COptions:
    """The options of a program in C: MPI starts with `MPI_Init`, and errors are fatal."""

    initialize = False
    finalize = False
    errors = "default"


C_OPTIONS = RcOptions(COptions)


def here() -> CompiledProcess:
    """The process of the rank that runs."""
    process = PROCESS.peek(current())
    assert process is not None
    return process


def process_of_caller() -> CompiledProcess | None:
    """The process of the rank that runs, if one does; a new one at the first call of a library."""
    rank = current()
    if rank.program is None:  # it has ended, or the caller is no rank
        return None
    process = PROCESS.peek(rank)
    if process is None:
        process = CompiledProcess(0)
        PROCESS.put(rank, process)
        if ENVIRONMENT.peek(rank) is None:
            environment.start(options=C_OPTIONS)
    return process


def put(process: CompiledProcess) -> None:
    """Make it the process of the rank that runs."""
    PROCESS.put(current(), process)


# What the C library would do for a process.


def clock(number: int) -> int:
    """A clock of the rank (ns)."""
    if number in (time.CLOCK_REALTIME, 5):  # CLOCK_REALTIME_COARSE
        return time.time_ns()
    if number == time.CLOCK_PROCESS_CPUTIME_ID:
        return time.process_time_ns()
    if number == time.CLOCK_THREAD_CPUTIME_ID:
        return time.thread_time_ns()
    return time.monotonic_ns()


def sleep(nanoseconds: int) -> int:
    """Sleep in simulated time."""
    time.sleep(nanoseconds * 1e-9)
    return 0


def write(descriptor: int, address: int, size: int) -> int:
    """Write bytes to a descriptor of the rank; the number of written bytes."""
    data = bytes(engine.view(address, size))
    stream = sys.stdout if descriptor == 1 else sys.stderr if descriptor == 2 else None
    try:
        if stream is None:
            return os.write(descriptor, data)
        stream.flush()
        binary = getattr(stream, "buffer", None)
        if binary is None:
            stream.write(data.decode("utf-8", "replace"))
        else:
            binary.write(data)
        stream.flush()
    except OSError:
        return 0
    return size


def read(descriptor: int, address: int, size: int) -> int:
    """Read bytes from standard input of the rank; 0 at its end."""
    stream: Any = sys.stdin
    if stream is None:
        return 0
    data = (
        stream.buffer.read1(size) if hasattr(stream, "buffer") else stream.readline(size).encode()
    )
    engine.view(address, len(data))[:] = data
    return len(data)


def abort() -> int:
    """End the job as a signal ends a process that calls `abort`."""
    current().abort(134, "called abort")
    return 0


def getpid() -> int:
    """The process id that the rank sees."""
    return os.getpid()


def hostname(address: int, size: int) -> int:
    """The name of the rank's host."""
    data = os.uname().nodename.encode()[: size - 1] + b"\0"
    engine.view(address, len(data))[:] = data
    return 0


def leave(status: int, quick: int) -> int:
    """End the rank, as a library does that calls `exit` or `_exit`."""
    if quick:
        os._exit(status & 0xFF)
    sys.exit(status & 0xFF)


def open_library(name: int, flags: int) -> int:
    """The handle of a library that a program opens; 0 if the loader shall find it."""
    process = here()
    if process.program is None:
        return 0
    handle: int = process.program.open(process, os.fsdecode(engine.read_text(name)))
    return handle


# In the order of `engine.h`.
CALLS = (clock, sleep, write, read, abort, getpid, hostname, leave, open_library)
