"""Stopping ranks from outside: after an error in another rank, an abort, a deadlock.

`Stop` is raised in each running rank, so that its `finally` clauses and `with` blocks run. A
program may catch it, as test frameworks and retry loops do. Every further call that takes part in
the simulation therefore raises it again. A rank that has got it several times, or computes for
long, is abandoned: its greenlet is never resumed. Its output to the standard streams is discarded,
because it would hide the report.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import os
import sys
import threading
from _thread import allocate_lock, get_ident, start_new_thread
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from time import perf_counter
from types import FrameType
from typing import Any, NoReturn, Protocol

from greenlet import getcurrent

from pysmpi.isolation.kinds.own_streams import all_streams
from pysmpi.mpi.base.ranks import Rank, Stop, Universe, fiber_of
from pysmpi.mpi.base.state import StateSlot

_signal: Any = importlib.import_module("_signal")  # the interpreter's own, see `_late`

MOST = 100  # number of times that `Stop` is raised: finally clauses and finalizers may call MPI
GRACE = 3.0  # real time (s) for the end of one fiber
ALL = 10.0  # for all fibers together
LEAST = 0.2  # minimum for each fiber
# Ends the running rank of a universe with an exception, and never returns: functions of C that wait
# below must not go on.
END_RANK: StateSlot[Universe, Callable[[BaseException], NoReturn]] = StateSlot(Universe)
_STANDARD = (1, 2)  # the descriptors of output and errors


class StoppedRank(Rank):
    """A rank that has been stopped: calls that take part in the simulation raise `Stop`.

    Its class is assigned to a rank, so that calls of other ranks need no check.
    """

    __slots__ = ()

    def now(self) -> float:
        return self.engine.now + self.process.debt

    def settle(self) -> None:
        """Do nothing: no time passes any more."""

    def abort(self, status: int, how: str = "") -> NoReturn:
        refuse()

    def enter(self) -> Any:
        refuse()

    def leave(self) -> None:
        self.in_call = False  # compute counts no more

    def sleep(self, seconds: float) -> None:
        refuse()


def refuse() -> NoReturn:
    """Raise `Stop` in the running fiber; abandon the fiber if this happened often."""
    fiber: Any = fiber_of(getcurrent())
    fiber.refusals = getattr(fiber, "refusals", 0) + 1
    if fiber.refusals > MOST:
        leave_for_good(fiber)
    raise Stop


def leave_for_good(fiber: Any) -> NoReturn:
    """Switch to the greenlet that follows the fiber's end, and never return.

    None of its code runs any more, not even at the end of Python: that would raise `GreenletExit`
    in a freed greenlet.
    """
    leave(fiber)
    events: Any = sys.modules.get("asyncio.events")
    if events is not None:
        events._set_running_loop(None)  # other threads of ranks would find the fiber's
    running = getcurrent()
    if running is not fiber:
        leave(running)
    while True:
        fiber.parent.switch()


def leave(fiber: Any) -> None:
    """Keep a fiber that is never to be resumed from being freed."""
    fiber.left = True
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(fiber))


def stop(rank: Rank) -> None:
    """From now on, calls of a rank that take part in the simulation raise `Stop`."""
    if type(rank) is Rank:
        rank.__class__ = StoppedRank


def end(fiber: Any, once: bool = False) -> None:
    """Raise `Stop` in a fiber; return after it has ended or was abandoned.

    `once` means to abandon it at its next call that takes part in the simulation.
    """
    if fiber.dead or getattr(fiber, "left", False):
        return
    if once:
        fiber.refusals = MOST
    fiber.parent = getcurrent()
    with _limit.over(fiber):
        (getattr(fiber, "waiting", None) or fiber).throw(Stop)
        # A greenlet that is not dead has switched to its parent: it was left, or code that the
        # program gave a greenlet of its own ended there.
        if not fiber.dead and not getattr(fiber, "left", False):
            leave(fiber)


class _Limit:
    """Ends fibers that continue to compute, or that wait for something outside the simulation."""

    def __init__(self) -> None:
        self.fiber: Any = None
        self.spent = 0.0

    @contextmanager
    def over(self, fiber: object) -> Iterator[None]:
        """Inside it, a fiber has a limited time."""
        outer, self.fiber = self.fiber, fiber
        began = perf_counter()
        seconds = max(LEAST, min(GRACE, ALL - self.spent))
        try:
            with self._alarm(seconds) if outer is None else contextlib.nullcontext():
                yield
        finally:
            self.fiber = outer
            if outer is None:
                self.spent += perf_counter() - began

    @contextmanager
    def _alarm(self, seconds: float) -> Iterator[None]:
        # The names imported here from `_signal` and `_thread` are the interpreter's own: ranks see
        # other threads and other signals.
        main: Any = threading._main_thread  # type: ignore[attr-defined]
        if not hasattr(_signal, "setitimer") or get_ident() != main.ident:
            with self._thread(seconds):
                yield
            return
        handler = _signal.signal(_signal.SIGALRM, self._late)
        # Repeatedly: a signal that arrives while another fiber runs is lost.
        before = _signal.setitimer(_signal.ITIMER_REAL, seconds, LEAST)
        try:
            yield
        finally:
            _signal.setitimer(_signal.ITIMER_REAL, *before)
            _signal.signal(_signal.SIGALRM, handler)

    def _late(self, number: int, frame: FrameType | None) -> None:
        fiber = self.fiber
        running: Any = getcurrent()
        if fiber is None or running is fiber.parent:
            return
        if running is not fiber:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(running))
        leave_for_good(fiber)

    @contextmanager
    def _thread(self, seconds: float) -> Iterator[None]:
        """On systems without signals: raise `Stop` in this thread at intervals."""
        over = allocate_lock()
        over.acquire()
        ident = get_ident()

        def watch() -> None:
            wait = seconds
            while not over.acquire(True, wait):
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    ctypes.c_ulong(ident), ctypes.py_object(Stop)
                )
                wait = LEAST

        start_new_thread(watch, ())
        try:
            yield
        finally:
            over.release()


_limit = _Limit()


class Interruptible(Protocol):
    """A run that Ctrl-C ends."""

    def interrupt(self) -> None:
        """End the run, from a handler of a signal."""

    def holds(self, running: object) -> bool:
        """Whether a greenlet is one of the run."""


@contextmanager
def interruptible(run: Interruptible) -> Iterator[None]:
    """Inside it, Ctrl-C ends a run, where Python's own handler would raise an exception.

    The next Ctrl-C is Python's again, as is one in code of the caller in between.
    """
    usual = _signal.default_int_handler
    main: Any = threading._main_thread  # type: ignore[attr-defined]
    if get_ident() != main.ident or _signal.getsignal(_signal.SIGINT) is not usual:
        yield
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        if not run.holds(getcurrent()):
            raise KeyboardInterrupt
        _signal.signal(_signal.SIGINT, usual)
        run.interrupt()

    _signal.signal(_signal.SIGINT, interrupt)
    try:
        yield
    finally:
        if _signal.getsignal(_signal.SIGINT) is interrupt:
            _signal.signal(_signal.SIGINT, usual)


def begin() -> None:
    """Forget the time that fibers of an earlier run have spent."""
    _limit.spent = 0.0


def _searches() -> list[int]:
    """The number of times that Python has looked for cycles among objects that are not young."""
    return [generation["collections"] for generation in gc.get_stats()[1:]]


class Silence:
    """Discards output to the standard streams, from `begin` to its end as a context.

    Holders of a stream, such as handlers of `logging`, use its method `write`. Objects of stopped
    ranks are freed inside the context, because their finalizers have no work to do.
    """

    def __init__(self) -> None:
        self.entered = 0
        self._undo: list[Callable[[], Any]] = []
        self._searches = _searches()

    def __enter__(self) -> Silence:
        self.entered += 1
        return self

    def __exit__(self, *exception: object) -> None:
        self.entered -= 1
        if self._undo and not self.entered:
            # Without an earlier search all objects of the run are still among the young ones, and
            # the caller's, perhaps millions, need no look.
            gc.collect(1 if _searches() == self._searches else 2)
            self.end()

    def begin(self) -> None:
        """Start to discard output; earlier output is still shown."""
        if self._undo:
            return
        streams = {
            id(stream): stream
            for stream in (
                *all_streams(), sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__
            )
            if stream is not None
        }  # fmt: skip
        for stream in streams.values():
            with contextlib.suppress(Exception):
                stream.flush()
            had = vars(stream).get("write") if hasattr(stream, "__dict__") else None
            try:
                setattr(stream, "write", len)  # noqa: B010
            except AttributeError:
                continue
            self._undo.append(partial(_restore, stream, had))
        write = os.write

        def write_elsewhere(descriptor: int, data: bytes | bytearray | memoryview, /) -> int:
            if descriptor in _STANDARD:
                return memoryview(data).nbytes
            return write(descriptor, data)

        setattr(os, "write", write_elsewhere)  # noqa: B010

        def restore() -> None:
            if os.write is write_elsewhere:  # else the end of the run has put its own back
                setattr(os, "write", write)  # noqa: B010

        self._undo.append(restore)
        hook = sys.unraisablehook
        sys.unraisablehook = _ignore
        self._undo.append(lambda: setattr(sys, "unraisablehook", hook))

    def at_end(self, function: Callable[[], Any]) -> None:
        """Call a function when output is shown again."""
        self._undo.append(function)

    def end(self) -> None:
        """Start to show output."""
        while self._undo:
            self._undo.pop()()


@contextmanager
def silently() -> Iterator[None]:
    """Inside it, output to the standard streams is discarded."""
    silence = Silence()
    silence.begin()
    try:
        yield
    finally:
        silence.end()


def _ignore(unraisable: object) -> None:
    """Do not report an exception in a finalizer."""


def _restore(stream: Any, had: Any) -> None:
    if had is None:
        with contextlib.suppress(AttributeError):
            del stream.write
    else:
        stream.write = had
