"""A snapshot of a program at its first choice: the part before is executed once.

The snapshot is a process that has executed the program up to the first decision with several
options. It waits there for requests. For each request it makes a copy of itself, which goes on as
one execution. Most of the memory that an execution changes is changed by its beginning, so a copy
costs less than half of a whole execution.

The copies share what is outside of their memory. There is no snapshot of a program that has open
files or sockets at its first choice, other threads, child processes or memory that it shares with
other processes. After an execution that has changed files, started processes or used sockets,
all further ones begin anew.
"""

from __future__ import annotations

import _socket
import os
import pickle
import select
import signal
import socket
import struct
import sys
import time
from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

from pysmpi.explore.events import Decision
from pysmpi.explore.observer import KnownStates, Observer
from pysmpi.own_process import interruption
from pysmpi.own_process.copies import copy_process

_INTEGER = struct.Struct("i")
_HEADER = struct.Struct("<cQQ")  # kind, number of the execution, bytes that follow

# A rank has its own.
_close, _kill, _waitpid, _waitid = os.close, os.kill, os.waitpid, os.waitid
_listdir, _open = os.listdir, open
_poll = select.poll
# Those of the class in C: ranks have a class of their own.
_recv, _recvmsg, _sendall = (
    _socket.socket.recv, _socket.socket.recvmsg, _socket.socket.sendall,
)  # fmt: skip
_RIGHTS = _socket.CMSG_SPACE(3 * _INTEGER.size)

_BEGIN, _KILL, _STATUS = b"b", b"k", b"s"  # kinds of requests
_STANDS = b"+"  # the first message of a snapshot
_SLICE = 100  # (ms) of a wait, after which it is checked whether a signal has arrived


def possible() -> bool:
    """Whether this system shows what a snapshot has to know of its process."""
    return sys.platform == "linux" and os.path.exists("/proc/self/maps")


class Continuation(NamedTuple):
    """How an execution goes on, and the states that were met since the last one."""

    prefix: Sequence[str]
    sleep: Sequence[Decision]
    delayed: Sequence[int]
    states: list[bytes]
    idle: list[bytes]


class Resources:
    """The descriptors and the shared memory of a process, which are outside of its own memory."""

    def __init__(self) -> None:
        self.descriptors = frozenset(_listdir("/proc/self/fd"))
        self.shared = _shared_memory()

    def same(self) -> bool:
        """Whether the process has nothing more now, and neither threads nor children."""
        try:
            _waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            return False
        except ChildProcessError:
            pass
        if len(_listdir("/proc/self/task")) > 1 or _shared_memory() != self.shared:
            return False
        return frozenset(_listdir("/proc/self/fd")) == self.descriptors


def _shared_memory() -> list[bytes]:
    with _open("/proc/self/maps", "rb") as file:
        return [line.split(b" ")[0] for line in file if line.split(b" ", 2)[1][3:4] == b"s"]


class Snapshot:
    """The snapshot's side of the executions: the process that searches has one at a time.

    `observer` is that of its first execution. `child` is the number of its process, and
    `connection` the socket to it.
    """

    def __init__(self, observer: Observer, child: int, connection: socket.socket) -> None:
        self.observer = observer
        self.child = child
        self.connection = connection
        self._states = 0  # of the memory that the snapshot knows
        self._idle: set[bytes] = set()

    def fits(self, observer: Observer) -> bool:
        """Whether an execution begins as the snapshot has."""
        mine = self.observer
        return (
            observer.searching
            and len(observer.prefix or ()) > 0
            and observer.memory is mine.memory
            and (observer.buffered, observer.reduce, observer.order, observer.symmetric)
            == (mine.buffered, mine.reduce, mine.order, mine.symmetric)
        )

    def stands(self, timeout: float) -> bool:
        """Wait until the process is at its first choice; False if it cannot be a snapshot."""
        poll = _poll()
        poll.register(self.connection, select.POLLIN | select.POLLHUP)
        end = time.monotonic() + timeout
        while not poll.poll(_SLICE):
            interruption.check()
            if time.monotonic() > end:
                return False
        try:
            return self.connection.recv(1) == _STANDS
        except OSError:
            return False

    def begin(self, number: int, observer: Observer, descriptors: Sequence[int]) -> bool:
        """Begin an execution with a number; False if the snapshot is gone.

        The descriptors are those of its output, its answer, and a pipe that it closes at its end.
        """
        memory = observer.memory
        delayed = tuple(observer.delayed)
        part = Continuation(observer.prefix or (), list(observer.sleep.values()), delayed, [], [])
        if memory is not None:
            part.states.extend(islice(memory.states, self._states, None))
            self._states = len(memory.states)
            part.idle.extend(memory.idle - self._idle)
            self._idle |= memory.idle
        data = pickle.dumps(tuple(part))
        return self._ask(_BEGIN, number, data, descriptors)

    def kill(self, number: int) -> None:
        """Kill an execution."""
        self._ask(_KILL, number)

    def status(self, number: int) -> int:
        """Wait for the end of an execution; return its status as `os.waitpid` gives it."""
        if not self._ask(_STATUS, number):
            return 9
        data = b""
        while len(data) < 4:
            more = self.connection.recv(4 - len(data))
            if not more:
                return 9
            data += more
        return int.from_bytes(data, "little")

    def _ask(
        self, kind: bytes, number: int, data: bytes = b"", descriptors: Sequence[int] = ()
    ) -> bool:
        try:
            header = _HEADER.pack(kind, number, len(data))
            socket.send_fds(self.connection, [header], descriptors)
            self.connection.sendall(data)
        except OSError:
            return False
        return True


class SnapshotServer:
    """The requests that arrive at the process of a snapshot."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.resources = Resources()
        self.memory = KnownStates()
        self._running: dict[int, int] = {}  # processes, by number
        self._ended: dict[int, int] = {}  # statuses, by process

    def serve(self) -> tuple[Continuation, list[int]] | None:
        """Answer requests until there are no more; in a copy, return how it goes on."""
        _sendall(self.connection, _STANDS)
        while True:
            header, rights, _, _ = _recvmsg(self.connection, _HEADER.size, _RIGHTS)
            descriptors = [one for _, _, data in rights for (one,) in _INTEGER.iter_unpack(data)]
            header += self._read(_HEADER.size - len(header)) if header else b""
            if len(header) < _HEADER.size:
                break
            kind, number, size = _HEADER.unpack(header)
            self._reap()
            if kind == _BEGIN:
                part = Continuation(*pickle.loads(self._read(size)))
                self.memory.states.update(dict.fromkeys(part.states))
                self.memory.idle.update(part.idle)
                pid = copy_process()
                if not pid:
                    _close(self.connection.fileno())
                    return part, descriptors
                for earlier in (self._running.get(number), pid):  # numbers are used again
                    self._ended.pop(earlier or 0, None)
                self._running[number] = pid
                for descriptor in descriptors:
                    _close(descriptor)
                continue
            pid = self._running[number]
            if pid not in self._ended:
                if kind == _KILL:
                    _kill(pid, signal.SIGKILL)
                else:
                    self._ended[pid] = _waitpid(pid, 0)[1]
            if kind == _STATUS:
                del self._running[number]
                _sendall(self.connection, self._ended.pop(pid).to_bytes(4, "little"))
        for pid in self._running.values():
            if pid not in self._ended:
                _kill(pid, signal.SIGKILL)
        return None

    def _read(self, size: int) -> bytes:
        parts = []
        while size:
            data = _recv(self.connection, size)
            if not data:
                return b""
            parts.append(data)
            size -= len(data)
        return b"".join(parts)

    def _reap(self) -> None:
        while True:
            try:
                pid, status = _waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            self._ended[pid] = status
