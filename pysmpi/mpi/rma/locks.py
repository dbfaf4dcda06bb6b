"""Locks of windows: their holders, and waiting ranks (MPI 4.1, section 12.5.3).

Each process of a window has a lock that one process holds exclusively or several processes share.
`Lock_all` is a shared lock on all of them at once. Requests are granted in order: a shared lock
does not overtake an earlier request for an exclusive one, so no process waits for ever.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from pysmpi.kernel.requests import KernelRequest

ALL = -1  # the target of a lock on every process


class LockClaim:
    """A lock that a process holds or waits for; `request` completes when it is granted."""

    __slots__ = ("locks", "origin", "target", "exclusive", "order", "request")

    def __init__(self, locks: Locks, origin: int, target: int, exclusive: bool, order: int) -> None:
        self.locks = locks
        self.origin = origin
        self.target = target
        self.exclusive = exclusive
        self.order = order
        self.request = KernelRequest()
        self.request.payload = self

    def grant(self, now: float) -> None:
        """Resume the process with the lock."""
        self.request.payload = None
        self.request.complete(now)


class Queue:
    """The lock of one process: its current holders, and the claims in their order."""

    __slots__ = ("holders", "exclusive", "waiting")

    def __init__(self) -> None:
        self.holders: dict[int, LockClaim] = {}
        self.exclusive = False
        self.waiting: deque[LockClaim] = deque()


class Locks:
    """The locks of all processes of a window; `group` holds their pids."""

    __slots__ = (
        "group", "queues", "queued", "everywhere", "waiting", "exclusives", "patient", "order"
    )  # fmt: skip

    def __init__(self, group: Sequence[int]) -> None:
        self.group = group
        self.queues: dict[int, Queue] = {}
        self.queued: dict[int, None] = {}  # targets with waiting claims
        self.everywhere: dict[int, LockClaim] = {}  # holders of a lock on all
        self.waiting: deque[LockClaim] = deque()  # claims for a lock on all
        self.exclusives = 0  # locks that are held exclusively
        self.patient: dict[int, None] = {}  # orders of the exclusive claims that wait
        self.order = 0

    def claim(self, origin: int, target: int, exclusive: bool, now: float) -> LockClaim:
        """Request a lock; `target` may be `ALL`. It may be granted at once, at date `now` (s)."""
        self.order += 1
        claim = LockClaim(self, origin, target, exclusive, self.order)
        if target == ALL:
            self.waiting.append(claim)
            self._serve_all(now)
        else:
            queue = self.queues.get(target)
            if queue is None:
                queue = self.queues[target] = Queue()
            queue.waiting.append(claim)
            self.queued[target] = None
            if exclusive:
                self.patient[claim.order] = None
            self._serve(target, now)
        return claim

    def grantable(self, target: int, exclusive: bool) -> bool:
        """Whether a claim would be granted at once, waiting claims aside."""
        if target == ALL:
            return self.exclusives == 0
        queue = self.queues.get(target)
        if queue is not None and (queue.exclusive or exclusive and queue.holders):
            return False
        return not (exclusive and self.everywhere)

    def release(self, claim: LockClaim, now: float) -> None:
        """Give back a lock, or stop waiting for it."""
        if claim.target == ALL:
            if claim.request.done:
                del self.everywhere[claim.origin]
            else:
                self.waiting.remove(claim)
            for target in list(self.queued):
                self._serve(target, now)
        else:
            queue = self.queues[claim.target]
            if claim.request.done:
                del queue.holders[claim.origin]
                if claim.exclusive:
                    queue.exclusive = False
                    self.exclusives -= 1
            else:
                queue.waiting.remove(claim)
                self.patient.pop(claim.order, None)
            self._serve(claim.target, now)
        self._serve_all(now)

    def ahead(self, claim: LockClaim) -> list[int]:
        """The ranks for which a claim waits: current holders, and earlier claims."""
        result: dict[int, None] = {}
        queues = self.queues if claim.target == ALL else [claim.target]
        for target in queues:
            queue = self.queues[target]
            for other in (*queue.holders.values(), *queue.waiting):
                first = other.request.done or other.order < claim.order
                if first and (other.exclusive or claim.exclusive):
                    result[other.origin] = None
        if claim.exclusive:
            for other in (*self.everywhere.values(), *self.waiting):
                if other.request.done or other.order < claim.order:
                    result[other.origin] = None
        return sorted(result)

    def _serve(self, target: int, now: float) -> None:
        """Grant the possible claims of one process, in order."""
        queue = self.queues[target]
        while queue.waiting:
            claim = queue.waiting[0]
            if queue.exclusive or claim.exclusive and not self._free(queue, claim):
                return
            queue.waiting.popleft()
            queue.holders[claim.origin] = claim
            if claim.exclusive:
                queue.exclusive = True
                self.exclusives += 1
                del self.patient[claim.order]
            claim.grant(now)
        self.queued.pop(target, None)
        if not queue.holders:
            del self.queues[target]

    def _free(self, queue: Queue, claim: LockClaim) -> bool:
        """Whether the lock of a process is free, without earlier claims."""
        if queue.holders or self.everywhere:
            return False
        return not self.waiting or self.waiting[0].order > claim.order

    def _serve_all(self, now: float) -> None:
        """Grant locks on all processes, unless an exclusive one is held or was claimed earlier."""
        while self.waiting and self.exclusives == 0:
            claim = self.waiting[0]
            if self.patient and next(iter(self.patient)) < claim.order:
                return
            self.waiting.popleft()
            self.everywhere[claim.origin] = claim
            claim.grant(now)
