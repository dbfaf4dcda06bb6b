"""The output of each rank: lines with its number in front of them, or a file for each rank.

Descriptors 1 and 2 of the process are files in memory while the ranks run, so output of Python, of
C code and of child processes goes there. At each switch of ranks, what was written belongs to the
rank that ran. A rank that starts a child process gets files of its own, because the child writes
while other ranks run. A line whose end a rank has not written yet waits for it, so lines of several
ranks are not mixed. Bytes are passed on as they are.
"""

from __future__ import annotations

import _thread
import contextlib
import ctypes
import io
import os
import select
import sys
from collections.abc import Callable
from types import TracebackType
from typing import IO, Any

from pysmpi.errors import UsageError
from pysmpi.isolation.exchange import Exchange, State
from pysmpi.isolation.state import ProcessState

try:
    import fcntl
except ImportError:  # not a POSIX system
    fcntl = None  # type: ignore[assignment]

# Ranks get other functions of these names.
_fstat, _pread, _write, _close = os.fstat, os.pread, os.write, os.close
_dup2, _open, _truncate, _makedirs = os.dup2, os.open, os.ftruncate, os.makedirs
_poll: Any = select.poll

STREAMS = {1: "stdout", 2: "stderr"}
_SOON = 0.2  # seconds after which the output of a rank that computes for long is passed on
_LARGE = 16 << 20  # bytes after which the files in memory begin again
_MOST_FILES = 200  # files of ranks that are open at a time

# The beginning of each line, from the rank and the name of the stream.
Prefix = Callable[[int, str], bytes]


class RankOutput(ProcessState):
    """A context manager that passes the output of ranks on.

    `prefix(rank, stream)` is put before each line, if there is one. `files[stream](rank)` is the
    file of a rank for a stream, which then does not reach the terminal; ranks may share a file.
    Raises UsageError at the end of the run if something could not be written.
    """

    name = "output"
    polled = True

    def __init__(
        self,
        prefix: Prefix | None = None,
        files: dict[int, Callable[[int], str]] | None = None,
    ) -> None:
        self.prefix = prefix
        self.files = files or {}
        self.owner: State | None = None
        self.failed: OSError | None = None
        self._lock = _thread.allocate_lock()
        self._rests: dict[tuple[int, int], bytes] = {}  # begun lines, by rank and stream
        self._real: dict[int, int] = {}  # duplicates of the descriptors
        self._memory: dict[int, OutputMemory] = {}
        self._own: dict[State, dict[int, OutputMemory]] = {}
        self._bare = {1: True, 2: True}  # whether the stream is at the begin of a line
        self._opened: dict[str, IO[bytes]] = {}
        self._begun: set[str] = set()
        self._streams: list[Any] = []
        self._stop = (-1, -1)
        self._ended = _thread.allocate_lock()

    # Around the run

    def __enter__(self) -> RankOutput:
        self._streams = [one for one in (sys.stdout, sys.stderr) if one is not None]
        self._flush()
        for fd in STREAMS:
            self._real[fd] = os.dup(fd)
            self._memory[fd] = OutputMemory()
            _dup2(self._memory[fd].number, fd)
        _running.append(self)
        self._stop = os.pipe()
        self._ended.acquire()
        _thread.start_new_thread(self._pass_on, ())
        return self

    def attach(self, exchange: Exchange) -> None:
        """Follow the switches of ranks of a run."""
        self.exchange = exchange
        self.follow()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _running.remove(self)
        _close(self._stop[1])
        self._ended.acquire()
        self._flush()
        with self._lock:
            self._drain()
            for (rank, fd), rest in self._rests.items():
                self._put(rank, fd, rest)
        for fd in STREAMS:
            _dup2(self._real[fd], fd)
            _close(self._real[fd])
            _close(self._memory[fd].number)
        for files in self._own.values():
            for file in files.values():
                _close(file.number)
        _close(self._stop[0])
        self._close_files()
        if self.failed is not None and error is None:
            if isinstance(self.failed, BrokenPipeError):
                raise BrokenPipeError
            reason = self.failed.strerror or str(self.failed)
            where = self.failed.filename or "output"
            raise UsageError(f"{where}: cannot be written: {reason}")

    def _pass_on(self) -> None:
        """Pass output on while a rank computes; ends when the other end of the pipe is closed."""
        poll = _poll()
        poll.register(self._stop[0], select.POLLIN)
        try:
            while not poll.poll(_SOON * 1000.0):
                with self._lock:
                    self._drain()
        finally:
            self._ended.release()

    # Called at switches of ranks

    def initial(self, state: State) -> State:
        """A value for each state, so that `install` is called at each switch."""
        return state

    def differs(self) -> bool:
        return True

    def record(self, state: State) -> None:
        """Give the output up to now to the rank that has run."""
        self._flush()
        with self._lock:
            self._drain()

    def install(self, value: State) -> None:
        with self._lock:
            self.owner = value

    def _flush(self) -> None:
        """Write the buffers of Python and of C to the descriptors."""
        for stream in self._streams:
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        _fflush(None)

    def _drain(self) -> None:
        rank = _number(self.owner)
        for fd, memory in self._memory.items():
            for data in memory.new():
                self._take(rank, fd, data)
        for state, files in self._own.items():
            for fd, memory in files.items():
                for data in memory.new():
                    self._take(_number(state), fd, data)

    def separate(self) -> None:
        """The rank that runs is about to start a process: give it files of its own."""
        state = self.owner
        if state is None or state.owner is None or state in self._own:
            return
        files = {}
        self._flush()
        with self._lock:
            self._drain()
        for fd in STREAMS:
            with contextlib.suppress(OSError):
                if _fstat(fd).st_ino == _fstat(self._memory[fd].number).st_ino:
                    files[fd] = OutputMemory()
                    os.dup2(files[fd].number, fd)  # that of the rank
        with self._lock:
            self._own[state] = files

    def _take(self, rank: int, fd: int, data: bytes) -> None:
        """Some output of a rank; that of pysmpi itself has the number -1."""
        if rank < 0:
            self._to_stream(fd, data)
            return
        if fd in self.files:
            self._put(rank, fd, data)
            return
        key = rank, fd
        rest = self._rests.pop(key, b"")
        whole, newline, begun = (rest + data).rpartition(b"\n")
        if begun:
            self._rests[key] = begun
        if newline:
            self._put(rank, fd, whole + newline)

    def _put(self, rank: int, fd: int, data: bytes) -> None:
        name = self.files.get(fd)
        if name is not None:
            self._to_file(name(rank), data)
            return
        if self.prefix is not None:
            begin = self.prefix(rank, STREAMS[fd])
            lines = data.split(b"\n")
            last = lines.pop()
            data = b"".join([begin + line + b"\n" for line in lines])
            if last:
                data += begin + last
        if not self._bare[fd]:
            data = b"\n" + data  # after a last line without an end
        self._to_stream(fd, data)

    def _to_stream(self, fd: int, data: bytes) -> None:
        self._bare[fd] = data.endswith(b"\n")
        try:
            while data and self.failed is None:
                data = data[_write(self._real[fd], data) :]
        except OSError as error:
            self.failed = error

    def _to_file(self, name: str, data: bytes) -> None:
        if self.failed is not None:
            return
        try:
            stream = self._opened.get(name)
            if stream is None:
                if len(self._opened) >= _MOST_FILES:
                    self._close_files()
                stream = self._opened[name] = self._open_file(name)
            stream.write(data)
        except OSError as error:
            error.filename = name
            self.failed = error

    def _open_file(self, name: str) -> IO[bytes]:
        if name not in self._begun:
            folder = os.path.dirname(name)
            if folder:
                _makedirs(folder, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        handle = _open(name, flags | (0 if name in self._begun else os.O_TRUNC), 0o666)
        self._begun.add(name)
        return io.FileIO(handle, "ab")

    def make_files(self, ranks: int) -> None:
        """Make the files of all ranks, so that one without output has an empty file."""
        for rank in range(ranks):
            for name in self.files.values():
                path = name(rank)
                if path not in self._begun:
                    try:
                        self._open_file(path).close()
                    except OSError as error:
                        reason = error.strerror or str(error)
                        raise UsageError(f"{path}: cannot be written: {reason}") from None

    def _close_files(self) -> None:
        for stream in self._opened.values():
            with contextlib.suppress(OSError):
                stream.close()
        self._opened.clear()


class OutputMemory:
    """A file in memory to which processes append, and of which this one reads what is new."""

    def __init__(self) -> None:
        if hasattr(os, "memfd_create"):
            self.number = os.memfd_create("output")
        else:
            from tempfile import TemporaryFile

            with TemporaryFile() as file:
                self.number = os.dup(file.fileno())
        fcntl.fcntl(self.number, fcntl.F_SETFL, os.O_APPEND)
        self.offset = 0

    def new(self) -> list[bytes]:
        """The parts that were written since the last call."""
        result = []
        size = _fstat(self.number).st_size
        while self.offset < size:
            data = _pread(self.number, min(size - self.offset, 1 << 20), self.offset)
            if not data:
                break
            self.offset += len(data)
            result.append(data)
        if self.offset > _LARGE and self.offset == _fstat(self.number).st_size:
            _truncate(self.number, 0)
            self.offset = 0
        return result


def _number(state: State | None) -> int:
    """The number of the rank of a state; -1 for the caller of the run."""
    owner = None if state is None else state.owner
    return -1 if owner is None else int(owner.number)


_running: list[RankOutput] = []


def separate() -> None:
    """The rank that runs is about to start a process."""
    for output in _running:
        output.separate()


_libc: object = ctypes.PyDLL(None) if os.name == "posix" else None
_fflush: Callable[[None], object] = getattr(_libc, "fflush", lambda stream: None)
