"""The holder of a file descriptor's other end: this process, another one, or unknown.

The other end of a pipe or a connection is searched among the descriptors of this process and those
of its children, under Linux's `/proc`. On other systems the holder is unknown.
"""

from __future__ import annotations

import _socket
import os
import stat
import struct
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import Any

# The real functions, for every caller.
_listdir, _readlink, _fstat, _getpid = os.listdir, os.readlink, os.fstat, os.getpid
_open, _read, _close, _dup = os.open, os.read, os.close, os.dup
_waitid = getattr(os, "waitid", None)


class PeerSide(IntEnum):
    """The place where the other end of a descriptor is held."""

    INSIDE = 0  # in this process only: another thread of a rank must act
    UNKNOWN = 1  # unknown
    OUTSIDE = 2  # in another process as well, or there only


def leaves(fds: Iterable[int], depth: int = 0) -> list[int]:
    """Some descriptors; epoll instances are replaced by the descriptors that they watch."""
    result: list[int] = []
    for fd in fds:
        watched = _watched(fd) if depth < 3 else None
        if watched is None:
            result.append(fd)
        else:
            result += leaves(watched, depth + 1)
    return result


def is_pipe(fd: int) -> bool:
    """Whether a descriptor is an end of a pipe."""
    try:
        return stat.S_ISFIFO(_fstat(fd).st_mode)
    except OSError:
        return False


def side_of(fd: int) -> PeerSide:
    """The place where the other end of a descriptor is held."""
    try:
        status = _fstat(fd)
    except OSError:
        return PeerSide.INSIDE  # closed: the call fails at once
    kind = stat.S_IFMT(status.st_mode)
    if kind == stat.S_IFIFO:
        return _side_of_pipe(fd, status)
    if kind == stat.S_IFSOCK:
        return _side_of_socket(fd, status.st_ino)
    if kind == stat.S_IFCHR:
        return _side_of_terminal(fd)
    if kind == 0:
        try:
            if _readlink(f"/proc/self/fd/{fd}") == "anon_inode:[pidfd]":
                return PeerSide.OUTSIDE
        except OSError:
            pass
    return PeerSide.UNKNOWN


def _side_of_terminal(fd: int) -> PeerSide:
    """Whether a child has the terminal whose other side this process holds."""
    try:
        name = _readlink(f"/proc/self/fd/{fd}")
    except OSError:
        return PeerSide.UNKNOWN
    return PeerSide.OUTSIDE if name.endswith("ptmx") and has_children() else PeerSide.UNKNOWN


def content(path: str) -> str:
    """The text of a file in `/proc`, which is read without buffers."""
    fd = _open(path, os.O_RDONLY)
    try:
        parts = []
        while part := _read(fd, 1 << 16):
            parts.append(part)
    finally:
        _close(fd)
    return b"".join(parts).decode("utf-8", "replace")


def _links(pid: int | str) -> dict[str, list[int]]:
    """The files of the descriptors of a process, such as `pipe:[123]`, and their numbers."""
    result: dict[str, list[int]] = {}
    try:
        names = _listdir(f"/proc/{pid}/fd")
    except OSError:
        return result
    for name in names:
        try:
            result.setdefault(_readlink(f"/proc/{pid}/fd/{name}"), []).append(int(name))
        except OSError:
            continue
    return result


def _flags(pid: int | str, fd: int) -> int:
    """The flags with which a process has opened a descriptor."""
    try:
        for line in content(f"/proc/{pid}/fdinfo/{fd}").splitlines():
            if line.startswith("flags:"):
                return int(line.split()[1], 8)
    except OSError:
        pass
    return os.O_RDWR


@contextmanager
def _closing(sock: Any) -> Iterator[Any]:
    try:
        yield sock
    finally:
        sock.close()


def has_children() -> bool:
    """Whether this process has started other processes."""
    if _waitid is None:
        return True
    try:
        _waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def other_children() -> bool:
    """Whether this process has started other processes than the helpers of `multiprocessing`."""
    if not has_children():
        return False
    helpers = set()
    for name, attribute in _HELPERS:
        helper = getattr(sys.modules.get(name), attribute, None)
        helpers.add(getattr(helper, "_pid", None) or getattr(helper, "_forkserver_pid", None))
    return any(pid not in helpers for pid in _own_children())


def _own_children() -> list[int]:
    me = _getpid()
    result = []
    for pid in descendants():
        try:
            words = content(f"/proc/{pid}/stat").rpartition(")")[2].split()
        except OSError:
            continue
        if len(words) > 1 and int(words[1]) == me and words[0] != "Z":
            result.append(pid)
    return result


# Processes of `multiprocessing` that only answer this one.
_HELPERS = (
    ("multiprocessing.resource_tracker", "_resource_tracker"),
    ("multiprocessing.forkserver", "_forkserver"),
)


def descendants() -> list[int]:
    """The processes that this process has started, and those that they have."""
    if not has_children():
        return []
    parents: dict[int, list[int]] = {}
    try:
        names = [name for name in _listdir("/proc") if name.isdigit()]
    except OSError:
        return []
    for name in names:
        try:
            words = content(f"/proc/{name}/stat").rpartition(")")[2].split()
        except OSError:
            continue
        if len(words) > 1:
            parents.setdefault(int(words[1]), []).append(int(name))
    result: list[int] = []
    level = [_getpid()]
    while level:
        level = [child for pid in level for child in parents.get(pid, ())]
        result += level
    return result


def _side_of_pipe(fd: int, status: os.stat_result) -> PeerSide:
    mine = _links("self")
    if not mine:
        return PeerSide.UNKNOWN
    try:
        name = _readlink(f"/proc/self/fd/{fd}")
    except OSError:
        return PeerSide.UNKNOWN
    mode = _flags("self", fd) & os.O_ACCMODE
    if mode == os.O_RDWR:
        return PeerSide.UNKNOWN
    if not name.startswith("pipe:"):
        # Any process may open a FIFO with a name.
        other = any(_faces("self", end, mode) for end in mine[name])
        return PeerSide.INSIDE if other else PeerSide.UNKNOWN
    if _held_by_children(name, mode):
        return PeerSide.OUTSIDE
    if any(_faces("self", end, mode) for end in mine[name]):
        return PeerSide.INSIDE
    # No process of the run holds it: it came from the parent process.
    return PeerSide.OUTSIDE


def _faces(pid: int | str, fd: int, mode: int) -> bool:
    """Whether a descriptor of a pipe is its other end."""
    return _flags(pid, fd) & os.O_ACCMODE != mode


def _held_by_children(name: str, mode: int | None) -> bool:
    for pid in descendants():
        for end in _links(pid).get(name, ()):
            if mode is None or _faces(pid, end, mode):
                return True
    return False


def _side_of_socket(fd: int, inode: int) -> PeerSide:
    try:
        with _closing(_socket.socket(fileno=_dup(fd))) as sock:
            family = sock.family
            try:
                peer = sock.getpeername()
            except OSError:
                return PeerSide.UNKNOWN  # it listens, or receives from any sender
            own = sock.getsockname()
    except OSError:
        return PeerSide.UNKNOWN
    if family == _socket.AF_UNIX:
        other = _unix_peer(inode)
    elif family in (_socket.AF_INET, _socket.AF_INET6):
        if peer[0] != own[0] and not peer[0].startswith(("127.", "::1", "::ffff:127.")):
            return PeerSide.OUTSIDE
        other = _inet_peer(own, peer)
    else:
        return PeerSide.UNKNOWN
    if other is None:
        return PeerSide.UNKNOWN
    if other == 0:
        # Not accepted yet: the listening process is to act.
        return PeerSide.UNKNOWN
    name = f"socket:[{other}]"
    if _held_by_children(name, None):
        return PeerSide.OUTSIDE
    return PeerSide.INSIDE if name in _links("self") else PeerSide.OUTSIDE


def _inet_peer(own: tuple[object, ...], peer: tuple[object, ...]) -> int | None:
    """The inode of the other end of a TCP connection within this computer."""
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            lines = content(table).splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            words = line.split()
            local, remote = words[1].rpartition(":")[2], words[2].rpartition(":")[2]
            # Ports are sufficient to identify two ends on one computer.
            if int(local, 16) == peer[1] and int(remote, 16) == own[1]:
                return int(words[9])
    return None


_DIAGNOSTICS, _BY_FAMILY, _SHOW_PEER, _PEER = 4, 20, 4, 2


def _unix_peer(inode: int) -> int | None:
    """The inode of the other end of a Unix socket, from Linux's sock_diag(7)."""
    try:
        family = getattr(_socket, "AF_NETLINK", -1)
        with _closing(_socket.socket(family, _socket.SOCK_DGRAM, _DIAGNOSTICS)) as ask:
            request = struct.pack(
                "=BBHIIIII", _socket.AF_UNIX, 0, 0, 0xFFFFFFFF, inode, _SHOW_PEER,
                0xFFFFFFFF, 0xFFFFFFFF,
            )  # fmt: skip
            header = struct.pack("=IHHII", 16 + len(request), _BY_FAMILY, 1, 1, 0)
            ask.settimeout(1.0)
            ask.send(header + request)
            answer = ask.recv(4096)
    except OSError:
        return None
    if len(answer) < 32 or struct.unpack_from("=IH", answer)[1] != _BY_FAMILY:
        return None
    at = 16 + 16
    while at + 4 <= len(answer):
        length, kind = struct.unpack_from("=HH", answer, at)
        if length < 4:
            break
        if kind == _PEER and length >= 8:
            return int(struct.unpack_from("=I", answer, at + 4)[0])
        at += (length + 3) & ~3
    return None


def _watched(fd: int) -> list[int] | None:
    """The descriptors that an epoll instance watches; None for other descriptors."""
    try:
        if stat.S_IFMT(_fstat(fd).st_mode) != 0:
            return None
        if _readlink(f"/proc/self/fd/{fd}") != "anon_inode:[eventpoll]":
            return None
        lines = content(f"/proc/self/fdinfo/{fd}").splitlines()
    except OSError:
        return None
    return [int(line.split()[1]) for line in lines if line.startswith("tfd:")]
