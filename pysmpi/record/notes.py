"""The notes of one rank: its calls, in a temporary file, with local times and local numbers."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

from mpi4py import MPI

from pysmpi.python.frames import line_outside

if sys.platform == "linux":
    from resource import RUSAGE_THREAD, getrusage

    def waits() -> int:
        """The number of times that the calling thread gave its core away to wait; -1 if unknown."""
        return getrusage(RUSAGE_THREAD).ru_nvcsw
else:

    def waits() -> int:
        """The number of times that the calling thread gave its core away to wait; -1 if unknown."""
        return -1


UNLIMITED = 1 << 62
_OWN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "")


class KnownComm:
    """A communicator: its identity on all its ranks, its members, its collective calls so far."""

    __slots__ = ("key", "members", "rank", "size", "calls", "made", "inter")

    def __init__(self, key: str, members: tuple[int, ...], rank: int, inter: bool) -> None:
        self.key = key
        self.members = members
        self.rank = rank
        self.size = len(members)
        self.calls = 0
        self.made = 0  # communicators that were made from it
        self.inter = inter


class Pending:
    """A request: its number, and the operation that it completes."""

    __slots__ = ("request", "number", "receives", "wild", "persistent", "operation", "active")

    def __init__(self, request: object, number: int, receives: bool, wild: bool) -> None:
        self.request = request
        self.number = number
        self.receives = receives
        self.wild = wild
        self.persistent = False
        self.operation: list[Any] = []
        self.active = True


class Notes:
    """The actions of this rank so far.

    `operations` belong to the open call. Dates are values of `time.perf_counter`.
    """

    def __init__(self) -> None:
        self.file = tempfile.TemporaryFile("w+", encoding="utf-8")
        self.world: Any = None
        self.inside = False
        self.calls = 0
        self.requests = 0
        self.left = 0.0
        self._used = 0.0  # seconds of the core
        self._waits = -1
        self._thread = 0
        self.resume()
        self.operations: list[list[Any]] = []
        self.comms: dict[int, KnownComm] = {}  # by handle
        self.keys: dict[str, tuple[int, ...]] = {}  # members of all communicators, by identity
        self.pending: dict[int, Pending] = {}  # by the identity of the object
        self.largest: dict[str, int] = {}  # bytes of collective calls whose sizes may differ
        self.dumped: list[int] = []  # bytes of the objects that were pickled in the call
        self.loaded: list[int] = []
        self.sent = self.received = 0

    def resume(self) -> None:
        """The program goes on after a call."""
        self._thread = threading.get_ident()
        self._waits = waits()
        self._used = time.thread_time()
        self.left = time.perf_counter()

    def elapsed(self, date: float) -> list[list[Any]]:
        """Return the operations of the program up to a date; called at this date.

        While it did not wait, it computed as long as it had a core, which a busy computer may take
        from it. If it waited, the rest of the time passed.
        """
        seconds = date - self.left
        if self._waits < 0 or threading.get_ident() != self._thread:
            return [["compute", seconds]]
        used = min(time.thread_time() - self._used, seconds)
        if waits() == self._waits:
            return [["compute", used]]
        return [["compute", used], ["pass", seconds - used]]

    def known(self, comm: Any) -> KnownComm:
        """A communicator's notes."""
        handle = comm.handle
        result = self.comms.get(handle)
        if result is None:
            result = self.learn(comm, "?")
        return result

    def learn(self, comm: Any, key: str) -> KnownComm:
        """A communicator that is new: `key` says on all its ranks how it was made."""
        mine, world = comm.Get_group(), self.world.Get_group()
        members = MPI.Group.Translate_ranks(mine, list(range(mine.size)), world)
        inter = comm.Is_inter()
        if inter:
            other = comm.Get_remote_group()
            members += MPI.Group.Translate_ranks(other, list(range(other.size)), world)
        key = f"{key}:{','.join(map(str, sorted(members)))}" if comm is not self.world else "world"
        result = self.comms[comm.handle] = KnownComm(key, tuple(members), comm.rank, inter)
        self.keys[key] = result.members
        return result

    def site(self) -> str:
        """The line of the program that makes the call."""
        found = line_outside(lambda file: file.startswith(_OWN) or "mpi4py" in file)
        if found is None:
            return ""
        name, line = found
        try:
            short = os.path.relpath(name)
        except ValueError:
            short = name
        return f"{name if short.startswith('..') else short}:{line}"

    def next_request(self) -> int:
        """A number for a request."""
        self.requests += 1
        return self.requests

    def write(self, record: Sequence[object]) -> None:
        """Keep a record."""
        self.file.write(json.dumps(record, separators=(",", ":")) + "\n")

    def records(self) -> Iterator[list[Any]]:
        """All records, in their order."""
        self.file.seek(0)
        for line in self.file:
            yield json.loads(line)
