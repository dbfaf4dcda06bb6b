"""Waits of threads in the operating system, from Linux's `/proc`: what can end them.

A wait is *inside* if only this process can end it: the other end of the descriptor, the lock of the
file, the thread that would wake it belong to this process. It is *nearby* if it would also end with
a timeout, or if another process could connect to a socket that listens on this computer, or send to
it: mostly a rank should end it.
"""

from __future__ import annotations

import _socket
import ctypes
import os
import stat
import struct
import threading
import time
from collections.abc import Iterable
from enum import IntEnum

from pysmpi.waiting.outside.peers import PeerSide, content, has_children, leaves, side_of

# The real functions: these are called while a rank waits.
_open, _close, _pread = os.open, os.close, getattr(os, "pread", None)
_listdir, _readlink, _fstat, _dup = os.listdir, os.readlink, os.fstat, os.dup
_monotonic, _native_id, _stat = time.monotonic, threading.get_native_id, os.stat
_string_at = ctypes.string_at

_SAMPLING = 1.0  # (s) at most, to see with whom a loop that sleeps talks
_STACK = 32 << 10  # bytes of a stack in which the library that waits is looked for
_MOST_POLLED = 4096  # descriptors of a call of poll(2)

# Numbers of the calls of the operating system: https://man7.org/linux/man-pages/man2/syscalls.2.html
_CALLS = {
    "x86_64": {
        0: "read", 1: "write", 2: "open", 7: "poll", 17: "pread64", 19: "readv", 20: "writev",
        23: "select", 34: "pause", 35: "nanosleep", 42: "connect", 43: "accept", 44: "sendto",
        45: "recvfrom", 46: "sendmsg", 47: "recvmsg", 61: "wait4", 65: "semop", 69: "msgsnd",
        70: "msgrcv", 72: "fcntl", 73: "flock", 128: "rt_sigtimedwait", 130: "rt_sigsuspend",
        202: "futex", 220: "semtimedop", 230: "clock_nanosleep", 232: "epoll_wait",
        247: "waitid", 257: "openat", 270: "pselect6", 271: "ppoll", 281: "epoll_pwait",
        288: "accept4", 299: "recvmmsg", 441: "epoll_pwait2",
    },
    "aarch64": {
        22: "epoll_pwait", 25: "fcntl", 32: "flock", 56: "openat", 63: "read", 64: "write",
        65: "readv", 66: "writev", 67: "pread64", 72: "pselect6", 73: "ppoll", 95: "waitid",
        98: "futex", 101: "nanosleep", 115: "clock_nanosleep", 133: "rt_sigsuspend",
        137: "rt_sigtimedwait", 188: "msgrcv", 189: "msgsnd", 192: "semtimedop", 193: "semop",
        202: "accept", 203: "connect", 206: "sendto", 207: "recvfrom", 211: "sendmsg",
        212: "recvmsg", 242: "accept4", 243: "recvmmsg", 260: "wait4", 441: "epoll_pwait2",
    },
}  # fmt: skip
_KNOWN = _CALLS.get(os.uname().machine if hasattr(os, "uname") else "", {})
# Names of functions that programs call.
_USUAL = {
    "recvfrom": "recv", "sendto": "send", "accept4": "accept", "clock_nanosleep": "sleep",
    "nanosleep": "sleep", "epoll_pwait": "epoll_wait", "epoll_pwait2": "epoll_wait",
    "ppoll": "poll", "pselect6": "select", "openat": "open", "pread64": "pread",
}  # fmt: skip
_SLEEPS = {"nanosleep", "clock_nanosleep"}
_CHILDREN = {"wait4", "waitid"}
_LOCKS = {"flock", "fcntl"}
_OF_SYSTEM_V = {"semop", "semtimedop", "msgrcv", "msgsnd"}
_OPENS = {"open", "openat"}
_OF_ONE_DESCRIPTOR = {
    "read", "write", "pread64", "readv", "writev", "accept", "accept4", "sendto", "recvfrom",
    "sendmsg", "recvmsg", "recvmmsg", "epoll_wait", "epoll_pwait", "epoll_pwait2",
}  # fmt: skip

# The argument with the timeout: a number, which is negative if there is none, or an address.
_TIMEOUTS = {
    "poll": 2, "epoll_wait": 3, "epoll_pwait": 3, "ppoll": 2, "select": 4, "pselect6": 4,
    "futex": 3, "epoll_pwait2": 3, "rt_sigtimedwait": 2, "recvmmsg": 4,
}  # fmt: skip
_MILLISECONDS = {"poll", "epoll_wait", "epoll_pwait"}

# Libraries between the program and the one that waits.
_LANGUAGE = ("libpython", "python", "_ctypes", "libffi", "_cffi_backend")
_SYSTEM = ("libc.so", "libc-", "ld-linux", "ld-", "libpthread", "[vdso]", "libstdc++", "libgcc_s")


class Ender(IntEnum):
    """The processes that can end a wait, the nearest first."""

    INSIDE = 0  # this process only
    NEARBY = 1  # mostly this process, but others could, or a timeout
    UNKNOWN = 2
    OUTSIDE = 3  # another process, or the time


class KernelWait:
    """A wait: the function, who can end it, and a sentence that says why."""

    __slots__ = ("function", "ender", "why")

    def __init__(self, function: str, ender: Ender, why: str) -> None:
        self.function = function
        self.ender = ender
        self.why = why


class _State:
    """The call of the operating system in which a thread is, and its stack pointer."""

    __slots__ = ("name", "arguments", "stack")

    def __init__(self, name: str, arguments: tuple[int, ...], stack: int) -> None:
        self.name = name
        self.arguments = arguments
        self.stack = stack


def _state(line: str) -> _State | None:
    """The state in a line of `/proc/PID/task/TID/syscall`; None if the thread is running."""
    words = line.split()
    if len(words) < 9 or not words[0].isdigit():
        return None
    numbers = tuple(int(word, 16) for word in words[1:])
    return _State(_KNOWN.get(int(words[0]), f"call {words[0]}"), numbers[:6], numbers[6])


def _now(thread: int) -> _State | None:
    try:
        return _state(content(f"/proc/self/task/{thread}/syscall"))
    except OSError:
        return None


def _switches(thread: int) -> str:
    """How often a thread has begun to wait, as text."""
    try:
        for line in content(f"/proc/self/task/{thread}/status").splitlines():
            if line.startswith("voluntary_ctxt_switches"):
                return line
    except OSError:
        pass
    return ""


def wait_of(thread: int, call: str = "") -> KernelWait:
    """The wait of a thread of this process; `call` is the line of `/proc` about it, if known."""
    before = "" if call else _switches(thread)
    state = _state(call) if call else _now(thread)
    if state is None:
        return KernelWait("a function", Ender.UNKNOWN, "the system does not say for what")
    if state.name in _SLEEPS and not call:
        result = _conversation(thread)
        if result is not None:
            return result
        if _switches(thread) == before:
            return KernelWait("sleep", Ender.OUTSIDE, "it ends by itself")
        return KernelWait("sleep", Ender.UNKNOWN, "it looks for a change again and again")
    result = _judged(state, thread)
    if result.ender is Ender.INSIDE and _ends_by_itself(state):
        result.ender = Ender.NEARBY
    return result


def _ends_by_itself(state: _State) -> bool:
    """Whether a wait has a timeout."""
    index = _TIMEOUTS.get(state.name)
    if index is None:
        return False
    value = state.arguments[index]
    return _signed(value) >= 0 if state.name in _MILLISECONDS else value != 0


def _conversation(thread: int) -> KernelWait | None:
    """The other waits of a thread that mostly sleeps, or None if there are none."""
    if _pread is None:
        return None
    try:
        fd = _open(f"/proc/self/task/{thread}/syscall", os.O_RDONLY)
    except OSError:
        return None
    seen: dict[tuple[str, int], KernelWait] = {}
    until = _monotonic() + _SAMPLING
    try:
        while _monotonic() < until and len(seen) < 4:
            state = _state(_pread(fd, 300, 0).decode("ascii", "replace"))
            if state is None or state.name in _SLEEPS:
                continue
            key = state.name, state.arguments[0]
            if key not in seen:
                seen[key] = _judged(state, thread)
    except OSError:
        pass
    finally:
        _close(fd)
    # Memory and locks of the own process are no talks with a rank.
    talks = [wait for wait in seen.values() if wait.function != "futex"]
    return max(talks, key=lambda wait: wait.ender) if talks else None


def _judged(state: _State, thread: int) -> KernelWait:
    name, arguments = state.name, state.arguments
    usual = _USUAL.get(name, name)
    if name in _CHILDREN:
        return KernelWait(usual, Ender.OUTSIDE, "it ends with a child process")
    if name in _LOCKS:
        return KernelWait(usual, *_lock(arguments[0]))
    if name in _OF_SYSTEM_V and not has_children():
        return KernelWait(usual, Ender.NEARBY, "a program of this computer would have to end it")
    if name in _OPENS and not has_children():
        path = _path(arguments[0] if name == "open" else arguments[1])
        if path is not None:
            why = f"it waits for the other end of the pipe {path!r} to be opened"
            return KernelWait(usual, Ender.NEARBY, why)
    if name == "futex":
        return KernelWait("a lock", *_futex(arguments[0], thread))
    fds = _descriptors(name, arguments)
    if fds is None:
        return KernelWait(usual, Ender.UNKNOWN, "the system does not say for whom")
    return KernelWait(usual, *_ends(fds))


def _path(address: int) -> str | None:
    """The path at an address, if it is that of a pipe with a name."""
    try:
        path = os.fsdecode(_string_at(address))
        return path if stat.S_ISFIFO(_stat(path).st_mode) else None
    except (OSError, ValueError):
        return None


def _descriptors(name: str, arguments: tuple[int, ...]) -> list[int] | None:
    """The descriptors of a wait; None if it has none."""
    first, second, third = arguments[:3]
    if name in _OF_ONE_DESCRIPTOR:
        return [_signed(first)]
    try:
        if name in ("poll", "ppoll") and 0 < second <= _MOST_POLLED:
            data = _string_at(first, 8 * second)
            return [fd for fd, _ in struct.iter_unpack("=iI", data) if fd >= 0]
        if name in ("select", "pselect6") and 0 < first <= 1024:
            result = set()
            for pointer in (second, third):  # for reading and writing
                data = _string_at(pointer, 128) if pointer else b""
                result |= {fd for fd in range(first) if data and data[fd >> 3] >> (fd & 7) & 1}
            return sorted(result)
    except (OSError, ValueError):
        pass
    return None


def _signed(number: int) -> int:
    number &= 0xFFFFFFFF
    return number - (1 << 32) if number >> 31 else number


def _ends(fds: Iterable[int]) -> tuple[Ender, str]:
    """The nearest process that can act on one of some descriptors."""
    ends = [_end(fd) for fd in leaves(fds)]
    if not ends:
        return Ender.UNKNOWN, "the system does not say for whom"
    return max(ends, key=lambda end: end[0])


def _end(fd: int) -> tuple[Ender, str]:
    """The nearest process that can act on a descriptor."""
    side = side_of(fd)
    if side is PeerSide.OUTSIDE:
        return Ender.OUTSIDE, f"the other end of descriptor {fd} is in another process"
    try:
        status = _fstat(fd)
        name = _readlink(f"/proc/self/fd/{fd}")
    except OSError:
        return Ender.UNKNOWN, f"descriptor {fd} is closed"
    if side is PeerSide.INSIDE:
        kind = "socket" if stat.S_ISSOCK(status.st_mode) else "pipe"
        return Ender.INSIDE, f"the other end of its {kind} (descriptor {fd}) is in this job"
    if stat.S_ISSOCK(status.st_mode):
        return _end_of_socket(fd)
    if name == "anon_inode:[eventfd]" and not has_children():
        return Ender.INSIDE, f"only this job has the event of descriptor {fd}"
    return Ender.UNKNOWN, f"any process may act on descriptor {fd} ({name})"


def _end_of_socket(fd: int) -> tuple[Ender, str]:
    sock = _socket.socket(fileno=_dup(fd))
    try:
        own = sock.getsockname()
        if sock.getsockopt(_socket.SOL_SOCKET, _socket.SO_ACCEPTCONN):
            if _is_near(own):
                return Ender.NEARBY, f"it waits for a connection on this computer ({_text(own)})"
            return Ender.UNKNOWN, f"it waits for a connection ({_text(own)})"
        try:
            peer = sock.getpeername()
        except OSError:
            if sock.type & 0xF == _socket.SOCK_DGRAM and _is_near(own):
                return Ender.NEARBY, f"it waits for a message on this computer ({_text(own)})"
            return Ender.UNKNOWN, f"any process may send to descriptor {fd}"
    except OSError:
        return Ender.UNKNOWN, f"any process may send to descriptor {fd}"
    finally:
        sock.close()
    if _listens_here(peer):
        return Ender.INSIDE, f"a rank would have to accept its connection ({_text(peer)})"
    return Ender.UNKNOWN, f"the other end of descriptor {fd} is not known"


def _is_near(address: object) -> bool:
    """Whether ranks of this process can reach a socket, and programs outside hardly would."""
    if not isinstance(address, tuple):
        return True  # a socket of the file system
    host = str(address[0])
    return host.startswith(("127.", "::ffff:127.")) or host in ("0.0.0.0", "::", "::1")


def _text(address: object) -> str:
    if isinstance(address, tuple):
        return f"port {address[1]}"
    return repr(address)


def _listens_here(peer: object) -> bool:
    """Whether a socket of this process listens at an address."""
    for name in _listdir("/proc/self/fd"):
        try:
            if not stat.S_ISSOCK(_fstat(int(name)).st_mode):
                continue
            sock = _socket.socket(fileno=_dup(int(name)))
        except OSError:
            continue
        try:
            if sock.getsockopt(_socket.SOL_SOCKET, _socket.SO_ACCEPTCONN):
                own = sock.getsockname()
                if own == peer or (
                    isinstance(own, tuple) and isinstance(peer, tuple) and own[1] == peer[1]
                    and _is_near(peer)
                ):  # fmt: skip
                    return True
        except OSError:
            continue
        finally:
            sock.close()
    return False


def _lock(first: int) -> tuple[Ender, str]:
    """The nearest process that can release the lock of a file."""
    fd = _signed(first)
    try:
        wanted = _fstat(fd)
        names = [int(name) for name in _listdir("/proc/self/fd")]
    except (OSError, ValueError):
        return Ender.UNKNOWN, "the system does not say who holds it"
    for other in names:
        try:
            status = _fstat(other)
            if other == fd or (status.st_dev, status.st_ino) != (wanted.st_dev, wanted.st_ino):
                continue
            lines = content(f"/proc/self/fdinfo/{other}").splitlines()
        except OSError:
            continue
        if any(line.startswith("lock:") and "->" not in line for line in lines):
            return Ender.INSIDE, f"this job holds the lock of the file (descriptor {other})"
    return Ender.UNKNOWN, "another process holds the lock of the file"


def _futex(address: int, waiting: int) -> tuple[Ender, str]:
    """The nearest process that can release a lock in memory, seen from the waits of its threads."""
    if has_children() and _is_shared(address):
        return Ender.UNKNOWN, "a child process may release it"
    if _is_shared(address) and _mapped_elsewhere(address):
        return Ender.UNKNOWN, "another process may release it"
    for name in _listdir("/proc/self/task"):
        thread = int(name)
        if thread in (waiting, _native_id()):
            continue
        try:
            if content(f"/proc/self/task/{thread}/comm").startswith("pysmpi"):
                continue
        except OSError:
            continue
        state = _now(thread)
        if state is not None and state.name == "futex":
            continue
        fds = None if state is None else _descriptors(state.name, state.arguments)
        if fds is None or _ends(fds)[0] > Ender.NEARBY:
            return Ender.UNKNOWN, "another thread of this job may release it"
    return Ender.INSIDE, "only this job can release it"


class _Mapping:
    """A line of the table of a process's memory."""

    __slots__ = ("begin", "end", "flags", "place", "name")

    def __init__(self, line: str) -> None:
        words = line.split(None, 5)
        begin, _, end = words[0].partition("-")
        self.begin, self.end = int(begin, 16), int(end, 16)
        self.flags = words[1]
        self.place = words[3], words[4]  # device and inode
        self.name = words[5] if len(words) > 5 else ""


def _mappings(pid: int | str = "self") -> list[_Mapping]:
    return [_Mapping(line) for line in content(f"/proc/{pid}/maps").splitlines()]


def _mapping(address: int) -> _Mapping | None:
    try:
        return next((one for one in _mappings() if one.begin <= address < one.end), None)
    except OSError:
        return None


def _is_shared(address: int) -> bool:
    mapping = _mapping(address)
    return mapping is None or "s" in mapping.flags


def _mapped_elsewhere(address: int) -> bool:
    """Whether another process may have the same memory."""
    mine = _mapping(address)
    if mine is None:
        return True
    me = _stat("/proc/self").st_ino
    for name in _listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            if _stat(f"/proc/{name}").st_ino != me and any(
                one.place == mine.place for one in _mappings(name)
            ):
                return True
        except OSError:
            continue
    return False


def library_of(thread: int, call: str = "") -> str:
    """The file name of the library whose code waits in a thread; empty if it is not known."""
    state = _state(call) if call else _now(thread)
    mapping = None if state is None else _mapping(state.stack)
    if state is None or mapping is None:
        return ""
    size = min(_STACK, mapping.end - state.stack) & ~7
    try:
        words = struct.unpack(f"={size // 8}Q", _string_at(state.stack, size))
        code = [one for one in _mappings() if "x" in one.flags and one.name]
    except (OSError, ValueError, struct.error):
        return ""
    for word in words:
        one = next((one for one in code if one.begin <= word < one.end), None)
        if one is None:
            continue
        file = one.name.rpartition("/")[2]
        if file.startswith(_LANGUAGE):
            return ""
        if not file.startswith(_SYSTEM):
            return file
    return ""
