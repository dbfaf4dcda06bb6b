"""Types of handles of communicators, for calls of lower modules that return them.

The classes of communicators are made of mixins, whose calls return communicators of all classes.
The mixins import these protocols under the names of the classes, as mpi4py's documentation shows
them; so they do not depend on the classes that contain them.
"""

from __future__ import annotations

from typing import Protocol

from pysmpi.mpi.groups.communicator import Communicator


class CommHandle(Protocol):
    """A handle of a communicator."""

    def Free(self) -> None: ...


class IntracommHandle(CommHandle, Protocol):
    """A handle of an intracommunicator."""

    def _usable(self) -> Communicator: ...


class IntercommHandle(CommHandle, Protocol):
    """A handle of an intercommunicator."""


class CartcommHandle(IntracommHandle, Protocol):
    """A handle of a communicator with a Cartesian topology."""


class GraphcommHandle(IntracommHandle, Protocol):
    """A handle of a communicator with a graph."""


class DistgraphcommHandle(IntracommHandle, Protocol):
    """A handle of a communicator with a distributed graph."""
