"""Locks of a rank's communicators: its threads take one for calls that take several messages."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Any

from pysmpi.mpi.base.ranks import Rank, current
from pysmpi.mpi.base.state import StateSlot

# By the object of a communicator's handle, then by purpose.
LOCKS: StateSlot[Rank, dict[object, dict[Hashable, threading.Lock]]] = StateSlot(Rank, dict)

at_forget: list[Callable[[Rank, object], None]] = []  # notified of freed communicators


def locks_of(comm: Any) -> dict[Hashable, threading.Lock]:
    """The calling rank's locks of a communicator, by purpose."""
    tables = LOCKS.of(current())
    table = tables.get(comm._impl)
    if table is None:
        table = tables[comm._live()] = {}
    return table


def lock_of(comm: object, key: Hashable) -> threading.Lock:
    """The calling rank's lock for one purpose; its threads wait for it in virtual time."""
    table = locks_of(comm)
    lock = table.get(key)
    if lock is None:
        lock = table[key] = threading.Lock()
    return lock


def forget(comm: Any) -> None:
    """A communicator is about to be freed."""
    rank = current()
    LOCKS.of(rank).pop(comm._impl, None)
    for function in at_forget:
        function(rank, comm._impl)
