"""Waiting for signals: `signal.sigwait` and its relatives, `signal.pause`."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any

from pysmpi.mpi.base import ranks
from pysmpi.patching.replacing import Replacements
from pysmpi.time.seconds import check_seconds
from pysmpi.waiting.outside.peers import PeerSide
from pysmpi.waiting.outside.reactor import Reactor, reactor

_take = getattr(signal, "sigtimedwait", None)


def _until_pending(found: Reactor, sigset: Any, timeout: float | None) -> Any:
    """Wait for a pending signal of a set and take it; None after the timeout."""
    assert _take is not None
    end = None if timeout is None else found.now() + timeout
    wanted = list(sigset)

    def pending() -> bool:
        return any(number in signal.sigpending() for number in wanted)

    while True:
        info = _take(wanted, 0)
        if info is not None:
            return info
        left = None if end is None else end - found.engine.now
        if left is not None and left <= 0.0:
            return None
        found.wait((), left, pending, PeerSide.UNKNOWN)


def _sigwait(real: Callable[..., object]) -> Callable[..., object]:
    def sigwait(sigset: object, /) -> object:
        current = reactor()
        if current is None or _take is None:
            return real(sigset)
        return signal.Signals(_until_pending(current, sigset, None).si_signo)

    return sigwait


def _sigwaitinfo(real: Callable[..., object]) -> Callable[..., object]:
    def sigwaitinfo(sigset: object, /) -> object:
        current = reactor()
        if current is None or _take is None:
            return real(sigset)
        return _until_pending(current, sigset, None)

    return sigwaitinfo


def _sigtimedwait(real: Callable[..., object]) -> Callable[..., object]:
    def sigtimedwait(sigset: object, timeout: float, /) -> object:
        current = reactor()
        if current is None:
            return real(sigset, timeout)
        seconds = check_seconds(timeout)
        if seconds <= 0:
            return real(sigset, timeout)
        return _until_pending(current, sigset, seconds)

    return sigtimedwait


def _set_wakeup_fd(real: Callable[..., Any]) -> Callable[..., object]:
    """Each rank finds the descriptor that it has set; signals write to the latest one."""
    own: dict[int, int] = {}
    outer = -1  # value of the caller of the run

    def set_wakeup_fd(fd: int, /, *, warn_on_full_buffer: bool = True) -> int:
        current = reactor()
        if current is None:
            return int(real(fd, warn_on_full_buffer=warn_on_full_buffer))
        nonlocal outer
        pid = ranks.current().pid
        none = not own
        before = own.pop(pid, -1)
        if fd != -1:
            last = real(fd, warn_on_full_buffer=warn_on_full_buffer)
            outer = last if none else outer
            own[pid] = fd
        elif not none:
            left = next(reversed(own.values()), outer)
            real(left, warn_on_full_buffer=warn_on_full_buffer)
        current.signals = bool(own)
        return before

    return set_wakeup_fd


def install(replacements: Replacements) -> None:
    """Let other ranks continue during waits for signals, until the patches are undone."""
    replacements.function(signal, "sigwait", _sigwait)
    replacements.function(signal, "sigwaitinfo", _sigwaitinfo)
    replacements.function(signal, "sigtimedwait", _sigtimedwait)
    replacements.function(signal, "set_wakeup_fd", _set_wakeup_fd)
