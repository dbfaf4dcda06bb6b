"""File descriptors 0 to 2: separate for a rank after its first change of one of them.

A descriptor that a rank redirects (`os.dup2(f, 1)`) or closes is exchanged at switches: duplicates
with high numbers hold the files of the other ranks. Buffered text of the shared streams, Python's
and C's, is written before. A rank that restores the old file shares the common descriptors again.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import stat
import sys
from collections.abc import Callable, Iterable
from typing import Any

from pysmpi.isolation.exchange import Exchange, State
from pysmpi.isolation.kinds.chosen_descriptors import ChosenDescriptors
from pysmpi.isolation.kinds.kept_files import Kept, identity_of
from pysmpi.isolation.kinds.rank_environment import here
from pysmpi.isolation.kinds.tools import outside_of_ranks
from pysmpi.isolation.state import Setting
from pysmpi.own_process.descriptors import is_open
from pysmpi.patching.lookalike import like
from pysmpi.patching.patches import Patches

try:
    import fcntl
    import resource
except ImportError:  # not a POSIX system
    fcntl = resource = None  # type: ignore[assignment]

STANDARD = range(3)
_HIGH = 512  # lowest number of duplicates; programs expect low numbers for their own files

# Numbers of descriptors that pysmpi itself keeps open while ranks run.
OWN: set[int] = set()
_close, _dup2, _fstat, _get_inheritable = os.close, os.dup2, os.fstat, os.get_inheritable
_open = os.open
_poll = getattr(select, "poll", None)
_fcntl: Any = getattr(fcntl, "fcntl", None)


Kepts = tuple[Kept | None, ...]  # of descriptors 0 to 2; None for one that is closed


class Descriptors(Setting):
    """The files of descriptors 0 to 2."""

    name = "descriptors"
    polled = True

    def __init__(self, exchange: Exchange) -> None:
        super().__init__(exchange)
        self.common: Kepts = ()
        self.shown: Kepts = ()
        self.open: set[Kept] = set()
        streams = sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__
        ours = {id(stream): stream for stream in streams if _is_ours(stream)}
        self.streams: list[Any] = list(ours.values())
        self.chosen = ChosenDescriptors(exchange, self._keep, self._release)

    # Called by ranks

    def replacing(self, name: str, real: Callable[..., Any]) -> Callable[..., object]:
        """The replacement of a function of `os` that may change one of the descriptors."""

        def dup2(fd: object, fd2: object, inheritable: object = True) -> object:
            if fd2 not in STANDARD:
                if type(fd2) is int and fd2 != fd and fd2 > 2 and here() is not None:
                    self._make_way(fd2)
                    return self.chosen.choosing(fd2, lambda: real(fd, fd2, inheritable))
                return real(fd, fd2, inheritable)
            return self.changing((fd2,), real, fd, fd2, inheritable)

        def first(fd: object, *args: object, **kwargs: object) -> Any:
            if fd not in STANDARD:
                return real(fd, *args, **kwargs)
            return self.changing((fd,), real, fd, *args, **kwargs)

        def closerange(fd_low: Any, fd_high: Any, /) -> Any:
            low = fd_low
            for number in sorted(kept.number for kept in self.open):
                if low <= number < fd_high:
                    self._close_range(real, low, number)
                    low = number + 1
            self._close_range(real, low, fd_high)

        return {"dup2": dup2, "closerange": closerange}.get(name, first)

    def _close_range(self, real: Callable[..., object], low: int, high: int) -> None:
        if low < high:
            if low > 2:
                real(low, high)
            else:
                self.changing(STANDARD, real, low, high)

    def changing(
        self, which: Iterable[Any], function: Callable[..., Any], *args: object, **kwargs: object
    ) -> object:
        """Call a function that changes some descriptors of the rank that is running."""
        exchange = self.exchange
        state = exchange.shown
        if not exchange.follows(self.name):
            if state is exchange.outside:
                return function(*args, **kwargs)
            self.common = self.shown = tuple(self._keep(fd, ()) for fd in STANDARD)
            self.follow()
        if self.name not in state.own:
            self._flush()  # others wrote to the common descriptors, too
        try:
            return function(*args, **kwargs)
        finally:
            self._note(state, which)

    # Keeping the files of the other ranks

    def _keep(self, fd: int, known: tuple[Kept | None, ...]) -> Kept | None:
        """The current file of a descriptor: a known one, or a new one."""
        try:
            inheritable = _get_inheritable(fd)
        except OSError:
            return None
        identity = identity_of(fd)
        for result in dict.fromkeys(known):
            if (
                result is not None
                and result.inheritable == inheritable
                and result.identity == identity
                and _same_description(fd, result.number)
            ):
                return result
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        least = _HIGH if soft == resource.RLIM_INFINITY else min(_HIGH, soft // 2)
        result = Kept(_fcntl(fd, fcntl.F_DUPFD_CLOEXEC, max(3, least)), inheritable)
        self.open.add(result)
        OWN.add(result.number)
        return result

    def _note(self, state: State, which: Iterable[int] = STANDARD) -> None:
        """Record the current files of the descriptors that may have changed."""
        old: Kepts = state.own.get(self.name, self.common)
        found = list(old)
        for fd in which:
            number = int(fd)
            found[number] = self._keep(number, (self.common[number], old[number], *old))
        self.shown = new = tuple(found)
        if state is self.exchange.outside:
            self.common = new
        elif new == self.common:
            self.shown = self.common
            state.own.pop(self.name, None)
        else:
            state.keep(self.name, new)
        self._let_go(old, new)

    def _release(self, kept: Kept) -> None:
        self.open.discard(kept)
        OWN.discard(kept.number)
        with contextlib.suppress(OSError):
            _close(kept.number)

    def _make_way(self, number: int) -> None:
        """Move a duplicate that has a number which a rank has chosen."""
        for kept in self.open:
            if kept.number == number:
                kept.number = _fcntl(number, fcntl.F_DUPFD_CLOEXEC, _HIGH)
                OWN.add(kept.number)
                OWN.discard(number)
                _close(number)
                break

    def _let_go(self, old: Kepts, new: Kepts) -> None:
        for kept in set(old) - set(new) - set(self.common) - {None}:
            assert kept is not None
            self.open.discard(kept)
            with contextlib.suppress(OSError):
                _close(kept.number)

    # Exchanging

    def differs(self) -> bool:
        """Whether a file took the number of one that was closed, or C code closed one."""
        return self.name in self.exchange.shown.own and any(
            is_open(fd) is not (self.shown[fd] is not None) for fd in STANDARD
        )

    def record(self, state: State) -> None:
        self._note(state)

    def install(self, value: Kepts) -> None:
        actual = self.shown
        self._flush()
        for fd in STANDARD:
            kept = value[fd]
            if kept is not actual[fd]:
                with contextlib.suppress(OSError):
                    if kept is None:
                        _close(fd)
                    else:
                        _dup2(kept.number, fd, kept.inheritable)

    def _flush(self) -> None:
        """Write the contents of shared buffers to the current files of the descriptors."""
        with outside_of_ranks():
            for fd in (1, 2):
                if self.shown[fd] is not None:
                    make_room(fd)
            for stream in self.streams:
                try:
                    stream.flush()
                except ValueError:  # it is closed
                    continue
                except OSError:
                    _discard(stream)
            _fflush(None)

    def forget(self, state: State) -> None:
        self._let_go(state.own[self.name], self.common)

    def close(self) -> None:
        """Close all duplicates, at the end of the run."""
        for kept in self.open:
            with contextlib.suppress(OSError):
                _close(kept.number)
        self.open.clear()
        self.exchange.end_following(self.chosen.name)  # their duplicates are closed


def _is_ours(stream: Any) -> bool:
    """Whether a stream writes to one of the descriptors."""
    try:
        return stream.fileno() in STANDARD
    except (AttributeError, OSError, ValueError):
        return False


def same_file(one: int, other: int) -> bool:
    """Whether two descriptors refer to the same open file description, not just the same file."""
    return identity_of(one) == identity_of(other) and _same_description(one, other)


def _same_description(one: int, other: int) -> bool:
    """Whether two descriptors of one file refer to the same open file description."""
    flags = _fcntl(one, fcntl.F_GETFL)
    if _fcntl(other, fcntl.F_GETFL) != flags:
        return False
    # Duplicates share their flags: change one, look at the other.
    try:
        _fcntl(one, fcntl.F_SETFL, flags ^ os.O_APPEND)
    except OSError:
        return False
    try:
        return bool(_fcntl(other, fcntl.F_GETFL) != flags)
    finally:
        _fcntl(one, fcntl.F_SETFL, flags)


def duplicate(fd: int) -> int:
    """A duplicate with a number above 2."""
    return os.dup(fd) if fcntl is None else int(_fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3))


def make_room(fd: int) -> None:
    """Increase the capacity of a full pipe: its reader may run in this thread."""
    resize = getattr(fcntl, "F_SETPIPE_SZ", None)
    if resize is None or _poll is None or not stat.S_ISFIFO(_fstat(fd).st_mode):
        return
    poll = _poll()
    poll.register(fd, select.POLLOUT)
    if not poll.poll(0):
        with contextlib.suppress(OSError):
            _fcntl(fd, resize, 2 * _fcntl(fd, fcntl.F_GETPIPE_SZ))


def _discard(stream: Any) -> None:
    """Discard the buffer of a stream whose descriptor accepts no more data."""
    fd = stream.fileno()
    saved = duplicate(fd) if is_open(fd) else None
    nothing = _open(os.devnull, os.O_WRONLY)
    try:
        if nothing != fd:
            _dup2(nothing, fd)
            _close(nothing)
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    finally:
        if saved is None:
            _close(fd)
        else:
            _dup2(saved, fd)
            _close(saved)


_libc: object = ctypes.PyDLL(None) if os.name == "posix" else None
_fflush: Callable[[None], object] = getattr(_libc, "fflush", lambda stream: None)


def patch_fcntl(patches: Patches, module: Any, descriptors: Descriptors) -> None:
    """Let ranks have a file under the number that they ask for (`F_DUPFD`)."""
    real = module.fcntl
    duplicating = (module.F_DUPFD, getattr(module, "F_DUPFD_CLOEXEC", None))

    def control(fd: Any, cmd: Any, arg: Any = 0, /) -> Any:
        answer = real(fd, cmd, arg)
        if cmd in duplicating and type(arg) is int and arg > 2 and here() is not None:
            descriptors.chosen.chosen(answer)
        return answer

    patches.set(module, "fcntl", like(real, control))


def install(patches: Patches, exchange: Exchange) -> Descriptors | None:
    """Give every rank its own descriptors 0 to 2 until the patches are undone.

    None if the operating system does not have them.
    """
    if fcntl is None:
        return None
    descriptors = Descriptors(exchange)
    patches.call_back(descriptors.close)
    return descriptors
