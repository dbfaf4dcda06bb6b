"""The data that each rank gets from a reduction.

Contributions are combined in the order of ranks, once for all ranks. The first rank that is done
and finds that all have entered combines them, before any rank may change its buffer.

This module is compiled: every reduction passes through it.
"""

from __future__ import annotations

from typing import Any

from pysmpi.collectives.order import Order
from pysmpi.mpi.base.constants import ERR_INTERN, ERR_TRUNCATE, SUCCESS
from pysmpi.mpi.base.ranks import Rank
from pysmpi.mpi.buffers.contiguous import whole
from pysmpi.mpi.buffers.payload import PAYLOAD, snapshot
from pysmpi.mpi.buffers.spellings import MessageRegion
from pysmpi.mpi.collective.contribution import Contribution
from pysmpi.mpi.collective.moving import packed, saved, transfer
from pysmpi.mpi.collective.order import Evaluation, by_algorithm, order_for
from pysmpi.mpi.collective.schedules import ScheduledCall
from pysmpi.mpi.datatypes.records import Type
from pysmpi.mpi.groups.communicator import CollectiveState, Communicator
from pysmpi.mpi.operators.arithmetic import Operator, prefixes, reduce

# Bytes of running results that exist at a time.
CHUNK = 1 << 24
# Bytes of a contribution of which a copy takes less memory than a view.
FEW = 128
# Ranks from which on memory matters more than the time to make a view again.
MANY = 4096


class Combining(Contribution):
    """A call in which ranks combine their contributions; a user's function takes its time."""

    __slots__ = ("operator",)

    def __init__(
        self,
        rank: Rank,
        communicator: Communicator,
        me: int,
        scheduled: ScheduledCall,
        operator: Operator,
    ) -> None:
        super().__init__(rank, communicator, me, scheduled)
        self.operator = operator

    def finish(self) -> int:
        error = super().finish()
        meter = self.operator.meter
        rank = self.rank
        if meter is not None and rank.timer is not None:
            meter.charge(rank.process, self.reduced())
        return error


class Reduction(Combining):
    """Reduce, Allreduce and the forms of Reduce_scatter.

    `message` is the rank's contribution, or None: `count` elements of the datatype `record`.
    `target` receives the bytes from `start` to `stop` of the result, or is None. It is a message,
    or while a rank of many waits, the array whose memory that is.
    """

    __slots__ = ("count", "message", "record", "start", "stop", "target")

    def __init__(
        self,
        rank: Rank,
        communicator: Communicator,
        me: int,
        scheduled: ScheduledCall,
        operator: Operator,
        message: object,
        target: object,
        count: int,
        record: Type,
        stop: int,
        start: int = 0,
    ) -> None:
        super().__init__(rank, communicator, me, scheduled, operator)
        self.message = message
        self.target = target
        self.count = count
        self.record = record
        self.start = start
        self.stop = stop

    def again(self) -> Contribution:
        """The contribution to the next start of a persistent call."""
        contribution = Reduction(
            self.rank, self.communicator, self.me, self.scheduled, self.operator, self.message,
            self.target, self.count, self.record, self.stop, self.start,
        )  # fmt: skip
        return self._as_before(contribution)

    def settle(self) -> None:
        """Copy a few bytes, and do without views: both take less memory."""
        message = self.message
        if message.__class__ is MessageRegion and not PAYLOAD.active:
            region: MessageRegion = message
            if region.nbytes <= FEW:
                self.message = region.snapshot()
                many = len(self.communicator.universe.ranks) >= MANY
                target = self.target
                if many and isinstance(target, MessageRegion):
                    owner = target.owner()
                    if owner is not None:
                        self.target = owner

    def combined(self, shared: CollectiveState) -> tuple[int, Any]:
        """The combined contributions of one group, after an error class.

        In the order of an algorithm, a result for each rank; else a result for all.
        """
        outcome: tuple[int, object] | None = shared.result
        if outcome is None:
            contributions: dict[int, Reduction] = shared.values
            streams = [packed(contributions[rank].message) for rank in range(len(contributions))]
            nbytes = len(streams[0])
            if any(len(stream) != nbytes for stream in streams):
                outcome = (ERR_TRUNCATE, b"")
            else:
                order = order_for(self.communicator, self.call, self.operator, self.record)
                result: Any
                if order is None:
                    result = reduce(self.operator, streams, self.count, self.record)
                else:
                    trees = Evaluation(order, self.operator, streams, self.record)
                    result = [trees.of_rank(rank) for rank in range(len(streams))]
                outcome = (SUCCESS, result)
            shared.result = outcome
        return outcome

    def collect(self) -> None:
        """Copy the result, or a part of it."""
        buffer = self.target
        target = buffer if buffer is None or isinstance(buffer, MessageRegion) else whole(buffer)
        if target is None or self.stop == self.start or (PAYLOAD.active and self._stays(target)):
            return
        other = self.other
        if other.result is None and len(other.values) < self.communicator.remote.size:
            self.error = ERR_INTERN
            return
        error, result = other.result or self.combined(other)
        if error:
            self.error = error
        elif result.__class__ is list:
            self.error = transfer(result[self.me], target)
        elif len(result) == self.stop - self.start == target.nbytes:
            target.unpack(result)
        else:
            self.error = transfer(memoryview(result)[self.start : self.stop], target)

    def _stays(self, buffer: object) -> bool:
        """Whether no rank's buffer changes."""
        message = self.message
        if self.count * self.record.layout.size > PAYLOAD.most:
            return True
        return (
            message.__class__ is MessageRegion
            and PAYLOAD.folded(message)
            and PAYLOAD.folded(buffer)
        )

    def release(self) -> None:
        """Combine if all have entered, else save a copy."""
        shared = self.shared
        message = self.message
        if shared.result is not None:
            # No rank needs this contribution any more: it is freed before all have left.
            shared.values[self.me] = None
            return
        if message is None:
            return
        if PAYLOAD.active and self._stays(message):
            return
        if len(shared.values) == self.communicator.size:
            self.combined(shared)
        else:
            self.message = saved(self.message)


class Prefix(Combining):
    """Scan and Exscan: rank r gets the result of ranks 0 to r, or r - 1.

    The first rank that is done combines for all consecutive ranks that have entered, and delivers
    their results.
    """

    __slots__ = ("exclusive", "copy", "message", "record", "target")

    def __init__(
        self,
        rank: Rank,
        communicator: Communicator,
        me: int,
        scheduled: ScheduledCall,
        operator: Operator,
        message: MessageRegion,
        target: MessageRegion,
        exclusive: bool,
        record: Type,
    ) -> None:
        super().__init__(rank, communicator, me, scheduled, operator)
        self.message = message
        self.record = record
        self.target = target
        self.exclusive = exclusive
        self.copy: object = None

    def again(self) -> Contribution:
        """The contribution to the next start of a persistent call."""
        contribution = Prefix(
            self.rank, self.communicator, self.me, self.scheduled, self.operator, self.message,
            self.target, self.exclusive, self.record,
        )  # fmt: skip
        return self._as_before(contribution)

    def begin(self) -> None:
        """In the order of an algorithm each rank combines separately, so its inputs are kept."""
        self.copy = None
        if by_algorithm(self.communicator):
            self.copy = snapshot(self.message)
        super().begin()

    def combine_as_algorithm(self, order: Order) -> None:
        """The result of this rank in the order of its algorithm."""
        contributions = self.shared.values
        streams = []
        for rank in range(self.me + (not self.exclusive)):
            if rank not in contributions:
                self.error = ERR_INTERN
                return
            streams.append(packed(contributions[rank].copy))
        if any(len(stream) != self.message.nbytes for stream in streams):
            self.error = ERR_TRUNCATE
        elif streams:
            trees = Evaluation(order, self.operator, streams, self.record)
            self.store(trees.of_rank(self.me))

    def collect(self) -> None:
        """Combine at least up to this rank, and further if possible."""
        shared = self.shared
        message = self.message
        nbytes = message.nbytes
        if nbytes == 0 or nbytes > PAYLOAD.most:
            return
        order = order_for(self.communicator, self.call, self.operator, self.record)
        if order is not None:
            self.combine_as_algorithm(order)
            return
        following: int = 0
        last: bytes | None = None  # the latest running result
        if shared.result is not None:
            following, last = shared.result
        most = max(1, CHUNK // nbytes)
        contributions = shared.values
        while following <= self.me:
            chunk: list[Prefix] = []
            while len(chunk) < most and following + len(chunk) in contributions:
                chunk.append(contributions[following + len(chunk)])
            if not chunk:
                self.error = ERR_INTERN
                return
            streams = [contribution.message.pack() for contribution in chunk]
            if any(len(stream) != nbytes for stream in streams):
                self.error = ERR_TRUNCATE
                return
            if last is not None:
                streams.insert(0, last)
            results = prefixes(self.operator, streams, message.count, self.record)
            before = [last, *results] if last is None else results
            for contribution, inclusive, exclusive in zip(chunk, results[-len(chunk) :], before):
                contribution.collected = True
                contribution.store(exclusive if contribution.exclusive else inclusive)
            last = results[-1]
            following += len(chunk)
            shared.result = (following, last)

    def store(self, result: bytes | None) -> None:
        """Copy the result; rank 0 of Exscan has none."""
        if result is not None:
            self.error = transfer(result, self.target)
