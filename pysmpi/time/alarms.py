"""Timers of signals in simulated time: `signal.alarm`, `signal.setitimer`, `signal.pause`.

A rank's SIGALRM is due at a date of its own clock. Sleeps and waits outside MPI end early for it,
and continue after the handler. While the rank computes, a timer of the operating system checks at
regular intervals of processor time whether it is due. As in C, calls of MPI are not interrupted.
"""

from __future__ import annotations

import ctypes
import importlib
import math
import operator
import signal
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any

from greenlet import getcurrent

from pysmpi.mpi.base import ranks
from pysmpi.mpi.base.ranks import Rank, fiber_of
from pysmpi.python.frames import is_ours
from pysmpi.time.seconds import check_seconds, round_up

if TYPE_CHECKING:
    from pysmpi.patching.replacing import Replacements

_signal: Any = importlib.import_module("_signal")  # the interpreter's own
# Python's own functions, for the process; those in `signal` set the handlers of a rank.
_getsignal, _set_handler, _raise_signal = signal.getsignal, signal.signal, signal.raise_signal
_LOOK = 0.01  # processor time (s) between two looks
_Setitimer = Callable[..., tuple[float, float]]


class _Timer:
    """The date (s) of a rank's next SIGALRM, and the interval of those that follow it (or 0)."""

    __slots__ = ("date", "interval")

    def __init__(self, date: float, interval: float) -> None:
        self.date = date
        self.interval = interval


_timers: dict[Rank, _Timer] = {}
# Called with the running frame at each look, and the processor time (s) between two of them.
_watcher: Callable[[FrameType], object] | None = None
_before: Any = None  # the handler of SIGVTALRM before `watch`
_sent: dict[Rank, list[int]] = {}  # signals from other ranks whose handlers have not run


def send(rank: Rank, number: int) -> None:
    """Let a handler of another rank run when its main thread sleeps or waits outside MPI."""
    _sent.setdefault(rank, []).append(number)


def arrived() -> bool:
    """Whether other ranks have sent signals that have not reached their ranks."""
    return bool(_sent)


def next_alarm() -> float | None:
    """The date of the next SIGALRM of the running rank, if the running thread is its main one."""
    if not _timers and not _sent:
        return None
    rank = ranks.current()
    timer = _timers.get(rank)
    if timer is None and rank not in _sent or fiber_of(getcurrent()) is not rank.fiber:
        return None
    if rank in _sent:
        return rank.now()
    assert timer is not None
    return timer.date


def deliver() -> bool:
    """Run the handler of SIGALRM if it is due in the running rank; return whether it is."""
    time = next_alarm()
    return time is not None and _deliver_if_due(time, ranks.current().now())


def _deliver_if_due(date: float, now: float) -> bool:
    rank = ranks.current()
    if now < date:
        return False
    if rank in _sent:
        for number in _sent.pop(rank):
            _raise_signal(number)
        return True
    timer = _timers[rank]
    if timer.interval > 0:
        timer.date += timer.interval * (1 + (rank.now() - date) // timer.interval)
    else:
        del _timers[rank]
    # The handler of the running rank is the one of the process.
    _raise_signal(signal.SIGALRM)
    return True


def sleep(rank: Rank, seconds: float) -> None:
    """Sleep, and run the handlers that are due meanwhile."""
    end = rank.now() + seconds
    while True:
        time = next_alarm()
        if time is None or time > end:
            rank.sleep(max(0.0, end - rank.now()))
            return
        rank.sleep(max(0.0, time - rank.now()))
        deliver()


def _look(number: int, frame: FrameType | None) -> None:
    """A little processor time has passed: the alarm of the running rank may be due."""
    if frame is None or ranks.current().program is None:
        return
    file = frame.f_code.co_filename
    if _timers and not is_ours(file):
        _look_at_clock()
    if _watcher is not None:
        _watcher(frame)


def _look_at_clock() -> None:
    """Run the handler of SIGALRM if it is due; a block that no clock measures stays whole."""
    rank = ranks.current()
    timer = _timers.get(rank)
    if timer is None or rank.in_call or fiber_of(getcurrent()) is not rank.fiber:
        return
    part = None if rank.timer is None else rank.timer.part()
    if part is not None:
        rank.process.debt += part
        rank.timer.start()
    _deliver_if_due(timer.date, rank.engine.now + rank.process.debt)


def watch(watcher: Callable[[FrameType], object] | None, seconds: float = _LOOK) -> None:
    """Have a function called at intervals of processor time (s), in the main thread; None ends it.

    A program that uses this timer itself takes it away.
    """
    global _watcher, _before
    real = getattr(_signal, "setitimer", None)
    if real is None:
        return
    handler = _getsignal(signal.SIGVTALRM)
    if watcher is None:
        if _watcher is not None and handler is _look:
            real(signal.ITIMER_VIRTUAL, 0.0)
            _set_handler(signal.SIGVTALRM, _before)
        _watcher = None
    elif handler == signal.SIG_DFL:
        _watcher, _before = watcher, handler
        _set_handler(signal.SIGVTALRM, _look)
        _signal.siginterrupt(signal.SIGVTALRM, False)
        real(signal.ITIMER_VIRTUAL, seconds, seconds)


def _installed(real: _Setitimer) -> None:
    handler = _getsignal(signal.SIGVTALRM)
    if handler == signal.SIG_DFL or handler is _look:
        _set_handler(signal.SIGVTALRM, _look)
        _signal.siginterrupt(signal.SIGVTALRM, False)  # calls of C code go on
        real(signal.ITIMER_VIRTUAL, _LOOK, _LOOK)


def _setting(real: _Setitimer) -> _Setitimer:
    def setitimer(which: int, seconds: float, interval: float = 0.0, /) -> tuple[float, float]:
        rank = ranks.current()
        if rank.program is None or operator.index(which) != signal.ITIMER_REAL:
            return real(which, seconds, interval)
        seconds, interval = (round_up(check_seconds(value), 1e-6) for value in (seconds, interval))
        if seconds < 0 or interval < 0:
            raise signal.ItimerError(22, "Invalid argument")
        before = _left(rank)
        if seconds > 0:
            _installed(real)
            _timers[rank] = _Timer(rank.now() + seconds, interval)
        else:
            _timers.pop(rank, None)
        return before

    return setitimer


def _left(rank: Rank) -> tuple[float, float]:
    timer = _timers.get(rank)
    return (0.0, 0.0) if timer is None else (max(1e-6, timer.date - rank.now()), timer.interval)


def _getting(real: Callable[[int], tuple[float, float]]) -> Callable[[int], tuple[float, float]]:
    def getitimer(which: int, /) -> tuple[float, float]:
        rank = ranks.current()
        if rank.program is None or operator.index(which) != signal.ITIMER_REAL:
            return real(which)
        return _left(rank)

    return getitimer


def _alarm(real: Callable[[int], int]) -> Callable[[int], int]:
    def alarm(seconds: int, /) -> int:
        if ranks.current().program is None:
            return real(seconds)
        wanted = ctypes.c_int(operator.index(seconds)).value
        if wanted != seconds:
            real(seconds)  # raises the error of a number that is no C integer
        # The operating system takes a negative number for a large one.
        left, _ = signal.setitimer(signal.ITIMER_REAL, wanted % 2**32)
        # As Linux, to the nearest second, and to at least one.
        return max(math.floor(left + 0.5), 1) if left > 0.0 else 0

    return alarm


def _pause(real: Callable[[], None]) -> Callable[[], None]:
    def pause() -> None:
        time = next_alarm()
        rank = ranks.current()
        if time is None:
            real()
            return
        rank.sleep(max(0.0, time - rank.now()))
        deliver()

    return pause


def install(replacements: Replacements) -> None:
    """Let ranks have timers of their own, until the patches are undone."""
    if not hasattr(signal, "setitimer"):
        return
    real, before = signal.setitimer, _getsignal(signal.SIGVTALRM)

    def end() -> None:
        _timers.clear()
        _sent.clear()
        if _getsignal(signal.SIGVTALRM) is _look:
            real(signal.ITIMER_VIRTUAL, 0.0)
            _set_handler(signal.SIGVTALRM, before)

    replacements.patches.call_back(end)
    replacements.function(signal, "setitimer", _setting)
    replacements.function(signal, "getitimer", _getting)
    replacements.function(signal, "alarm", _alarm)
    replacements.function(signal, "pause", _pause)
