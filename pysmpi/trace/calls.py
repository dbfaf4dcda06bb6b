"""The MPI calls of programs, seen from outside.

While a timeline is recorded, the public methods of MPI's classes are replaced by ones that note
when they begin and end. Without a recording nothing of this exists, so it costs nothing.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import TYPE_CHECKING, Any

from greenlet import getcurrent

from pysmpi.mpi import MPI
from pysmpi.mpi.base.ranks import Rank
from pysmpi.mpi.calls import CallKind, procedure_of
from pysmpi.runtime.program_errors import shorten
from pysmpi.trace.events import TracedCall

if TYPE_CHECKING:
    from pysmpi.trace.recorder import Recorder

_PEERS = ("dest", "source", "root", "target_rank", "rank")


class Instruments:
    """The replaced methods, and the way back."""

    def __init__(self) -> None:
        self._undo: list[tuple[type, str, Any]] = []

    def _replace(self, cls: type, name: str, new: Any) -> None:
        self._undo.append((cls, name, vars(cls)[name]))
        setattr(cls, name, new)

    def install(self, recorder: Recorder) -> None:
        """Have every communicating method tell `recorder`."""
        classes = dict.fromkeys(
            base for cls in vars(MPI).values() if isinstance(cls, type) for base in cls.__mro__
        )
        for cls in classes:
            for name, member in list(vars(cls).items()):
                procedure = procedure_of(member)
                if name.startswith("_") or procedure is None or procedure.kind is CallKind.LOCAL:
                    continue
                wrapped: Any
                if isinstance(member, FunctionType):
                    wrapped = _wrap(name, member, recorder)
                elif isinstance(member, classmethod) and isinstance(member.__func__, FunctionType):
                    wrapped = classmethod(_wrap(name, member.__func__, recorder))
                else:
                    continue
                self._replace(cls, name, wrapped)

    def remove(self) -> None:
        """Put the methods back."""
        while self._undo:
            cls, name, member = self._undo.pop()
            setattr(cls, name, member)


class TimerProbe:
    """A rank's timer, which tells the call that begins when: the compute before it is billed.

    To ask the rank for its time instead would bill it once more, and change the run.
    """

    __slots__ = ("start", "resume", "real", "_rank")

    def __init__(self, rank: Rank) -> None:
        self._rank = rank
        self.real = rank.timer
        self.start = rank.timer.start
        self.resume = rank.timer.resume

    def stop(self) -> float:
        elapsed: float = self.real.stop()
        call = getattr(getcurrent(), "call", None)
        if call is not None and call.start < 0.0:
            rank = self._rank
            call.start = rank.engine.now + rank.process.debt + elapsed
        return elapsed


def _wrap(name: str, function: FunctionType, recorder: Recorder) -> Callable[..., Any]:
    code = inspect.unwrap(function).__code__
    parameters = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    positions = [(peer, parameters.index(peer)) for peer in _PEERS if peer in parameters]

    files = recorder.files

    @functools.wraps(function)
    def traced(*args: Any, **kwargs: Any) -> Any:
        fiber: Any = getcurrent()
        rank = getattr(fiber, "rank", None)
        # A call that another call makes for itself is a part of that.
        if rank is None or getattr(fiber, "call", None) is not None:
            return function(*args, **kwargs)
        caller = sys._getframe(1)
        file = caller.f_code.co_filename
        short = files.get(file)
        if short is None:
            short = files[file] = shorten(file)
        site = f"{short}:{caller.f_lineno}"
        call = TracedCall(name, rank.pid, recorder.thread_of(fiber), site)
        if rank.timer is None:
            call.start = rank.engine.now + rank.process.debt
        elif type(rank.timer) is not TimerProbe:
            rank.timer = TimerProbe(rank)
        if positions:
            call.peers = tuple(_peers(positions, args, kwargs))
        fiber.call = call
        recorder.open[rank.pid] = call
        try:
            return function(*args, **kwargs)
        finally:
            fiber.call = None
            if recorder.open.get(rank.pid) is call:
                del recorder.open[rank.pid]
            if call.start >= 0.0:
                call.end = rank.engine.now + rank.process.debt
                recorder.ended(call)

    return traced


def _peers(
    positions: list[tuple[str, int]], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Iterator[tuple[str, int]]:
    for name, position in positions:
        value = args[position] if position < len(args) else kwargs.get(name)
        if type(value) is int:
            yield name, value
