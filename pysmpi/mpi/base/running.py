"""The rank that runs, and its compute inside of MPI calls.

This module is compiled: every message and every pickled object passes through it.
"""

from __future__ import annotations

from typing import Any, Final

from greenlet import getcurrent

from pysmpi.mpi.base.procedures import Procedure
from pysmpi.mpi.base.ranks import Rank, current
from pysmpi.python.frames import CallSite, current_site

_getcurrent: Final[Any] = getcurrent


def calling_rank() -> Rank:
    """The running rank, as `current()`, without a call in Python."""
    try:
        rank: Rank = _getcurrent().rank
    except (AttributeError, RuntimeError):
        rank = current()
    return rank


def called() -> tuple[str, CallSite | None]:
    """The name of the call in which the running rank is, and its line."""
    record = calling_rank().record
    if record is None:
        return "", None
    procedure: Procedure = record[0] if isinstance(record, tuple) else record.procedure
    return procedure.name, current_site()


class computing:
    """A context inside a call; its work is compute of the program.

    MPI calls of the program's functions inside it are separate calls.
    """

    __slots__ = ("rank", "record", "inside")

    def __init__(self) -> None:
        self.rank: Rank = calling_rank()
        self.record: Any = None
        self.inside: bool = False

    def __enter__(self) -> None:
        rank = self.rank
        self.record = rank.record
        rank.record = None
        self.inside = rank.in_call
        if self.inside:
            rank.in_call = False
            if rank.timer is not None:
                rank.timer.resume()

    def __exit__(self, *exception: object) -> None:
        rank = self.rank
        if self.inside:
            if rank.timer is not None:
                rank.process.debt += rank.timer.stop()
            rank.in_call = True
        rank.record = self.record
