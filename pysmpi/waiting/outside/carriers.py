"""Threads for C++ code of a library that calls back into the program.

Greenlets cannot be switched below frames of C++: libraries keep pointers into their stack, and
state of the thread for calls that have not returned. So such a call gets a thread of its own, a
*carrier*, and its rank waits for it. Only one of the two runs. If the code in the carrier has to
wait for other ranks, the greenlet of the rank waits in its place and continues it afterwards. A
carrier without work is used again.
"""

from __future__ import annotations

import contextvars
from _thread import allocate_lock, get_ident, start_new_thread
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any, ParamSpec, TypeVar

from greenlet import getcurrent

from pysmpi.mpi.base.ranks import Fiber
from pysmpi.python.frames import callers, running_frame
from pysmpi.time.cpu_clock import CpuClock
from pysmpi.time.thread_changes import continue_in_thread

P = ParamSpec("P")
R = TypeVar("R")

_LOOK = 0.1  # (s) after which a wait returns to Python, which shows that it is not a stall


class _Carrier:
    """A thread, and the two locks by which it and a rank continue each other."""

    def __init__(self) -> None:
        self._go, self._back = allocate_lock(), allocate_lock()
        self._go.acquire()
        self._back.acquire()
        self._work: Callable[[], object] | None = None
        self._fiber: Any = None
        self._caller: FrameType
        self._clock: CpuClock | None = None
        self._suspends = False  # whether the carrier asks its rank to wait
        self._result: Any = None
        self._error: BaseException | None = None
        start_new_thread(self._live, ())

    def _live(self) -> None:
        running: Any = getcurrent()
        thread = get_ident()
        while True:
            self._go.acquire()
            work, self._work = self._work, None
            assert work is not None
            # As for a greenlet of the program: `current` and the exchange of states ask for these.
            running.rank, running.state = self._fiber.rank, self._fiber.state
            callers[thread] = self._caller
            continue_in_thread(self._clock)
            try:
                self._result = work()
            except BaseException as error:
                self._error = error
            del work, running.rank, running.state, callers[thread], self._caller
            self._leave(suspends=False)

    def _leave(self, suspends: bool) -> None:
        if self._clock is not None:
            self._clock.elapsed()  # the rank continues from here
        self._suspends = suspends
        self._back.release()

    def suspend(self) -> Any:
        """Have the rank wait for others; called in the carrier."""
        self._leave(suspends=True)
        self._go.acquire()
        continue_in_thread(self._clock)
        return self._taken()

    def run(
        self,
        fiber: Fiber,
        clock: CpuClock | None,
        suspend: Callable[[], Any],
        work: Callable[[], object],
    ) -> Any:
        """The result of `work`, called in the carrier; `suspend` waits for other ranks."""
        self._fiber, self._clock, self._work = fiber, clock, work
        self._caller = running_frame()
        while True:
            if clock is not None:
                clock.elapsed()
            self._go.release()
            interruption = self._come_back()
            continue_in_thread(clock)
            if not self._suspends:
                self._fiber = self._clock = None
                self._error = self._error or interruption
                return self._taken()
            try:
                if interruption is not None:
                    raise interruption
                self._result = suspend()
                awake = fiber.rank.engine.awake
                if awake is not None:
                    awake()  # states of the thread, which the carrier does not have
            except BaseException as error:
                self._error = error

    def _taken(self) -> Any:
        result, error = self._result, self._error
        self._result = self._error = None
        if error is not None:
            try:
                raise error
            finally:
                del error  # its frames refer to it
        return result

    def _come_back(self) -> BaseException | None:
        """Wait until the carrier has to be continued; return what a signal raised meanwhile."""
        interruption = None
        while True:
            try:
                if self._back.acquire(timeout=_LOOK):
                    return interruption
            except BaseException as error:
                interruption = interruption or error


_idle: list[_Carrier] = []


def carried(
    clock: CpuClock | None, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs
) -> R:
    """The result of a function that is called in a carrier of the running rank.

    `clock` measures the compute of ranks, if one does. A function that code in a carrier calls is
    called directly, and so is one outside of ranks.
    """
    fiber: Any = getcurrent()
    if not isinstance(fiber, Fiber):
        return function(*args, **kwargs)
    carrier = _idle.pop() if _idle else _Carrier()
    process = fiber.process
    suspend = process.suspend
    process.suspend = carrier.suspend
    variables = contextvars.copy_context()
    try:
        result: R = carrier.run(
            fiber, clock, suspend, partial(variables.run, function, *args, **kwargs)
        )
        return result
    finally:
        process.suspend = suspend
        _idle.append(carrier)
