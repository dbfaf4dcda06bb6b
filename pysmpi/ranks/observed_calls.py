"""Events of every MPI call of a program, local ones included, with its result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pysmpi.mpi import calls
from pysmpi.mpi.base.procedures import Procedure
from pysmpi.mpi.base.ranks import Universe
from pysmpi.mpi.base.running import calling_rank

EVENTS = ("call_made", "call_returned", "call_failed", "call_left")


class ObservedCalls:
    """The listeners of the calls of one run; a context manager that ends their events.

    Functions of MPI are replaced once there is a listener, so other runs pay nothing.
    """

    def __init__(self, universe: Universe) -> None:
        self.universe = universe
        self.methods: dict[str, list[Callable[..., object]]] = {event: [] for event in EVENTS}
        self._open: set[int] = set()
        self._observing = False

    def __enter__(self) -> ObservedCalls:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._observing:
            self._observing = False
            calls.observe_no_more()

    def add(self, listener: object) -> None:
        """Notify a listener of the events for which it has methods, after the earlier listeners."""
        added = False
        for event, methods in self.methods.items():
            if hasattr(listener, event):
                methods.append(getattr(listener, event))
                added = True
        if added and not self._observing:
            self._observing = True
            calls.observe(self._observed)

    def _observed(self, procedure: Procedure, function: Any) -> object:
        """A function in place of that of a call."""
        open_calls = self._open
        on_begin, returned, failed, left = (self.methods[event] for event in EVENTS)
        universe, engine = self.universe, self.universe.engine

        def observed(*values: Any, **named: Any) -> object:
            rank = calling_rank()
            if rank.universe is not universe or engine.stopped:
                return function(*values, **named)
            call = rank.call
            # Calls that are made inside of one are a part of it.
            if call is None or call.procedure is not procedure or id(call) in open_calls:
                return function(*values, **named)
            open_calls.add(id(call))
            try:
                # The work of listeners is no compute of the program.
                timer = None if rank.in_call else rank.timer
                if timer is not None:
                    rank.process.debt += timer.stop()
                for method in on_begin:
                    method(call)
                if timer is not None:
                    timer.start()
                try:
                    result = function(*values, **named)
                except Exception as error:
                    if not engine.stopped:
                        timer = None if rank.in_call else rank.timer
                        if timer is not None:
                            rank.process.debt += timer.stop()
                        for method in failed:
                            method(call, error)
                        if timer is not None:
                            timer.start()
                    raise
                if not engine.stopped:
                    timer = None if rank.in_call else rank.timer
                    if timer is not None:
                        rank.process.debt += timer.stop()
                    for method in returned:
                        method(call, result)
                    if timer is not None:
                        timer.start()
                return result
            finally:
                open_calls.discard(id(call))
                for method in left:
                    method(call)

        return observed
