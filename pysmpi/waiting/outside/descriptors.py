"""Reading and writing descriptors that may block: pipes, sockets, terminals.

`os.read`, `os.write` and their relatives, and the files of `io` over a descriptor. A call that
would block lets other ranks run until it would not.
"""

from __future__ import annotations

import io
import os
import select
import stat
from collections.abc import Callable
from functools import partial
from typing import Any

from pysmpi.isolation.kinds.descriptors import Descriptors, make_room
from pysmpi.mpi.base import ranks
from pysmpi.patching.patches import Patches
from pysmpi.patching.replacing import Replacements, methods
from pysmpi.waiting.outside.peers import PeerSide
from pysmpi.waiting.outside.reactor import READ, WRITE, Reactor, reactor

# Bytes that a pipe takes without blocking if it takes any.
_AT_ONCE = getattr(select, "PIPE_BUF", 512)
_MOST = 1 << 16

_fstat, _get_blocking, _read, _write = os.fstat, os.get_blocking, os.read, os.write
_poll = select.poll
_MAY_BLOCK = (stat.S_IFIFO, stat.S_IFSOCK, stat.S_IFCHR, 0)


def may_block(fd: int) -> bool:
    """Whether reading or writing a descriptor can take long."""
    try:
        return stat.S_IFMT(_fstat(fd).st_mode) in _MAY_BLOCK
    except (OSError, OverflowError):
        return False


def is_ready(fd: int, events: int) -> bool:
    """Whether a descriptor is ready now."""
    poll = _poll()
    poll.register(fd, events)
    return bool(poll.poll(0))


def until_ready(found: Reactor, fd: int, events: int) -> None:
    """Run other ranks until a descriptor is ready."""
    while not is_ready(fd, events):
        found.wait([(fd, events)])


def changing(found: Reactor) -> None:
    """The running rank will do something that may end the wait of another."""
    found.before_change(ranks.current())


def _reading(real: Callable[..., object]) -> Callable[..., object]:
    """A function that reads the descriptor that is its first argument."""

    def read(fd: object, *args: object) -> Any:
        current = reactor()
        if current is None or type(fd) is not int or not may_block(fd):
            return real(fd, *args)
        if _get_blocking(fd):
            until_ready(current, fd, READ)
        else:
            try:
                changing(current)
                data = real(fd, *args)
            except BlockingIOError:
                current.missed([fd])
                raise
            current.changed()
            return data
        changing(current)
        data = real(fd, *args)
        current.changed()  # room is available again
        return data

    return read


def write_all(found: Reactor, fd: int, data: Any) -> int:
    """Write all of a blocking call's data to a pipe or socket."""
    done = 0
    with memoryview(data) as view, view.cast("B") as rest:
        while True:
            try:
                if fd in (1, 2):
                    make_room(fd)  # ranks share the buffer of their streams
                until_ready(found, fd, WRITE)
                changing(found)
                done += _write(fd, rest[done : done + _AT_ONCE])
            except OSError:
                if done:
                    return done
                raise
            finally:
                found.changed()
            if done >= len(rest):
                return done


def _os_write(real: Callable[..., Any]) -> Callable[..., object]:
    def write(fd: object, data: object, /) -> int:
        current = reactor()
        if current is None or type(fd) is not int or not may_block(fd):
            return real(fd, data)  # type: ignore[no-any-return]
        return _write_to(current, fd, data, lambda: real(fd, data))  # type: ignore[no-any-return]

    return write


def _write_to(found: Reactor, fd: int, data: object, real: Callable[[], object]) -> Any:
    if _is_for_user(found, fd):
        return real()
    try:
        if not _get_blocking(fd):
            changing(found)
            return real()
    except BlockingIOError:
        found.missed([fd])
        raise
    finally:
        found.changed()
    return write_all(found, fd, data)


def _is_for_user(found: Reactor, fd: int) -> bool:
    """Whether this is the output of pysmpi itself.

    No other rank needs to run for it to be accepted. Ranks share its buffer, so they should not be
    switched during a write.
    """
    return fd in (1, 2) and found.side([fd]) is not PeerSide.INSIDE


def _os_writev(real: Callable[..., Any]) -> Callable[..., object]:
    def writev(fd: Any, buffers: Any, /) -> int:
        current = reactor()
        if current is None or type(fd) is not int or not may_block(fd):
            return real(fd, buffers)  # type: ignore[no-any-return]
        data = b"".join(bytes(memoryview(part)) for part in buffers)
        return _write_to(current, fd, data, lambda: real(fd, buffers))  # type: ignore[no-any-return]

    return writev


def _telling(real: Callable[..., object]) -> Callable[..., object]:
    """A function that may end waits of others, and changes the holders of descriptors."""

    def call(*args: object, **kwargs: object) -> Any:
        current = reactor()
        if current is None:
            return real(*args, **kwargs)
        changing(current)
        try:
            return real(*args, **kwargs)
        finally:
            current.generation += 1
            current.changed()

    return call


def _changing(
    name: str, own: Descriptors | None, real: Callable[..., object]
) -> Callable[..., object]:
    """A function that changes the files of descriptors; of 0 to 2, those of one rank."""
    return _telling(real if own is None else own.replacing(name, real))


# Files


def _file_methods() -> dict[str, Callable[..., Any]]:
    kind = io.FileIO
    real_read, real_readinto = kind.read, kind.readinto
    real_readall, real_write = kind.readall, kind.write

    def blocks(self: Any) -> Reactor | None:
        """The reactor, if a call on this file may take long."""
        result = reactor()
        if result is None or self.closed:
            return None
        fd = self.fileno()
        return result if may_block(fd) and _get_blocking(fd) else None

    def before(self: Any) -> None:
        found = blocks(self)
        if found is not None and self.readable():
            until_ready(found, self.fileno(), READ)
            changing(found)

    def after() -> None:
        current = reactor()
        if current is not None:
            current.changed()

    def read(self: Any, size: Any = -1, /) -> Any:
        if size is None or size < 0:
            return readall(self)
        before(self)
        data = real_read(self, size)
        after()
        return data

    def readinto(self: Any, buffer: Any, /) -> object:
        before(self)
        count = real_readinto(self, buffer)
        after()
        return count

    def readall(self: Any, /) -> object:
        found = blocks(self)
        if found is None or not self.readable():
            return real_readall(self)
        parts: list[bytes] = []
        while True:
            part = read(self, _MOST)
            if not part:
                return b"".join(parts)
            parts.append(part)

    def write(self: Any, data: Any, /) -> Any:
        found = blocks(self)
        if found is None or not self.writable():
            return real_write(self, data)
        return _write_to(found, self.fileno(), data, lambda: real_write(self, data))

    new: dict[str, Any] = {"read": read, "readinto": readinto, "readall": readall, "write": write}
    for name, method in new.items():
        real = getattr(kind, name)
        method.__qualname__, method.__doc__ = real.__qualname__, real.__doc__
    return new


def install(patches: Patches, replacements: Replacements, own: Descriptors | None) -> None:
    """Let other ranks continue during waits for descriptors, until the patches are undone."""
    for name in ("read", "readv"):
        replacements.function(os, name, _reading)
    replacements.function(os, "write", _os_write)
    replacements.function(os, "writev", _os_writev)
    for name in ("close", "dup2", "closerange", "set_inheritable", "login_tty"):
        replacements.function(os, name, partial(_changing, name, own))
    for name in ("sendfile", "splice"):
        replacements.function(os, name, _telling)
    methods(patches, io.FileIO, _file_methods())
