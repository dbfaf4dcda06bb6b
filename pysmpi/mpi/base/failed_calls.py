"""The calls of MPI that ended with an error in a rank, for reports about ranks that wait later.

A program may catch the error and go on. Other ranks then wait for a call in which this rank took no
part, and the error is the cause.
"""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

from pysmpi.mpi.base.procedures import CallKind, Role
from pysmpi.mpi.base.ranks import MpiCall, Rank, Universe
from pysmpi.mpi.base.state import StateSlot
from pysmpi.python.frames import CallSite

_KEPT = 16  # of each rank
_LONGEST = 120  # characters of a message


class FailedCall(NamedTuple):
    """A call that ended with an error.

    `begun` has the number of collective calls that the rank had begun then in the communicators of
    the call, by the numbers of their contexts; `peers` are the ranks that the call names.
    """

    name: str
    kind: CallKind
    site: CallSite | None
    error: str
    begun: dict[int, int]
    peers: tuple[int, ...]


class FailedCalls:
    """The latest calls that failed, by the number of the rank."""

    def __init__(self) -> None:
        self.of: dict[int, deque[FailedCall]] = {}

    def note(self, call: MpiCall, error: Exception) -> None:
        """An exception leaves a call for the program."""
        subjects = (*call.having(Role.COMMUNICATOR).values(), *call.having(Role.WINDOW).values())
        peers = (*call.having(Role.PEER).values(), *call.having(Role.ROOT).values())
        try:
            text = str(error).strip().partition("\n")[0]
        except Exception:  # of the program's own `__str__`
            text = ""
        if not text or not hasattr(error, "Get_error_class"):  # no error of MPI
            text = f"{type(error).__name__}: {text}".removesuffix(": ")
        if len(text) > _LONGEST:
            text = text[: _LONGEST - 3] + "..."
        failed = FailedCall(
            call.name,
            call.kind,
            call.site,
            text,
            dict(one for subject in subjects for one in _begun(subject, call.rank.pid)),
            tuple(peer for peer in peers if isinstance(peer, int)),
        )
        calls = self.of.get(call.rank.pid)
        if calls is None:
            calls = self.of[call.rank.pid] = deque(maxlen=_KEPT)
        calls.append(failed)


def _begun(subject: object, pid: int) -> list[tuple[int, int]]:
    """The context of a communicator, or of a window's communicator, and the calls begun in it."""
    impl: Any = getattr(subject, "_impl", None)
    communicator = getattr(impl, "communicator", impl)
    if getattr(communicator, "p2p", None) is None:
        return []
    return [(communicator.p2p.number, communicator.begun(communicator.rank_of(pid)))]


FAILED: StateSlot[Universe, FailedCalls] = StateSlot(Universe, FailedCalls)


def note_failure(rank: Rank, error: BaseException) -> None:
    """Note the call that a rank is in if `error` is one that its program may catch."""
    call = rank.call
    if call is not None and isinstance(error, Exception):
        FAILED.of(rank.universe).note(call, error)
