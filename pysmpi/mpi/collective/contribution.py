"""The contribution of one rank to a collective call, and the execution of the call by this rank.

A `Contribution` holds the `Call` from which algorithms build the rank's schedule, and the rank's
data. Time and data are separate: the kernel executes the schedule. At its end, every rank on which
this one depends has entered the call, so the contribution copies its data directly from the others.

`run` does a blocking call: enter, the messages of its schedule, take the data, leave. Non-blocking
and persistent calls do the same in `background`.

This module is compiled: every collective call passes through it.
"""

from __future__ import annotations

from typing import Any, Final

from mypy_extensions import mypyc_attr

from pysmpi.collectives.call import Call
from pysmpi.kernel.process import Process
from pysmpi.kernel.requests import Context, KernelRequest
from pysmpi.kernel.schedule import REDUCE
from pysmpi.mpi.base.constants import (
    ERR_INTERN,
    ERR_PROC_FAILED,
    ERR_REVOKED,
    ERR_TRUNCATE,
    SUCCESS,
)
from pysmpi.mpi.base.exceptions import fail
from pysmpi.mpi.base.ranks import Rank
from pysmpi.mpi.collective.in_place import misplaced
from pysmpi.mpi.collective.schedules import UNDECIDED, ScheduledCall, decided, schedule_of
from pysmpi.mpi.groups.agreement import tag_of
from pysmpi.mpi.groups.communicator import CollectiveState, Communicator

# In place of the shared state of a call that has ended.
ENDED: Final = CollectiveState(0, "")
# In place of the number of a call that has not begun.
NEXT: Final = 1 << 62

# The message of an error, by its class.
_DETAILS = {
    ERR_TRUNCATE: "more data has arrived than the receive buffer can hold",
    ERR_PROC_FAILED: "a process of the communicator has failed",
    ERR_REVOKED: "the communicator was revoked during the call",
    ERR_INTERN: "the algorithm let a rank go on before its data had arrived",
}


@mypyc_attr(allow_interpreted_subclasses=True)
class Contribution:
    """One rank's contribution to a collective call, and its results.

    `collect` fills the receive buffer after the end of the schedule. `release` saves data that
    others still have to read, because the program may then change its buffer. `values` are the
    contributions of the ranks that have entered; for an intercommunicator, those of the other side.
    `keeps`: whether the contributions of the others are read after the end of the call, until
    `forget`.
    """

    __slots__ = (
        "shared", "call", "collected", "context", "communicator", "error", "keeps", "label", "me",
        "number", "other", "rank", "request", "scheduled", "values",
    )  # fmt: skip

    def __init__(
        self, rank: Rank, communicator: Communicator, me: int, scheduled: ScheduledCall
    ) -> None:
        self.rank = rank
        self.communicator = communicator
        self.me = me
        self.scheduled = scheduled
        call = scheduled.call
        self.call: Call = call
        # Calls of different labels never match: blocking calls match only blocking ones (MPI 4.1,
        # 6.12).
        self.label: str = call.op
        self.number: int = NEXT
        self.shared = self.other = ENDED
        self.values: dict[int, Any] = ENDED.values
        self.keeps = False
        self.context: Context | None = None
        self.request: KernelRequest | None = None  # of a non-blocking call
        self.collected = False
        self.error: int = SUCCESS

    def begin(self) -> None:
        """Enter the next call of the rank, or the call whose number was set."""
        communicator = self.communicator
        number = self.number
        if number == NEXT:
            number = self.number = communicator.next_call(self.me)
        shared = communicator.enter(number, self.label, self.me, self)
        remote = shared.remote
        other = shared if remote is None else remote
        self.shared = shared
        self.other = other
        self.values = other.values

    def into_background(self) -> None:
        """Become the contribution to the non-blocking form of the call."""
        self.label = f"i{self.label}"
        self.scheduled = self.scheduled.nonblocking()
        self.call = self.scheduled.call

    def settle(self) -> None:
        """Keep no more of the arguments than the call needs while it waits."""

    def again(self) -> Contribution:
        """The contribution to the next start of a persistent call."""
        raise NotImplementedError

    def _as_before(self, contribution: Contribution) -> Contribution:
        contribution.label = self.label
        contribution.context = self.context
        return contribution

    def finish(self) -> int:
        """The schedule has ended: copy the data, and leave. Returns the error class."""
        if not self.collected:
            self.collected = True
            self.collect()
        other = self.other
        if other.left + (other is self.shared) < self.communicator.remote.size:
            self.release()  # a rank may still have to read this rank's data
        self.communicator.exit(self.shared, self.me)
        if not self.keeps:
            self.forget()
        return self.error

    def forget(self) -> None:
        """Release the shared state, which refers to the contribution: both are freed at once."""
        self.shared = self.other = ENDED
        self.values = ENDED.values

    def interrupted(self) -> int:
        """The schedule has ended as it should, or because of a revocation or a failure."""
        if self.rank.pid in self.communicator.revoked:
            return ERR_REVOKED
        lost = self.communicator.p2p.lost or self.communicator.remote.p2p.lost
        return self.finish() if lost is None else ERR_PROC_FAILED

    def deliver(self) -> None:
        """Take the data before the own schedule has ended, because its source is leaving."""
        if not self.collected:
            self.collected = True
            self.collect()

    def collect(self) -> None:
        """Copy the data of this rank from the others."""

    def release(self) -> None:
        """Save data that others still have to read."""

    def alone(self) -> bool:
        """Whether the call takes no messages because its rank is the only one."""
        communicator = self.communicator
        return (
            communicator.size == 1
            and communicator.remote is communicator
            and not self.call.op.startswith("neighbor")
        )

    def detail_of(self, error: int) -> str:
        """The message of an error that has ended the call."""
        detail = _DETAILS.get(error, "")
        arguments = misplaced(self.communicator, self.number)
        return f"{detail}; {arguments}" if arguments else detail

    def reduced(self) -> list[float]:
        """The sizes (bytes) that the rank combines in the call, by its algorithm."""
        schedule, _, _ = schedule_of(self.communicator, self.me, self.scheduled, self.number)
        return [
            schedule.amounts[index]
            for code, index in zip(schedule.codes, schedule.peers)
            if code == REDUCE
        ]

    def complete(self) -> bool:
        """Whether all ranks have entered."""
        communicator = self.communicator
        return (
            len(self.values) == communicator.remote.size
            and len(self.shared.values) == communicator.size
        )

    def source(self, rank: int) -> Any:
        """The contribution of a sending rank; None, and an error, if it has not entered."""
        contribution = self.values.get(rank)
        if contribution is None:
            self.error = ERR_INTERN
        return contribution


# As its base: else mypyc would run the inherited `__init__` twice in calls from Python, and the
# attributes of the first time would never be freed.
@mypyc_attr(allow_interpreted_subclasses=True)
class BackgroundBarrier(Contribution):
    """A barrier in the background, which notes the ranks that have begun it."""

    __slots__ = ()

    def again(self) -> Contribution:
        """The contribution to the next start of a persistent call."""
        return self._as_before(
            BackgroundBarrier(self.rank, self.communicator, self.me, self.scheduled)
        )


@mypyc_attr(allow_interpreted_subclasses=True)  # as above
class WithoutData(Contribution):
    """A collective call without data, such as a barrier."""

    __slots__ = ()

    def again(self) -> Contribution:
        """The contribution to the next start of a persistent call."""
        return self._as_before(WithoutData(self.rank, self.communicator, self.me, self.scheduled))

    def begin(self) -> None:
        """No contribution."""
        if self.number == NEXT:
            self.number = self.communicator.next_call(self.me)

    def finish(self) -> int:
        """No result."""
        return SUCCESS


def run(subject: object, contribution: Contribution) -> None:
    """Do a blocking call; `subject` is the handle for errors."""
    process = _prepared(contribution)
    if process is not None:
        process.perform()
    _leave(subject, contribution)


def _prepared(contribution: Contribution) -> Process | None:
    """Enter a call; return the process if it still has to perform the messages."""
    rank, communicator = contribution.rank, contribution.communicator
    process: Process = rank.process
    contribution.begin()
    listeners = rank.engine.listeners
    if listeners.collective_entered is not None:
        listeners.notify("collective_entered", contribution, rank)
    if communicator.size == 1 and contribution.alone():
        return None
    number = contribution.number
    schedule, context, me = schedule_of(
        communicator, contribution.me, contribution.scheduled, number
    )
    if listeners.collective_entered is None:
        contribution.settle()
    tag = tag_of(number, contribution.label)
    if schedule is not UNDECIDED:
        process.prepare(schedule, context, me, tag)
        return process
    for part in decided(communicator, contribution.call, context, me, tag):
        process.execute(part, context, me, tag)
    return None


def _leave(subject: object, contribution: Contribution) -> None:
    """Take the data of a call and leave it."""
    revoked = contribution.communicator.revoked
    error = contribution.interrupted() if revoked else contribution.finish()
    rank = contribution.rank
    listeners = rank.engine.listeners
    if listeners.collective_left is not None:
        listeners.notify("collective_left", contribution, rank)
    if error:
        fail(error, contribution.detail_of(error), subject)
