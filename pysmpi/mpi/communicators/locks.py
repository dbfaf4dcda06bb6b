"""Locks of a rank's communicators: its threads take one for calls that take several messages."""

from __future__ import annotations

import threading
from collections.abc import Hashable
from typing import Any

from pysmpi.mpi.base.ranks import current


def locks_of(comm: Any) -> dict[Hashable, Any]:
    """The calling rank's locks of a communicator, by what they are for."""
    tables = current().storage.setdefault("locks", {})
    table: dict[Hashable, Any] | None = tables.get(comm._impl)
    if table is None:
        table = tables[comm._live()] = {}
    return table


def lock_of(comm: Any, key: Hashable) -> Any:
    """The calling rank's lock for one purpose; its threads wait for it in virtual time."""
    table = locks_of(comm)
    lock = table.get(key)
    if lock is None:
        lock = table[key] = threading.Lock()
    return lock


def forget(comm: Any) -> None:
    """A communicator is about to be freed."""
    storage = current().storage
    for name in ("locks", "hidden"):
        tables = storage.get(name)
        if tables:
            tables.pop(comm._impl, None)
