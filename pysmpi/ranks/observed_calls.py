"""Events of every MPI call of a program, local ones included, with its result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pysmpi.mpi import calls
from pysmpi.mpi.base.ranks import Rank, Universe, current
from pysmpi.mpi.calls import Procedure

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
        for event, methods in self.methods.items():
            if hasattr(listener, event):
                methods.append(getattr(listener, event))
        if not self._observing and any(self.methods.values()):
            self._observing = True
            calls.observe(self._observed)

    def _observed(self, procedure: Procedure, function: Any) -> object:
        """A function in place of that of a call."""
        methods, open_calls = self.methods, self._open
        on_begin, returned, failed, left = (methods[event] for event in EVENTS)
        universe, engine = self.universe, self.universe.engine

        def observed(*values: Any, **named: Any) -> object:
            rank = current()
            if rank.universe is not universe or engine.stopped:
                return function(*values, **named)
            call = rank.call
            # Calls that are made inside of one are a part of it.
            if call is None or call.procedure is not procedure or id(call) in open_calls:
                return function(*values, **named)
            open_calls.add(id(call))
            try:
                _quietly(rank, on_begin, call)
                try:
                    result = function(*values, **named)
                except Exception as error:
                    if not engine.stopped:
                        _quietly(rank, failed, call, error)
                    raise
                if not engine.stopped:
                    _quietly(rank, returned, call, result)
                return result
            finally:
                open_calls.discard(id(call))
                for method in left:
                    method(call)

        return observed


def _quietly(rank: Rank, methods: Sequence[Callable[..., object]], *arguments: object) -> None:
    """Notify listeners of a call; their work is no compute of the program."""
    timer = rank.timer
    running = timer is not None and not rank.in_call
    if running:
        rank.process.debt += timer.stop()
    for method in methods:
        method(*arguments)
    if running:
        timer.start()
