"""Revocation, agreement and shrinking (MPI 5.0's user-level failure mitigation), as a mixin of
`Comm`.

`Revoke` travels from rank to rank along a binomial tree. At its arrival, the rank's operations on
the communicator end with ERR_REVOKED. Agreements and shrinking still work then, over separate
contexts; if ranks can fail (`Universe.tolerant`), they are agreements of those that live.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial, reduce
from operator import and_
from typing import TYPE_CHECKING, Any

from pysmpi import text
from pysmpi.kernel.process import Process
from pysmpi.kernel.requests import AbstractProcess, Context
from pysmpi.kernel.schedule import Schedule
from pysmpi.mpi.base import errhandlers
from pysmpi.mpi.base.constants import (
    ANY_SOURCE,
    ANY_TAG,
    ERR_PROC_FAILED,
    ERR_UNSUPPORTED_OPERATION,
    SUCCESS,
)
from pysmpi.mpi.base.exceptions import cint, fail
from pysmpi.mpi.base.exporting import acquire
from pysmpi.mpi.base.ranks import Rank, Universe, current
from pysmpi.mpi.base.state import StateSlot
from pysmpi.mpi.calls import mpi
from pysmpi.mpi.communicators import failures
from pysmpi.mpi.communicators.failures import Agreement
from pysmpi.mpi.communicators.members import twin
from pysmpi.mpi.datatypes.status import Status
from pysmpi.mpi.groups.agreement import agree, agree_later, share_later
from pysmpi.mpi.groups.communicator import Communicator, connect, new_communicator
from pysmpi.mpi.groups.groups import EMPTY, Group, Members
from pysmpi.mpi.groups.handle_types import CommHandle as Comm
from pysmpi.mpi.point_to_point.operations import RequestOperation
from pysmpi.mpi.point_to_point.partitioned import STARTED
from pysmpi.mpi.point_to_point.requests import Request as RequestHandle

if TYPE_CHECKING:
    from mpi4py.typing import Buffer

NOTICE_BYTES = 8  # of the notice that a communicator is revoked
FLAG_BYTES = 4  # of the integer that ranks agree on
CONTEXT_BYTES = 8  # bytes of messages to agree on a new communicator


class FaultTolerance:
    """The calls of a communicator that survive its revocation."""

    __slots__ = ()

    _communicator: Any
    _plain: Any

    @mpi.collective()
    def Revoke(self) -> None:
        """Revoke a communicator."""
        rank = current()
        communicator: Communicator = self._communicator()
        process = rank.process
        process.finish_compute()
        revoke(rank, communicator)

    @mpi.local()
    def Is_revoked(self) -> bool:
        """Indicate whether the communicator has been revoked."""
        return current().pid in self._communicator().revoked

    @mpi.local()
    def Get_failed(self) -> Group:
        """Extract the group of failed processes."""
        pids = failures.failed(self._communicator())
        return Group._with(Members.of(pids) if pids else EMPTY)

    @mpi.collective()
    def Ack_failed(self, num_to_ack: int | None = None) -> int:
        """Acknowledge failures on a communicator."""
        number = None if num_to_ack is None else cint(num_to_ack)
        return failures.acknowledge(current(), self._communicator(), number)

    @mpi.collective()
    def Agree(self, flag: int) -> int:
        """Blocking agreement."""
        rank = current()
        communicator = self._communicator()
        value = cint(flag)
        if communicator.universe.tolerant:
            own = value, failures.acknowledged(communicator, rank.pid)
            make = partial(_agreed, communicator)
            found, request = failures.meet(rank, communicator, "agree", own, make)
            rank.process.wait([request])
            return self._agreed_flag(found)
        communicator = shadow(communicator)
        agreement = agree(rank, communicator, "comm_agree", (rank.pid, value), FLAG_BYTES, _both)
        return _seen(communicator, agreement)

    @mpi.collective()
    def Iagree(self, flag: Buffer) -> RequestHandle:
        """Nonblocking agreement."""
        rank = current()
        whole = self._communicator()
        memory = acquire(flag, True).memory
        if memory.nbytes != FLAG_BYTES:
            raise ValueError("flag: expecting int buffer of length one")
        cell = memory.cast("B").cast("i")
        if whole.universe.tolerant:
            own = cell[0], failures.acknowledged(whole, rank.pid)
            found, waited = failures.meet(rank, whole, "agree", own, partial(_agreed, whole))
            later = _LaterAgreement(rank, self, found, cell)
            later.request = waited
            return _kept(later, memory)
        communicator = shadow(whole)

        def done(made: Any) -> None:
            cell[0] = _seen(communicator, made)

        operation = RequestOperation(rank, self)
        operation.request = agree_later(
            rank, communicator, "comm_agree", (rank.pid, cell[0]), FLAG_BYTES, _both, done
        )
        return _kept(operation, memory)

    def _agreed_flag(self, found: Agreement) -> int:
        """The flag of an agreement; an error if a rank has not acknowledged a failure."""
        flag, unknown = found.result
        if unknown:
            fail(ERR_PROC_FAILED, _unknown(unknown), self)
        return int(flag)

    @mpi.collective()
    def Shrink(self) -> Comm:
        """Shrink a communicator to remove all failed processes."""
        rank = current()
        communicator = self._communicator()
        if communicator.universe.tolerant:
            make = partial(_living, communicator)
            found, request = failures.meet(rank, communicator, "shrink", None, make)
            rank.process.wait([request])
            return self._survivors(rank, found.result)
        communicator = shadow(communicator)
        agreement = agree(
            rank,
            communicator,
            "comm_shrink",
            None,
            CONTEXT_BYTES,
            lambda *values: twin(communicator),
        )
        return self._survivors(rank, agreement)

    @mpi.collective()
    def Ishrink(self) -> tuple[Comm, RequestHandle]:
        """Nonblocking shrink a communicator to remove all failed processes."""
        rank = current()
        communicator = self._communicator()
        if communicator.universe.tolerant:
            fail(ERR_UNSUPPORTED_OPERATION, "with --on-failure continue, use Shrink", self)
        communicator = shadow(communicator)
        made, request = share_later(
            rank, communicator, "comm_shrink", CONTEXT_BYTES, lambda: twin(communicator)
        )
        operation = RequestOperation(rank, self)
        operation.request = request
        return self._survivors(rank, made), RequestHandle._of(operation)

    def _survivors(self, rank: Rank, made: tuple[Communicator, Communicator]) -> Comm:
        new: Comm = self._plain()._of(made[0] if rank.pid in made[0].group else made[1])
        errhandlers.inherit(self, new)  # type: ignore[arg-type]
        return new


class _LaterAgreement(RequestOperation):
    """A non-blocking agreement of the living members."""

    def __init__(self, rank: Rank, subject: object, found: Agreement, cell: Any) -> None:
        super().__init__(rank, subject)
        self.found = found
        self.cell = cell

    def fill(self, status: Status | None) -> int:
        """Take the result."""
        self.cell[0], unknown = self.found.result
        if status is not None:
            status._fill(ANY_SOURCE, ANY_TAG, 0)
        return ERR_PROC_FAILED if unknown else SUCCESS


def _kept(operation: RequestOperation, memory: object) -> RequestHandle:
    request: Any = RequestHandle._of(operation)
    request.ob_buf = memory
    return request  # type: ignore[no-any-return]


def _agreed(
    communicator: Communicator, values: dict[int, tuple[int, int]]
) -> tuple[int, list[int]]:
    """The flags of all combined, and the failures that not all of them have acknowledged."""
    flag = reduce(and_, (value for value, _ in values.values()))
    least = min(count for _, count in values.values())
    return flag, failures.failed(communicator)[least:]


def _living(
    communicator: Communicator, values: Mapping[int, object]
) -> tuple[Communicator, Communicator]:
    """Both sides of a new communicator of the members that live."""
    sides = [
        new_communicator(communicator.universe, [pid for pid in side.group if pid in values])
        for side in dict.fromkeys((communicator, communicator.remote))
    ]
    if communicator.inter:
        connect(*sides)
    return sides[0], sides[-1]


def _unknown(pids: list[int]) -> str:
    return f"a rank has not acknowledged the failure of {text.ranks(sorted(pids))} (of the world)"


class Revocation:
    """The state of a communicator for its revocation.

    `shadow` is a communicator of the same processes that cannot be revoked; `told` is true if the
    notices have been sent.
    """

    __slots__ = ("shadow", "told")

    def __init__(self) -> None:
        self.shadow: Communicator | None = None
        self.told = False


REVOCATION = StateSlot(Communicator, Revocation)


def shadow(communicator: Communicator) -> Communicator:
    """A communicator of the same processes that cannot be revoked."""
    kept = REVOCATION.of(communicator)
    if kept.shadow is None:
        kept.shadow, other = twin(communicator)
        if communicator.inter:
            REVOCATION.of(communicator.remote).shadow = other
    return kept.shadow


Flags = dict[int, tuple[int, int]]  # rank -> its pid and its flag


def _both(*groups: Flags) -> list[tuple[int, int]]:
    """(the pid of a member, the flags of all combined) of one group, or of two."""
    result = []
    for values in groups:
        pid = values[0][0]
        result.append((pid, reduce(and_, (flag for _, flag in values.values()))))
    return result


def _seen(communicator: Communicator, made: list[tuple[int, int]]) -> int:
    """The result for a rank: the remote group's flags, if there is one."""
    if communicator.inter:
        made = [entry for entry in made if entry[0] not in communicator.group]
    return made[0][1]


# Revocation.


def revoke(rank: Rank, communicator: Communicator) -> None:
    """Notify all members that a communicator is revoked; the calling rank knows it at once.

    Only the first rank that revokes it sends notices.
    """
    pids = (
        [*communicator.group, *communicator.remote.group]
        if communicator.inter
        else list(communicator.group)
    )
    me = communicator.rank_of(rank.pid)
    if rank.pid in communicator.revoked:
        return
    if not REVOCATION.of(communicator).told:
        REVOCATION.of(communicator).told = REVOCATION.of(communicator.remote).told = True
        universe = communicator.universe
        members: list[AbstractProcess] = [universe.processes[pid] for pid in pids]
        notices = Context(universe.next_context(), members)
        universe.purposes[notices.number] = communicator
        for i in range(len(pids)):
            _notify(universe, communicator, pids, notices, (me + i) % len(pids), me)
    learn(communicator, rank.pid)


def _notify(
    universe: Universe,
    communicator: Communicator,
    pids: list[int],
    notices: Context,
    member: int,
    root: int,
) -> None:
    """Make a member wait for the notice, forward it and process it."""
    size = len(pids)
    place = (member - root) % size
    schedule = Schedule()
    # In a binomial tree the parent of a place is the place without its highest bit.
    if place:
        parent = place - (1 << place.bit_length() - 1)
        schedule.recv((parent + root) % size, NOTICE_BYTES)
    child = 1 << place.bit_length()
    while place + child < size:
        schedule.isend((place + child + root) % size, NOTICE_BYTES)
        child *= 2
    pid = pids[member]
    main = universe.processes[pid]
    messenger = Process(universe.engine, pid, main.slot, main.core)
    messenger.resume = lambda: learn(communicator, pid)
    messenger.prepare(schedule, notices, member, 0)
    messenger.launch()


def learn(communicator: Communicator, pid: int) -> None:
    """A member gets the notice of a revocation: its waits on the communicator end."""
    side = communicator if pid in communicator.group else communicator.remote
    if pid in side.revoked:
        return
    if not side.revoked:
        side.revoked = set()
    side.revoked.add(pid)
    # Calls no longer use the short path to their rank, which checks nothing.
    side.first = side.p2p.first = -1
    me = side.group.rank_of(pid)
    now = communicator.universe.engine.now
    failures.withdraw(side.p2p, me, None, now)
    failures.withdraw(side.remote.p2p, None, me, now)
    for operation in list(STARTED.of(side)):
        if operation.rank.pid == pid:
            operation.interrupt()
    for context, place in failures.collective_contexts(side, me):
        if context.closed is None:
            context.closed = set()
        context.closed.add(place)
        failures.withdraw(context, place, place, now)
