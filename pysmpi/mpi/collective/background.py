"""Collective calls in the background: non-blocking and persistent forms."""

from __future__ import annotations

from pysmpi.kernel.follower import Follower
from pysmpi.kernel.requests import Context, KernelRequest
from pysmpi.mpi.base.constants import ANY_SOURCE, ANY_TAG, SUCCESS
from pysmpi.mpi.base.ranks import Rank
from pysmpi.mpi.base.running import called
from pysmpi.mpi.collective.contribution import Contribution
from pysmpi.mpi.collective.schedules import UNDECIDED, decided, schedule_of
from pysmpi.mpi.datatypes.status import Status
from pysmpi.mpi.groups.agreement import tag_of
from pysmpi.mpi.groups.between_groups import joint
from pysmpi.mpi.groups.communicator import PERSISTENT, Communicator, PrivateContext
from pysmpi.mpi.point_to_point.operations import RequestOperation


class CollectiveOperation(RequestOperation):
    """A non-blocking collective call: its schedule runs in a separate process.

    The data is copied when the program learns that the call is complete, because only then the
    program may access its buffers, and because reductions then call the program's functions in its
    own rank.
    """

    __slots__ = ("contribution", "finished", "error")

    def __init__(self, rank: Rank, subject: object, contribution: Contribution) -> None:
        super().__init__(rank, subject)
        contribution.into_background()
        self.contribution = contribution
        self.finished = True
        self.error: int = SUCCESS

    def start(self) -> None:
        """Begin; only a persistent call begins more than once."""
        self.begin(self.contribution)

    def begin(self, contribution: Contribution) -> None:
        """Enter the call and let its schedule run."""
        rank = self.rank
        main = rank.process
        main.finish_compute()
        self.contribution = contribution
        self.finished = False
        contribution.begin()
        communicator = contribution.communicator
        if not communicator.entered(contribution.shared):
            contribution.shared.note(contribution.me)
        request = self.request = contribution.request = KernelRequest()
        engine = rank.engine
        if engine.listeners.collective_entered is not None:
            engine.listeners.notify("collective_entered", contribution, rank)
        if contribution.alone():
            request.complete(engine.now)
            return
        schedule, context, me = schedule_of(
            communicator, contribution.me, contribution.scheduled, contribution.number
        )
        if contribution.context is not None:
            context = contribution.context
        follower = Follower(main, request)
        tag = tag_of(abs(contribution.number), contribution.label)
        if schedule is UNDECIDED:
            pieces = decided(communicator, contribution.call, context, me, tag)
            schedule = next(pieces)

            def resume() -> None:
                following = next(pieces, None)
                if following is None:
                    request.complete(engine.now)
                else:
                    follower.prepare(following, context, me, tag)
                    follower.launch()

            follower.resume = resume
        follower.prepare(schedule, context, me, tag)
        led = follower.led_by(main)
        if led is not None:
            main.wait([led])

    def fill(self, status: Status | None) -> int:
        """Take the data, the first time; describe the call in `status`."""
        if not self.finished:
            self.finished = True
            contribution = self.contribution
            if contribution.communicator.revoked:
                self.error = contribution.interrupted()
            else:
                self.error = contribution.finish()
            listeners = self.rank.engine.listeners
            if listeners.collective_left is not None:
                listeners.notify("collective_left", contribution, self.rank)
        if status is not None:
            status._fill(ANY_SOURCE, ANY_TAG, 0)
            status.error = self.error
        return self.error

    def error_detail(self, error: int) -> str:
        """The message of the error."""
        return self.contribution.detail_of(error)


class PersistentCollective(CollectiveOperation):
    """A collective call that is started again and again (MPI 4.1, section 6.13).

    Different ranks may start their persistent calls in different orders: each call has its own
    context and numbers, negative so that they match no other call.
    """

    __slots__ = ("template", "identity", "origin", "starts")

    persistent = True

    def __init__(self, rank: Rank, subject: object, contribution: Contribution) -> None:
        super().__init__(rank, subject, contribution)
        communicator = contribution.communicator
        self.identity = communicator.next_call(contribution.me)
        self.origin = called()  # the name and the line of the call that made it
        contribution.context = _private_context(communicator, self.identity)
        self.template = contribution
        self.starts = 0

    def start(self) -> None:
        """Begin once more."""
        self.starts += 1
        contribution = self.template.again()
        contribution.number = -(self.identity << 32 | self.starts)
        self.begin(contribution)

    def release(self) -> None:
        """The rank will not start the call again; the last rank ends its context."""
        contexts = _private_contexts(self.template.communicator)
        entry = contexts[self.identity]
        entry.holders -= 1
        if entry.holders == 0:
            del contexts[self.identity]


def _private_contexts(communicator: Communicator) -> dict[int, PrivateContext]:
    """The contexts of persistent calls by identity."""
    return PERSISTENT.of(joint(communicator)[2] if communicator.inter else communicator)


def _private_context(communicator: Communicator, identity: int) -> Context:
    """A context for one persistent call, the same for all its ranks."""
    contexts = _private_contexts(communicator)
    entry = contexts.get(identity)
    if entry is None:
        shared = joint(communicator)[0] if communicator.inter else communicator.coll
        context = Context(communicator.universe.next_context(), shared.members)
        communicator.universe.purposes[context.number] = communicator
        entry = contexts[identity] = PrivateContext(context, len(shared.members))
    return entry.context
