"""The ends of ranks: the states of a rank, and the events that change them."""

from __future__ import annotations

from enum import Enum
from typing import Any, Final

from pysmpi.python.frames import CallSite


class RankState(Enum):
    """The state of a rank; all but the first are final."""

    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"
    STOPPED = "stopped"


class RankEvent(Enum):
    """An event in the life of a rank."""

    RETURNS = "its program returns, or calls `sys.exit`"
    FAILS = "an exception ends its program"
    ABORTS = "it, or another rank, calls `MPI.Abort`"
    UNWINDS = "the run ends, and its `finally` clauses run"
    EXITS = "it calls `os._exit` before it uses MPI or after it has finalized it"
    EXITS_IN_MPI = "it calls `os._exit` while it uses MPI, or a signal ends it"
    IS_KILLED = "a fault ends it"
    IS_LEFT = "the run is over, and its program has not ended"
    COMPUTES = "its program has ended, and its last compute shares a core"


_RUNNING, _FINISHED = RankState.RUNNING, RankState.FINISHED
_FAILED, _STOPPED = RankState.FAILED, RankState.STOPPED

# The state after an event. A rank that is ending can still be killed or left.
TRANSITIONS: Final = {
    _RUNNING: {
        RankEvent.RETURNS: _FINISHED,
        RankEvent.FAILS: _FAILED,
        RankEvent.ABORTS: _STOPPED,
        RankEvent.UNWINDS: _STOPPED,
        RankEvent.EXITS: _FINISHED,
        RankEvent.EXITS_IN_MPI: _STOPPED,
        RankEvent.IS_KILLED: _STOPPED,
        RankEvent.IS_LEFT: _STOPPED,
    },
    _FINISHED: {
        RankEvent.COMPUTES: _RUNNING,
        RankEvent.IS_KILLED: _STOPPED,
        RankEvent.IS_LEFT: _STOPPED,
    },
    _FAILED: {RankEvent.IS_KILLED: _STOPPED, RankEvent.IS_LEFT: _STOPPED},
    _STOPPED: {RankEvent.IS_KILLED: _STOPPED, RankEvent.IS_LEFT: _STOPPED},
}


class Outcome:
    """The end of one rank: its state, its return value or exception, its exit status."""

    __slots__ = ("state", "value", "error", "status", "time", "exit")

    def __init__(self) -> None:
        self.state = RankState.RUNNING
        self.value: Any = None
        self.error: BaseException | None = None
        self.status = 0
        self.time = 0.0  # (s) of its end
        # The argument and the line of `sys.exit`.
        self.exit: tuple[object, CallSite | None] | None = None

    def undergo(self, event: RankEvent) -> None:
        """Change the state by the table of transitions; RuntimeError if the state has no event."""
        state = TRANSITIONS[self.state].get(event)
        if state is None:
            raise RuntimeError(f"a rank that is {self.state.value} does not expect: {event.value}")
        self.state = state


class _UnderWay(Outcome):
    """The outcome of all ranks that have not ended; `RankEnds.outcome` gives a rank its own."""

    __slots__ = ()

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("this is the outcome of several ranks")


UNDER_WAY = Outcome()
UNDER_WAY.__class__ = _UnderWay


def exit_status(leave: SystemExit) -> int:
    """The exit status of a process of Python on `SystemExit`: eight bits of a C long."""
    code = leave.code
    if code is None:
        return 0
    if not isinstance(code, int):
        return 1
    return code & 0xFF if -(1 << 63) <= code < 1 << 63 else 0xFF


def exit_text(leave: SystemExit) -> str:
    """The text that Python shows of a `SystemExit` whose code is no integer."""
    try:
        return str(leave.code)
    except Exception:
        return ""
