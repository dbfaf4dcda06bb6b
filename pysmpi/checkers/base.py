"""The base class of checkers."""

from __future__ import annotations

from typing import ClassVar

from mypy_extensions import mypyc_attr

from pysmpi.checkers.context import CheckContext
from pysmpi.checkers.pending import PendingMemory
from pysmpi.mpi.base.procedures import Procedure
from pysmpi.mpi.base.ranks import Rank
from pysmpi.mpi.calls import MpiCall
from pysmpi.ranks.simulation import Simulation


@mypyc_attr(allow_interpreted_subclasses=True)
class Checker:
    """The base class of checkers.

    A checker is a listener (`kernel/listeners.py`): it is notified of the events for which it has a
    method. It may also have these methods. Every MPI call of the program reaches them, local calls
    included:

    - `call_made(call)`: the call begins
    - `call_returned(call, result)`: it has returned its result
    - `call_failed(call, error)`: it has raised an exception

    A call of a procedure for which `concerns(event, procedure)` is false does not reach it.
    `finish(simulation)` is called once the run is over. Problems go to `session.report(finding)`.
    """

    session: CheckContext
    needs_clocks: ClassVar[bool] = False  # whether it asks `session.clocks` for the order of events
    needs_pending: ClassVar[bool] = False  # whether it is a watcher of `session.pending`

    def begin(self, simulation: Simulation) -> None:
        """The run begins."""

    def concerns(self, event: str, procedure: Procedure) -> bool:
        """Whether it has to hear of an event (`call_made`, ...) of the calls of a procedure."""
        return True

    def close(self) -> None:
        """The run is over, however it has ended."""

    def operation_begun(self, rank: Rank, pending: PendingMemory) -> None:
        """An operation owns memory from now on; only if `needs_pending`."""

    def operation_ended(self, rank: Rank, pending: PendingMemory, call: MpiCall) -> None:
        """A call has completed an operation; only if `needs_pending`."""

    def finish(self, simulation: Simulation) -> None:
        """The run is over; `session.clean` tells whether every rank came to its end."""
