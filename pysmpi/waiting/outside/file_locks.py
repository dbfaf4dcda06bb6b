"""Locks of files: `fcntl.flock`, `fcntl.lockf`, and locks of `fcntl.fcntl`.

The operating system assigns the locks of `flock` to the open file, and those of `lockf` to the
process, so ranks would never exclude each other. They get locks that belong to the open file
(`F_OFD_SETLK`), which also exclude the locks of other processes.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from types import ModuleType
from typing import Any

from pysmpi.patching.patches import Patches
from pysmpi.patching.replacing import Replacements
from pysmpi.waiting.outside.descriptors import changing
from pysmpi.waiting.outside.peers import PeerSide
from pysmpi.waiting.outside.reactor import Reactor, reactor

# struct flock of 64-bit Linux: type, whence, start, length, process.
_LOCK = struct.Struct("@hhqqi4x")


def patch_locks(patches: Patches, module: ModuleType, replacements: Replacements) -> None:
    """Let other ranks continue during waits for locks of files (module `fcntl`)."""
    replacements.function(module, "flock", lambda real: _flock(real, module))
    if hasattr(module, "F_OFD_SETLK") and struct.calcsize("P") == 8:
        control = module.fcntl
        replacements.function(module, "lockf", lambda real: _lockf(real, control, module))
        replacements.function(module, "fcntl", lambda real: _fcntl(real, module))


def _flock(real: Callable[..., object], module: ModuleType) -> Callable[..., object]:
    def flock(fd: object, operation: int, /) -> object:
        current = reactor()
        if current is None:
            return real(fd, operation)
        waits = not operation & (module.LOCK_NB | module.LOCK_UN)
        return _take(current, lambda: real(fd, operation | module.LOCK_NB), waits)

    return flock


def _lockf(
    real: Callable[..., object], control: Callable[..., object], module: ModuleType
) -> Callable[..., object]:
    def lockf(fd: object, cmd: int, len: int = 0, start: int = 0, whence: int = 0, /) -> object:
        current = reactor()
        kinds = {
            module.LOCK_UN: module.F_UNLCK,
            module.LOCK_SH: module.F_RDLCK,
            module.LOCK_EX: module.F_WRLCK,
        }
        kind = kinds.get(cmd & ~module.LOCK_NB)
        if current is None or kind is None:
            return real(fd, cmd, len, start, whence)
        lock = _LOCK.pack(kind, whence, start, len, 0)
        waits = not cmd & (module.LOCK_NB | module.LOCK_UN)
        _take(current, lambda: control(fd, module.F_OFD_SETLK, lock), waits)
        return None

    return lockf


def _fcntl(real: Callable[..., object], module: ModuleType) -> Callable[..., Any]:
    of_open_file = {
        module.F_GETLK: module.F_OFD_GETLK,
        module.F_SETLK: module.F_OFD_SETLK,
        module.F_SETLKW: module.F_OFD_SETLK,
        module.F_OFD_SETLK: module.F_OFD_SETLK,
        module.F_OFD_SETLKW: module.F_OFD_SETLK,
    }

    def fcntl(fd: object, cmd: int, arg: object = 0, /) -> Any:
        current = reactor()
        if current is None or cmd not in of_open_file or not isinstance(arg, (bytes, bytearray)):
            return real(fd, cmd, arg)
        if len(arg) < _LOCK.size - 4:
            return real(fd, cmd, arg)
        kind, whence, start, length, _ = _LOCK.unpack(bytes(arg[: _LOCK.size]).ljust(_LOCK.size))
        lock = _LOCK.pack(kind, whence, start, length, 0)
        waits = cmd in (module.F_SETLKW, module.F_OFD_SETLKW)
        return _take(current, lambda: real(fd, of_open_file[cmd], lock), waits)

    return fcntl


def _take(found: Reactor, attempt: Callable[[], object], waits: bool) -> Any:
    """Acquire or release a lock, after a wait if requested."""
    changing(found)
    try:
        answer = attempt()
    except (BlockingIOError, PermissionError):
        if not waits:
            found.missed(side=PeerSide.UNKNOWN)
            raise
    else:
        found.changed()
        return answer
    taken: list[Any] = []
    failed: list[OSError] = []

    def look() -> bool:
        # A lock can only be tested by taking it.
        try:
            taken.append(attempt())
        except (BlockingIOError, PermissionError):
            return False
        except OSError as error:
            failed.append(error)
        return True

    while not taken and not failed:
        found.wait((), look=look, side=PeerSide.UNKNOWN)
    if failed:
        raise OSError(failed[0].errno, os.strerror(failed[0].errno or 0))
    return taken[0]
