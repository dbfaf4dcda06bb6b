"""The contribution of one rank to a collective call.

A `Contribution` holds the `Call` from which algorithms build the rank's schedule, and the rank's
data. Time and data are separate: the kernel executes the schedule. At its end, every rank on which
this one depends has entered the call, so the contribution copies its data directly from the others.

This module is compiled: every collective call passes through it.
"""

from __future__ import annotations

from typing import Any, Final

from mypy_extensions import mypyc_attr

from pysmpi.collectives.call import Call
from pysmpi.collectives.scheduled import ScheduledCall
from pysmpi.kernel.requests import Context, KernelRequest
from pysmpi.mpi.base.constants import ERR_INTERN, ERR_PROC_FAILED, ERR_REVOKED, SUCCESS
from pysmpi.mpi.base.ranks import Rank
from pysmpi.mpi.groups.communicator import CollectiveState, Communicator

# In place of the shared state of a call that has ended.
ENDED: Final = CollectiveState(0, "")
# In place of the number of a call that has not begun.
NEXT: Final = 1 << 62


@mypyc_attr(allow_interpreted_subclasses=True)
class Contribution:
    """One rank's contribution to a collective call, and its results.

    `collect` fills the receive buffer after the end of the schedule. `release` saves data that
    others still have to read, because the program may then change its buffer. `values` are the
    contributions of the ranks that have entered; for an intercommunicator, those of the other side.
    `keeps`: whether the contributions of the others are read after the end of the call, until
    `forget`.
    """

    __slots__ = ("shared", "call", "collected", "context", "communicator", "error", "keeps",
                 "label", "me", "number", "other", "request", "scheduled", "values")  # fmt: skip

    def __init__(self, communicator: Communicator, me: int, scheduled: ScheduledCall) -> None:
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

    def interrupted(self, rank: Rank) -> int:
        """The schedule has ended as it should, or because of a revocation or a failure."""
        if rank.pid in self.communicator.revoked:
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
        return self._as_before(BackgroundBarrier(self.communicator, self.me, self.scheduled))


@mypyc_attr(allow_interpreted_subclasses=True)  # as above
class WithoutData(Contribution):
    """A collective call without data, such as a barrier."""

    __slots__ = ()

    def again(self) -> Contribution:
        """The contribution to the next start of a persistent call."""
        return self._as_before(WithoutData(self.communicator, self.me, self.scheduled))

    def begin(self) -> None:
        """No contribution."""
        if self.number == NEXT:
            self.number = self.communicator.next_call(self.me)

    def finish(self) -> int:
        """No result."""
        return SUCCESS
