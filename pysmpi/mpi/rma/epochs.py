"""Synchronisation of one-sided communication (MPI 4.1, section 12.5).

In the active forms, origin and target both take part: a fence is two barriers, with the wait for
all accesses in between; Post, Start, Complete and Wait exchange empty messages. In the passive form
the origin alone takes a lock, whose queue is in `windowlocks`: as in SMPI, a request for a lock
only costs the wait for its turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from pysmpi.kernel.requests import BUFFERED, Receive, Send
from pysmpi.mpi.base.constants import (
    ERR_ASSERT,
    ERR_GROUP,
    ERR_LOCKTYPE,
    ERR_RMA_SYNC,
    LOCK_EXCLUSIVE,
    LOCK_SHARED,
    MODE_NOCHECK,
    MODE_NOPRECEDE,
    MODE_NOPUT,
    MODE_NOSTORE,
    MODE_NOSUCCEED,
    PROC_NULL,
)
from pysmpi.mpi.base.exceptions import cint, fail
from pysmpi.mpi.base.handles import wrong_type
from pysmpi.mpi.base.ranks import Rank, current
from pysmpi.mpi.calls import mpi
from pysmpi.mpi.groups.groups import Group
from pysmpi.mpi.point_to_point.polling import poll
from pysmpi.mpi.rma.locks import ALL, LockClaim
from pysmpi.mpi.rma.window import Exposure, RemoteAccess, WindowSide

# Tags of the empty messages that open and end exposure epochs.
POSTED, COMPLETED = 1, 2


class Synchronization:
    """The synchronisation methods of a window."""

    __slots__ = ()

    if TYPE_CHECKING:
        # The object of a window handle.
        def _live(self) -> WindowSide: ...

    # Fence.

    @mpi.one_sided("12.5.1")
    def Fence(self, assertion: int = 0) -> None:
        """Perform an MPI fence synchronization on a window."""
        modes = MODE_NOSTORE | MODE_NOPUT | MODE_NOPRECEDE | MODE_NOSUCCEED
        given = self._assertion(assertion, modes)
        side = self._live()
        if side.lock_all is not None or side.locks:
            fail(ERR_RMA_SYNC, "Fence while the process holds a lock of the window", self)
        if side.started is not None or side.exposure is not None:
            fail(ERR_RMA_SYNC, "Fence inside of an epoch of Start or Post", self)
        if given & MODE_NOPRECEDE and side.used:
            fail(ERR_RMA_SYNC, "MODE_NOPRECEDE, but there are accesses before this Fence", self)
        rank = current()
        if not given & MODE_NOPRECEDE:
            side.barrier(rank)
            fetching = [access for access in _outgoing(side) if access.returns]
            reached = [access for access in side.incoming if not access.returns]
            side.complete_accesses(rank, [*reached, *fetching])
            side.settled(rank, (side.me,), reached=True)
        side.barrier(rank)
        if side.fenced:
            _tell("epoch_closed", side, rank, "fence", range(side.window.communicator.size))
        side.fenced = not given & MODE_NOSUCCEED
        if side.fenced:
            _tell("epoch_opened", side, rank, "fence", range(side.window.communicator.size))
        side.used = False

    # Post, Start, Complete, Wait.

    @mpi.one_sided("12.5.2")
    def Start(self, group: Group, assertion: int = 0) -> None:
        """Start an RMA access epoch for MPI."""
        side = self._live()
        targets = self._ranks(side, group)
        given = self._assertion(assertion, MODE_NOCHECK)
        side.idle(self, "Start")
        context = side.window.communicator.p2p
        receives: list[Any] = []
        if not given:
            receives = [Receive(context, t, side.me, POSTED, 0) for t in targets if t != side.me]
        rank = current()
        rank.process.exchange(receives, receives)
        side.started = frozenset(targets)
        side.fenced = False
        _tell("epoch_opened", side, rank, "start", targets)

    @mpi.one_sided("12.5.2")
    def Complete(self) -> None:
        """Complete an RMA operation begun after an `Start`."""
        side = self._live()
        targets = side.started
        if targets is None:
            fail(ERR_RMA_SYNC, "Complete without Start", self)
        rank = current()
        process = rank.process
        _settle_locally(rank, side, [a for t in targets for a in side.outgoing.get(t, ())])
        ends: list[Any] = [_signal(side, t, COMPLETED) for t in sorted(targets) if t != side.me]
        process.exchange(ends, ends)
        side.started = None
        _tell("epoch_closed", side, rank, "start", sorted(targets))

    @mpi.one_sided("12.5.2")
    def Post(self, group: Group, assertion: int = 0) -> None:
        """Start an RMA exposure epoch."""
        side = self._live()
        origins = self._ranks(side, group)
        given = self._assertion(assertion, MODE_NOCHECK | MODE_NOSTORE | MODE_NOPUT)
        if side.exposure is not None:
            fail(ERR_RMA_SYNC, "Post, but the epoch of an earlier Post has not ended", self)
        context = side.window.communicator.p2p
        others = [origin for origin in origins if origin != side.me]
        receives: list[Any] = [Receive(context, o, side.me, COMPLETED, 0) for o in others]
        signals: list[Any] = []
        if not given & MODE_NOCHECK:
            signals = [_signal(side, origin, POSTED) for origin in others]
        rank = current()
        rank.process.exchange(receives + signals, signals)
        side.exposure = Exposure(frozenset(origins), receives)
        _tell("epoch_opened", side, rank, "post", origins)

    @mpi.one_sided("12.5.2")
    def Wait(self) -> Literal[True]:
        """Complete an RMA exposure epoch begun with `Post`."""
        side, exposure = self._exposure("Wait")
        rank = current()
        rank.process.wait(exposure.receives)
        side.complete_accesses(rank, _accesses_of(side, exposure))
        side.settled(rank, (side.me,), reached=True)
        side.exposure = None
        _tell("epoch_closed", side, rank, "post", sorted(exposure.origins))
        return True

    @mpi.one_sided("12.5.2")
    def Test(self) -> bool:
        """Test whether an RMA exposure epoch has completed."""
        side, exposure = self._exposure("Test")
        rank = current()
        process = rank.process

        def done() -> bool:
            ends = all(end.done for end in exposure.receives)
            return ends and not _accesses_of(side, exposure)

        over = poll(rank, done)
        if over:
            rank.polls = 0
            process.wait(exposure.receives)
            side.complete_accesses(rank, ())
            side.settled(rank, (side.me,), reached=True)
            side.exposure = None
            _tell("epoch_closed", side, rank, "post", sorted(exposure.origins))
        return over

    # Locks.

    @mpi.one_sided("12.5.3")
    def Lock(self, rank: int, lock_type: int = LOCK_EXCLUSIVE, assertion: int = 0) -> None:
        """Begin an RMA access epoch at the target process."""
        target, kind = cint(rank), cint(lock_type)
        side = self._live()
        if kind not in (LOCK_EXCLUSIVE, LOCK_SHARED):
            fail(ERR_LOCKTYPE, f"lock_type is {kind}, expected LOCK_EXCLUSIVE or LOCK_SHARED", self)
        given = self._assertion(assertion, MODE_NOCHECK)
        if target == PROC_NULL:
            return
        side.target(self, target)
        if side.passive(target):
            fail(ERR_RMA_SYNC, f"the process holds a lock on rank {target} already", self)
        if not side.locks:
            side.idle(self, "Lock")
        side.locks[target] = self._claim(side, target, kind == LOCK_EXCLUSIVE, given)
        side.fenced = False
        _tell("epoch_opened", side, current(), "lock", (target,))

    @mpi.one_sided("12.5.3")
    def Unlock(self, rank: int) -> None:
        """Complete an RMA access epoch at the target process."""
        target = cint(rank)
        side = self._live()
        if target == PROC_NULL:
            return
        side.target(self, target)
        if target not in side.locks:
            fail(ERR_RMA_SYNC, f"the process holds no lock on rank {target}", self)
        process = current()
        _flush(process, side, (target,))
        claim = side.locks.pop(target)
        if claim is not None:
            side.window.locks.release(claim, process.engine.now)
        _tell("epoch_closed", side, process, "lock", (target,))

    @mpi.one_sided("12.5.3")
    def Lock_all(self, assertion: int = 0) -> None:
        """Begin an RMA access epoch at all processes."""
        side = self._live()
        given = self._assertion(assertion, MODE_NOCHECK)
        side.idle(self, "Lock_all")
        side.lock_all = (self._claim(side, ALL, False, given),)
        side.fenced = False
        _tell("epoch_opened", side, current(), "lock_all", range(side.window.communicator.size))

    @mpi.one_sided("12.5.3")
    def Unlock_all(self) -> None:
        """Complete an RMA access epoch at all processes."""
        side = self._live()
        if side.lock_all is None:
            fail(ERR_RMA_SYNC, "Unlock_all without Lock_all", self)
        rank = current()
        _flush(rank, side, range(side.window.communicator.size))
        (claim,) = side.lock_all
        side.lock_all = None
        if claim is not None:
            side.window.locks.release(claim, rank.engine.now)
        _tell("epoch_closed", side, rank, "lock_all", range(side.window.communicator.size))

    # Flush and Sync.

    @mpi.one_sided("12.5.4")
    def Flush(self, rank: int) -> None:
        """Complete all outstanding RMA operations at a target."""
        found = self._flushed(rank)
        if found is not None:
            side, target = found
            process = current()
            _flush(process, side, (target,))

    @mpi.one_sided("12.5.4")
    def Flush_all(self) -> None:
        """Complete all outstanding RMA operations at all targets."""
        side = self._locked("Flush_all")
        rank = current()
        _flush(rank, side, range(side.window.communicator.size))

    @mpi.one_sided("12.5.4")
    def Flush_local(self, rank: int) -> None:
        """Complete locally all outstanding RMA operations at a target."""
        found = self._flushed(rank)
        if found is not None:
            side, target = found
            process = current()
            if not _settle_locally(process, side, list(side.outgoing.get(target, ()))):
                side.pass_time(process)

    @mpi.one_sided("12.5.4")
    def Flush_local_all(self) -> None:
        """Complete locally all outstanding RMA operations at all targets."""
        side = self._locked("Flush_local_all")
        rank = current()
        if not _settle_locally(rank, side, _outgoing(side)):
            side.pass_time(rank)

    @mpi.one_sided("12.5.4")
    def Sync(self) -> None:
        """Synchronize public and private copies of the window."""
        side = self._live()
        rank = current()
        side.pass_time(rank)

    # Common to all calls.

    def _assertion(self, assertion: int, modes: int) -> int:
        given = cint(assertion)
        if given & ~modes:
            fail(ERR_ASSERT, f"assertion is {given}, which this call does not know", self)
        return given

    def _ranks(self, side: WindowSide, group: object) -> list[int]:
        """The ranks in the window of the processes of a group."""
        if not isinstance(group, Group):
            raise wrong_type("group", Group, group)
        communicator = side.window.communicator
        ranks = []
        for pid in group._live().members:
            if pid not in communicator.group:
                fail(ERR_GROUP, f"process {pid} of the group is not in the window", self)
            ranks.append(communicator.rank_of(pid))
        return ranks

    def _exposure(self, call: str) -> tuple[WindowSide, Exposure]:
        side = self._live()
        if side.exposure is None:
            fail(ERR_RMA_SYNC, f"{call} without Post", self)
        return side, side.exposure

    def _claim(
        self, side: WindowSide, target: int, exclusive: bool, given: int
    ) -> LockClaim | None:
        """Wait for the turn and take a lock; with MODE_NOCHECK there is none."""
        if given & MODE_NOCHECK:
            return None
        rank = current()
        process = rank.process
        process.finish_compute()
        locks = side.window.locks
        control = rank.engine.control
        if control is not None:
            place = f"lock {control.label(side.window.communicator.p2p)}"
            control.turn(process, place, "", "", lambda: locks.grantable(target, exclusive))
        claim = locks.claim(side.me, target, exclusive, rank.engine.now)
        if not claim.request.done:
            try:
                process.wait([claim.request])
            except BaseException:
                locks.release(claim, rank.engine.now)
                raise
        return claim

    def _locked(self, call: str) -> WindowSide:
        side = self._live()
        if side.lock_all is None and not side.locks:
            fail(ERR_RMA_SYNC, f"{call} without a lock", self)
        return side

    def _flushed(self, rank: int) -> tuple[WindowSide, int] | None:
        """The target whose accesses a flush completes; None for no process."""
        target = cint(rank)
        side = self._live()
        if target == PROC_NULL:
            return None
        side.target(self, target)
        if not side.passive(target):
            fail(ERR_RMA_SYNC, f"the process holds no lock on rank {target}", self)
        return side, target


def _tell(event: str, side: WindowSide, rank: Rank, kind: str, peers: Sequence[int]) -> None:
    """Tell listeners of an epoch with some ranks of the window."""
    rank.engine.listeners.notify(event, side.window, rank, kind, tuple(peers))


def _outgoing(side: WindowSide) -> list[RemoteAccess]:
    """All accesses of a process that have not taken effect yet."""
    return [access for accesses in side.outgoing.values() for access in accesses]


def _accesses_of(side: WindowSide, exposure: Exposure) -> list[RemoteAccess]:
    """The accesses that the origins of an exposure epoch have under way to a process."""
    return [access for access in side.incoming if access.origin.me in exposure.origins]


def _signal(side: WindowSide, rank: int, tag: int) -> Send:
    """An empty message that does not block its sender."""
    signal = Send(side.window.communicator.p2p, side.me, rank, tag, 0, BUFFERED)
    signal.immediate = True
    return signal


def _flush(rank: Rank, side: WindowSide, targets: Sequence[int]) -> None:
    """Wait until accesses to targets have taken effect; let time pass in any case."""
    accesses = [one for target in targets for one in side.outgoing.get(target, ())]
    if not side.complete_accesses(rank, accesses):
        side.pass_time(rank)
    side.settled(rank, targets)


def _settle_locally(rank: Rank, side: WindowSide, accesses: Iterable[RemoteAccess]) -> bool:
    """Wait for returning data of accesses; save data that others still have to read."""
    fetching = []
    for access in accesses:
        if access.returns:
            fetching.append(access)
        else:
            access.keep()
    return side.complete_accesses(rank, fetching)
