"""Objects of the compiled module that mpi4py's own Python code uses: locks, communicators.

`mpi4py.util.pkl5` takes a lock for calls with several messages. It sends in a duplicate of the
program's communicator, made once, with a separate tag for each call.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from pysmpi.mpi.base.handles import wrong_type
from pysmpi.mpi.base.ranks import Rank, current
from pysmpi.mpi.base.state import StateSlot
from pysmpi.mpi.calls import mpi
from pysmpi.mpi.communicators.comm import Comm
from pysmpi.mpi.communicators.intercomm import Intercomm
from pysmpi.mpi.communicators.intracomm import Intracomm
from pysmpi.mpi.groups.agreement import agree
from pysmpi.mpi.groups.between_groups import joint
from pysmpi.mpi.groups.communicator import Communicator, connect, new_communicator
from pysmpi.mpi.groups.locks import at_forget, lock_of, locks_of

__all__ = ["_comm_lock", "_comm_lock_table", "_commctx_intra", "_commctx_inter"]

CONTEXT_BYTES = 8  # bytes of messages to agree on a new communicator
TAGS = 1 << 30  # after this number of calls tags repeat


class Hidden:
    """One rank's side of the duplicate of a communicator, and of its local group."""

    __slots__ = ("communicator", "local", "first", "tag")

    def __init__(self, communicator: Communicator, local: Communicator, first: bool) -> None:
        self.communicator = communicator
        self.local = local
        self.first = first
        self.tag = 0

    def next_tag(self) -> int:
        """The tag of one more call."""
        tag = self.tag
        self.tag = (tag + 1) % TAGS
        return tag


HIDDEN: StateSlot[Rank, dict[object, Hidden]] = StateSlot(Rank, dict)


def _forget(rank: Rank, impl: object) -> None:
    HIDDEN.of(rank).pop(impl, None)


at_forget.append(_forget)


def _hidden(comm: Any) -> Hidden:
    """The duplicate of a communicator, which all ranks make at their first call."""
    with lock_of(comm, "@commctx"):
        rank = current()
        communicator: Communicator = comm._usable()
        tables = HIDDEN.of(rank)
        result = tables.get(comm._impl)
        if result is None:
            agreement = agree(
                rank,
                communicator,
                "commctx",
                None,
                CONTEXT_BYTES,
                lambda *_: _duplicate(communicator),
                comm,
            )
            new, local = next(pair for pair in agreement if rank.pid in pair[0].group)
            first = communicator.inter and joint(communicator)[1] == 0
            result = tables[comm._impl] = Hidden(new, local, first)
        return result


def _duplicate(communicator: Communicator) -> list[tuple[Communicator, Communicator]]:
    """For each group, its side of the duplicate, and a separate communicator."""
    new = new_communicator(communicator.universe, communicator.group)
    if not communicator.inter:
        return [(new, new)]
    other = new_communicator(communicator.universe, communicator.remote.group)
    connect(new, other)
    return [(side, new_communicator(communicator.universe, side.group)) for side in (new, other)]


def _comm_lock(comm: Comm, key: Hashable | None = None) -> object:
    """Create/get communicator lock."""
    _check(comm, Comm)
    return lock_of(comm, key)


def _comm_lock_table(comm: Comm) -> dict[Hashable, Any]:
    """Internal communicator lock table."""
    _check(comm, Comm)
    return locks_of(comm)


@mpi.collective()
def _commctx_intra(comm: Intracomm) -> tuple[Intracomm, int]:
    """Create/get intracommunicator duplicate."""
    _check(comm, Intracomm)
    hidden = _hidden(comm)
    return comm._wrap(hidden.communicator), hidden.next_tag()


@mpi.collective()
def _commctx_inter(comm: Intercomm) -> tuple[Intercomm, int, Intracomm, bool]:
    """Create/get intercommunicator duplicate."""
    _check(comm, Intercomm)
    hidden = _hidden(comm)
    return (
        comm._wrap(hidden.communicator),
        hidden.next_tag(),
        comm._wrap(hidden.local),
        hidden.first,
    )


def _check(comm: object, expected: type[Comm]) -> None:
    if not isinstance(comm, expected):
        raise wrong_type("comm", expected, comm)
