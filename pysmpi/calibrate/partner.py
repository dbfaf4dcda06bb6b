"""The process on the other core: executes commands on some memory, and answers."""

from __future__ import annotations

import multiprocessing
import os
from multiprocessing.connection import Connection
from time import perf_counter
from types import TracebackType

from pysmpi.calibrate.accesses import CLibrary
from pysmpi.errors import PysmpiError
from pysmpi.own_process.descendants import end_with_parent

AWAKE = 1e-3  # seconds for which an idle partner keeps its core awake
PATIENCE = 60.0  # timeout (s) of an answer of the partner


class Partner:
    """A forked process, pinned to a core. It sees the arena at the same addresses."""

    def __init__(self, cpu: int) -> None:
        context = multiprocessing.get_context("fork")
        self._pipe, theirs = context.Pipe()
        given = cpu, theirs, self._pipe, os.getpid()
        self._process = context.Process(target=_serve, args=given, daemon=True)
        self._process.start()
        theirs.close()

    def store(self, address: int, nbytes: int) -> None:
        """Have it write a buffer."""
        self._ask("store", address, nbytes)

    def load(self, address: int, nbytes: int) -> None:
        """Have it read a buffer."""
        self._ask("load", address, nbytes)

    def copy(self, target: int, source: int, nbytes: int) -> None:
        """Have it copy a buffer."""
        self._ask("copy", target, source, nbytes)

    def _ask(self, *order: object) -> None:
        self._pipe.send(order)
        if not self._pipe.poll(PATIENCE):
            raise PysmpiError(f"calibrate memory: no answer from the other core to {order[0]}")
        self._pipe.recv()

    def __enter__(self) -> Partner:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:  # fmt: skip
        """Send it away."""
        self._pipe.close()
        self._process.join(1.0)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()


def pin(cpu: int) -> None:
    """Keep the calling process on one CPU."""
    os.sched_setaffinity(0, {cpu})


def _serve(cpu: int, pipe: Connection, other: Connection, parent: int) -> None:
    end_with_parent(parent)
    other.close()
    pin(cpu)
    library = CLibrary()
    while True:
        until = perf_counter() + AWAKE
        while not pipe.poll(0) and perf_counter() < until:
            pass
        try:
            name, *arguments = pipe.recv()
        except (EOFError, KeyboardInterrupt):
            return
        getattr(library, name)(*arguments)
        pipe.send(None)
