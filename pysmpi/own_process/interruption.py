"""SIGINT, SIGTERM and SIGHUP of a command.

An exception that a handler raises falls into whatever code is running, and is lost in callbacks of
weak references, finalizers, fork handlers and imports. So these handlers raise none. The first
signal asks the part of the command that is running to end (`ending_by`), which it does at its next
safe point. The second signal ends the process at once, and so does the first one where no part
has to be ended. Temporary files are then removed.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import NoReturn

# A rank has its own functions; these are the system's.
_signal, _getsignal, _exit, _unlink, _write = (
    signal.signal, signal.getsignal, os._exit, os.unlink, os.write,
)  # fmt: skip

SIGNALS = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]

# Asks a part of the command to end, with the number of the signal and the interrupted frame.
Ask = Callable[[int, FrameType | None], object]

_asks: list[Ask] = []
_temporary: set[str] = set()
_received = 0


def handle() -> None:
    """Handle the signals from now on, except those that the parent process lets this one ignore."""
    for number in _unhandled():
        _signal(number, _arrived)


def _unhandled() -> list[signal.Signals]:
    usual = (signal.SIG_DFL, signal.default_int_handler)
    return [number for number in SIGNALS if _getsignal(number) in usual]


def disregard() -> None:
    """Do nothing at the signals from now on: the parent process ends this one."""
    for number in SIGNALS:
        if _getsignal(number) is not signal.SIG_IGN:
            _signal(number, _nothing)


def _nothing(number: int, frame: FrameType | None) -> None:
    """Do nothing, and look like a handler of pysmpi's to ranks."""


def _arrived(number: int, frame: FrameType | None) -> None:
    global _received
    if _received or not _asks:
        leave(number)
    _received = number
    _asks[-1](number, frame)


def received() -> int:
    """The number of the signal that has arrived, or 0."""
    return _received


def check() -> None:
    """Raise KeyboardInterrupt if a signal has arrived: called at safe points."""
    if _received:
        raise KeyboardInterrupt


def at_safe_points(number: int, frame: FrameType | None) -> None:
    """An `Ask` for parts of the command that call `check`."""


@contextmanager
def ending_by(ask: Ask) -> Iterator[None]:
    """The context of a part of the command that ends when it is asked to.

    Inside it, the signals are handled, too, if the command is a part of another program.
    """
    global _received
    before = {}
    with suppress(ValueError):  # of another thread than the main one
        for number in _unhandled():
            before[number] = _signal(number, _arrived)
    _asks.append(ask)
    try:
        yield
    finally:
        _asks.remove(ask)
        for number, handler in before.items():
            _signal(number, handler)
            _received = 0


@contextmanager
def held() -> Iterator[None]:
    """The context of imports in a program that has Python's own handler of SIGINT.

    The KeyboardInterrupt comes after them: a class may turn it into another error, and a module
    that is half imported may stay in `sys.modules`.
    """
    mask = getattr(signal, "pthread_sigmask", None)
    if mask is None:
        yield
        return
    before = mask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        mask(signal.SIG_SETMASK, before)


def described(number: int) -> str:
    """`interrupted`, or `ended by SIGTERM`."""
    return "interrupted" if number == signal.SIGINT else f"ended by {signal.Signals(number).name}"


def status_of(number: int) -> int:
    """The exit status of a command that a signal has ended."""
    return 128 + number


def leave(number: int, why: str | None = None, status: int | None = None) -> NoReturn:
    """End the process at once; `why` and `status` are those of the signal if they are None."""
    try:
        _write(2, f"pysmpi: {why or 'error: ' + described(number)}\n".encode())
    except OSError:
        pass
    for path in list(_temporary):
        try:
            _unlink(path)
        except OSError:
            pass
    _exit(status_of(number) if status is None else status)


def remove_at_end(path: str) -> None:
    """Remove a temporary file if a signal ends the process."""
    _temporary.add(path)


def keep(path: str) -> None:
    """The file is no longer temporary, or no longer there."""
    _temporary.discard(path)
