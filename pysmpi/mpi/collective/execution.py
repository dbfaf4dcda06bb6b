"""The execution of a collective call: enter, the messages of its schedule, take the data, leave.

This module is compiled: every collective call passes through it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pysmpi.collectives.running import Lookout, Patience, find_live
from pysmpi.kernel.process import Process
from pysmpi.kernel.requests import Context
from pysmpi.kernel.schedule import Schedule
from pysmpi.mpi.base.constants import (
    ERR_INTERN,
    ERR_PROC_FAILED,
    ERR_REVOKED,
    ERR_TRUNCATE,
)
from pysmpi.mpi.base.exceptions import fail
from pysmpi.mpi.base.ranks import Universe
from pysmpi.mpi.base.running import calling_rank
from pysmpi.mpi.base.state import StateSlot
from pysmpi.mpi.collective.contribution import Contribution
from pysmpi.mpi.collective.in_place import misplaced
from pysmpi.mpi.collective.schedules import UNDECIDED, of_rank, schedule_of
from pysmpi.mpi.groups.agreement import tag_of

PATIENCE: Final[StateSlot[Universe, Patience]] = StateSlot(Universe)

# The message of an error, by its class.
_DETAILS = {
    ERR_TRUNCATE: "more data has arrived than the receive buffer can hold",
    ERR_PROC_FAILED: "a process of the communicator has failed",
    ERR_REVOKED: "the communicator was revoked during the call",
    ERR_INTERN: "the algorithm let a rank go on before its data had arrived",
}


def run(subject: object, contribution: Contribution) -> None:
    """Do a blocking call; `subject` is the handle for errors."""
    process = _prepared(contribution)
    if process is not None:
        process.perform()
    _leave(subject, contribution)


def _prepared(contribution: Contribution) -> Process | None:
    """Enter a call; return the process if it still has to perform the messages."""
    rank = calling_rank()
    process: Process = rank.process
    communicator = contribution.communicator
    contribution.begin()
    listeners = rank.engine.listeners
    if listeners.collective_entered is not None:
        listeners.notify("collective_entered", contribution, rank)
    if communicator.size == 1 and alone(contribution):
        return None
    schedule, context, me = schedule_of(contribution)
    if listeners.collective_entered is None:
        contribution.settle()
    tag = tag_of(contribution.number, contribution.label)
    if schedule is not UNDECIDED:
        process.prepare(schedule, context, me, tag)
        return process
    for part in decided(contribution, context, me, tag):
        process.execute(part, context, me, tag)
    return None


def _leave(subject: object, contribution: Contribution) -> None:
    """Take the data of a call and leave it."""
    rank = calling_rank()
    communicator = contribution.communicator
    error = contribution.finish() if not communicator.revoked else contribution.interrupted(rank)
    listeners = rank.engine.listeners
    if listeners.collective_left is not None:
        listeners.notify("collective_left", contribution, rank)
    if error:
        fail(error, detail_of(contribution, error), subject)


def alone(contribution: Contribution) -> bool:
    """Whether the call takes no messages because its rank is the only one."""
    communicator = contribution.communicator
    return (
        communicator.size == 1
        and communicator.remote is communicator
        and not contribution.call.op.startswith("neighbor")
    )


def decided(contribution: Contribution, context: Context, me: int, tag: int) -> Iterator[Schedule]:
    """The schedules of an algorithm that decides while it runs, one after another."""
    communicator, call = contribution.communicator, of_rank(contribution.call, me)
    live = find_live(call)
    assert live is not None
    universe = communicator.universe
    patience = PATIENCE.peek(universe)
    if patience is None:
        settings = universe.settings
        patience = Patience(settings.iprobe, settings.grow_injected_times)
        PATIENCE.put(universe, patience)
    look = Lookout(context, me, tag, communicator.call_cache.arrivals, patience)
    yield from live(call, look)
    look.leave()


def detail_of(contribution: Contribution, error: int) -> str:
    """The message of an error that has ended a call."""
    detail = _DETAILS.get(error, "")
    arguments = misplaced(contribution.communicator, contribution.number)
    return f"{detail}; {arguments}" if arguments else detail
