"""A snapshot of a program at its first choice: the part before is executed once.

The snapshot is a process that has executed the program up to the first decision with several
options. It waits there for requests. For each request it makes a copy of itself, a *worker*, whose
executions go on from there, one after another: before each further one, the worker's memory is what
it was before the first (`rewinding.c`). A worker that cannot have that again ends, and another one
follows. Most of the memory that an execution changes is changed by its beginning, so a copy costs
less than half of a whole execution, and an execution of a worker less than half of a copy.

The copies share what is outside of their memory. There is no snapshot of a program that has open
files or sockets at its first choice, other threads, child processes or memory that it shares with
other processes. After an execution that has changed files, started processes or used sockets,
all further ones begin anew.
"""

from __future__ import annotations

import _socket
import mmap
import os
import pickle
import select
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import islice
from typing import IO, NamedTuple

from pysmpi.explore.events import Decision
from pysmpi.explore.observer import KnownStates, Observer
from pysmpi.explore.states import DIGEST
from pysmpi.explore.strategy import Strategy
from pysmpi.own_process import interruption
from pysmpi.own_process.copies import copy_process

try:
    from pysmpi.explore import rewinding
except ImportError:  # pysmpi was installed without a C compiler
    rewinding = None  # type: ignore[assignment]

_INTEGER = struct.Struct("i")
_REQUEST = struct.Struct("<cQ")  # kind, number of the worker
_SIZE = struct.Struct("<Q")  # of a message to or from a worker

# A rank has its own.
_close, _kill, _waitpid, _waitid = os.close, os.kill, os.waitpid, os.waitid
_listdir, _open, _truncate, _seek = os.listdir, open, os.ftruncate, os.lseek
_poll, _fstat, _map, _write = select.poll, os.fstat, mmap.mmap, os.write
# Those of the class in C: ranks have a class of their own.
_recv, _recvmsg, _sendall, _close_socket = (
    _socket.socket.recv, _socket.socket.recvmsg, _socket.socket.sendall, _socket.socket.close,
)  # fmt: skip
_RIGHTS = _socket.CMSG_SPACE(3 * _INTEGER.size)

_COPY, _LAST, _KILL, _STATUS = b"c", b"l", b"k", b"s"  # kinds of requests
_STANDS = b"+"  # the first message of a snapshot, and that of a worker that is ready again
_SLICE = 100  # (ms) of a wait, after which it is checked whether a signal has arrived
_NONE = bytes(DIGEST)
_PLACES = 14  # 2 to the power of it are the places for digests at first
# Executions until it pays that workers keep a copy of their memory, and those of a worker that ends
# too early to have paid.
MANY, _FEW = 8, 8
_MOST_EARLY = 3  # workers that ended too early, until no more are tried


def possible() -> bool:
    """Whether this system shows what a snapshot has to know of its process."""
    return sys.platform == "linux" and os.path.exists("/proc/self/maps")


class Continuation(NamedTuple):
    """How an execution goes on."""

    prefix: Sequence[str]
    sleep: Sequence[Decision]
    delayed: Sequence[int]
    strategy: Strategy | None
    asking: bool


class SharedDigests:
    """A set of digests in a file that processes map: one of them adds, all of them look.

    A file has 2**`bits` places; a digest is at the first free one from where its first bytes say.
    """

    def __init__(self, file: int, bits: int | None = None) -> None:
        if bits is None:
            bits = (_fstat(file).st_size // DIGEST).bit_length() - 1
        else:
            _truncate(file, DIGEST << bits)
        self.bits = bits
        self.count = 0
        self._mask = (1 << bits) - 1
        self._places = _map(file, DIGEST << bits)

    def __contains__(self, digest: bytes) -> bool:
        return self._places[(at := self._place(digest)) : at + DIGEST] == digest

    def add(self, digest: bytes) -> bool:
        """Add a digest; False if there is hardly any room for further ones."""
        at = self._place(digest)
        self.count += self._places[at : at + DIGEST] == _NONE
        self._places[at : at + DIGEST] = digest
        return self.count < self._mask // 4 * 3

    def _place(self, digest: bytes) -> int:
        places, number = self._places, int.from_bytes(digest[:4])
        while True:
            at = (number & self._mask) * DIGEST
            found = places[at : at + DIGEST]
            if found in (digest, _NONE):
                return at
            number += 1

    def touch(self) -> None:
        """Map all pages."""
        self._places[:: mmap.PAGESIZE]


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


class SnapshotWorker:
    """The search's side of one copy of a snapshot, which executes one order after another.

    `connection` is the socket to it, `output` the file of the output of its executions. A worker
    that is not `lasting` ends after one execution.
    """

    def __init__(
        self, snapshot: Snapshot, number: int, lasting: bool, connection: socket.socket,
        output: IO[bytes], known: SharedDigests,
    ) -> None:  # fmt: skip
        self.snapshot = snapshot
        self.number = number
        self.lasting = lasting
        self.connection = connection
        self.output = output
        self.known = known
        self.executions = 0

    def begin(self, observer: Observer) -> bool:
        """Begin an execution; False if the worker is gone."""
        sleep, delayed = list(observer.sleep.values()), tuple(observer.delayed)
        part = observer.prefix or (), sleep, delayed, observer.strategy, observer.asking
        data = pickle.dumps(part, 5)
        self.executions += 1
        try:
            self.connection.sendall(_SIZE.pack(len(data)) + data)
        except OSError:
            return False
        return True

    def answer(self) -> bytes:
        """The answer of the worker about its execution; empty if it has died."""
        try:
            return receive(self.connection)
        except OSError:
            return b""

    def again(self) -> bool:
        """Wait until the worker is ready for another execution; False if it has ended."""
        try:
            return self.lasting and self.connection.recv(1) == _STANDS
        except OSError:
            return False

    def kill(self) -> None:
        """Kill it."""
        self.snapshot.ask(_KILL, self.number)

    def close(self) -> int:
        """Let it end, and wait for its end; its status as `os.waitpid` gives it."""
        self.connection.close()
        self.output.close()
        return self.snapshot.status(self.number)


class Snapshot:
    """The snapshot's side of the executions: the process that searches has one at a time.

    `observer` is that of its first execution. `child` is the number of its process, and
    `connection` the socket to it. `make_file()` makes a file without a name.
    """

    def __init__(
        self, observer: Observer, child: int, connection: socket.socket,
        make_file: Callable[[], IO[bytes]],
    ) -> None:  # fmt: skip
        self.observer = observer
        self.child = child
        self.connection = connection
        self.make_file = make_file
        self._file = make_file()
        self._known = SharedDigests(self._file.fileno(), _PLACES)
        self._states = 0  # of the memory that the workers know
        self._idle: set[bytes] = set()
        self._workers: list[SnapshotWorker] = []  # without an execution
        self._number = 0  # of the latest worker
        self._executions = 0
        self._early = 0 if rewinding is not None else _MOST_EARLY

    def fits(self, observer: Observer) -> bool:
        """Whether an execution begins as the snapshot has."""
        mine, rule = self.observer, observer.rule
        return (
            rule is not None
            and rule == mine.rule
            and observer.memory is mine.memory
            and observer.remedy == mine.remedy
            and (observer.searching, observer.reduce, observer.symmetric, observer.strategy is None)
            == (mine.searching, mine.reduce, mine.symmetric, mine.strategy is None)
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

    def begin(self, observer: Observer) -> SnapshotWorker | None:
        """Begin an execution on a worker; None if the snapshot is gone."""
        if observer.memory is not None:
            self._publish(observer.memory)
        self._executions += 1
        while self._workers:
            worker = self._workers.pop()
            if worker.known is self._known and worker.again() and worker.begin(observer):
                return worker
            self._early += worker.lasting and worker.executions < _FEW
            worker.close()
        made = self._copy()
        return made if made is not None and made.begin(observer) else None

    def end(self, worker: SnapshotWorker, died: bool) -> int:
        """An execution of a worker has ended; the status of the worker if it `died`."""
        if died or not worker.lasting:
            return worker.close()
        self._workers.append(worker)
        return 0

    def _publish(self, memory: KnownStates) -> None:
        """Let workers know the states that were met."""
        new = list(islice(memory.states, self._states, None))
        self._states = len(memory.states)
        if len(memory.idle) > len(self._idle):
            new += memory.idle - self._idle
            self._idle |= memory.idle
        room = True
        for digest in new:
            room = self._known.add(digest)
        if not room:
            self._file.close()
            self._file = self.make_file()
            self._known = SharedDigests(self._file.fileno(), self._known.bits + 2)
            for digest in (*memory.states, *self._idle):
                self._known.add(digest)

    def _copy(self) -> SnapshotWorker | None:
        """A new worker."""
        lasting = self._executions > MANY and self._early < _MOST_EARLY
        mine, its = socket.socketpair()
        output = self.make_file()
        self._number += 1
        descriptors = its.fileno(), output.fileno(), self._file.fileno()
        made = self.ask(_COPY if lasting else _LAST, self._number, descriptors)
        its.close()
        return (
            SnapshotWorker(self, self._number, lasting, mine, output, self._known) if made else None
        )

    def status(self, number: int) -> int:
        """Wait for the end of a worker; return its status as `os.waitpid` gives it."""
        if not self.ask(_STATUS, number):
            return 9
        data = b""
        while len(data) < 4:
            more = self.connection.recv(4 - len(data))
            if not more:
                return 9
            data += more
        return int.from_bytes(data, "little")

    def ask(self, kind: bytes, number: int, descriptors: Sequence[int] = ()) -> bool:
        """Send a request; False if the snapshot is gone."""
        try:
            socket.send_fds(self.connection, [_REQUEST.pack(kind, number)], descriptors)
        except OSError:
            return False
        return True

    def close(self) -> None:
        """End the process, and its workers."""
        for worker in self._workers:
            worker.close()
        self._file.close()
        self.connection.close()
        _kill(self.child, signal.SIGKILL)
        _waitpid(self.child, 0)


class SnapshotServer:
    """The requests that arrive at the process of a snapshot."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.resources = Resources()
        self._running: dict[int, int] = {}  # processes, by number
        self._ended: dict[int, int] = {}  # statuses, by process

    def serve(self) -> tuple[bool, list[int]] | None:
        """Answer requests until there are no more; in a copy, return whether it lasts."""
        _sendall(self.connection, _STANDS)
        while True:
            request, rights, _, _ = _recvmsg(self.connection, _REQUEST.size, _RIGHTS)
            descriptors = [one for _, _, data in rights for (one,) in _INTEGER.iter_unpack(data)]
            if request:
                request += read(self.connection, _REQUEST.size - len(request))
            if len(request) < _REQUEST.size:
                break
            kind, number = _REQUEST.unpack(request)
            self._reap()
            if kind in (_COPY, _LAST):
                pid = copy_process()
                if not pid:
                    _close_socket(self.connection)
                    return kind == _COPY, descriptors
                self._ended.pop(pid, None)  # numbers are used again
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

    def _reap(self) -> None:
        while True:
            try:
                pid, status = _waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            self._ended[pid] = status


class Requests:
    """A worker's own side: the executions that it is asked for.

    `output` is the descriptor of their output, which begins with `written`.
    """

    def __init__(
        self, lasting: bool, connection: int, output: int, written: bytes, known: SharedDigests
    ) -> None:
        self.lasting = lasting and rewinding is not None
        self.connection = _socket.socket(fileno=connection)
        self.output = output
        self.written = written
        self.memory = SharedStates(known)
        known.touch()

    def take(self) -> Continuation | None:
        """The next execution; None if there is no more. It returns again after each `answer`."""
        if self.lasting:
            times = rewinding.hold()
            self.lasting = times is not None
        else:
            times = None
        try:
            if times:
                _sendall(self.connection, _STANDS)
            data = receive(self.connection)
        except OSError:  # the search has ended
            return None
        if not data:
            return None
        # Not before: the search reads the output of the last one until it asks for another one.
        _truncate(self.output, 0)
        _seek(self.output, 0, os.SEEK_SET)
        if self.written:
            _write(self.output, self.written)
        return Continuation(*pickle.loads(data))

    def answer(self, data: bytes, lasting: bool) -> None:
        """Answer, and go back to the moment before the execution; it returns if it cannot."""
        with suppress(OSError):  # the search has ended
            _sendall(self.connection, _SIZE.pack(len(data)) + data)
        if lasting and self.lasting:
            rewinding.rewind()


class SharedStates(KnownStates):
    """States that the search knows; `idle` are further ones of an execution."""

    def __init__(self, known: SharedDigests) -> None:
        super().__init__()
        self.known = known

    def knows(self, state: bytes) -> bool:
        """Whether a state was met."""
        return state in self.known

    def leads_back(self, state: bytes) -> bool:
        """Whether a test that sees nothing leads back to a state of a rank."""
        return state in self.idle or state in self.known


def receive(connection: _socket.socket) -> bytes:
    """A message after its size; nothing if the other side is gone."""
    size = read(connection, _SIZE.size)
    return read(connection, *_SIZE.unpack(size)) if size else b""


def read(connection: _socket.socket, size: int) -> bytes:
    """So many bytes; nothing if the other side is gone."""
    parts = []
    while size:
        data = _recv(connection, size)
        if not data:
            return b""
        parts.append(data)
        size -= len(data)
    return b"".join(parts)
