"""The data that each rank gets from a collective call: all operations that only move data.

Data is copied directly from the sender's buffer to the receiver's buffer if both ranks are in the
call at the same time. A rank that leaves before others have its data copies it to the ranks that
have entered, or saves a copy. A gather of small blocks uses one joined copy, because one large copy
is cheaper than many small ones.

This module is compiled: every collective call passes through it.
"""

from __future__ import annotations

from itertools import accumulate
from typing import Any

from pysmpi.mpi.base.constants import ERR_INTERN
from pysmpi.mpi.base.ranks import Rank
from pysmpi.mpi.buffers.payload import PAYLOAD
from pysmpi.mpi.buffers.spellings import Blocks, MessageRegion, place
from pysmpi.mpi.collective.contribution import Contribution
from pysmpi.mpi.collective.moving import copied, packed, saved, transfer
from pysmpi.mpi.collective.schedules import ScheduledCall
from pysmpi.mpi.groups.communicator import Communicator

# Blocks up to this many bytes are joined before they are stored.
JOINED = 16384
_NOTHING: list[object] = []
_NO_COPIES: dict[int, object] = {}
# Replaces the contributions of all ranks if they are folded, so that no rank needs them.
FOLDED: object = ("folded",)


def _folded(source: object) -> bool:
    """Whether a rank's contribution is in memory that all ranks share."""
    return source.__class__ is MessageRegion and PAYLOAD.folded(source)


def merged(blocks: Blocks) -> MessageRegion | None:
    """All blocks as one message, if they are in order without gaps."""
    counts = blocks.counts
    if blocks.types is not None or not len(counts):
        return None
    offsets = blocks.offsets
    if is_equal(blocks):
        total = counts[0] * len(counts)
    else:
        total = sum(counts)
        extent = blocks.datatype._live().layout.extent
        starts = accumulate((n * extent for n in counts[:-1]), initial=offsets[0])
        if list(starts) != list(offsets):
            return None
    return place(blocks.obj, blocks._memory, offsets[0], total, blocks.datatype, blocks.writable)


def is_equal(blocks: Blocks) -> bool:
    """Whether the blocks are equal and consecutive, for operations with this property."""
    return blocks.offsets.__class__ is range


class Broadcast(Contribution):
    """The root's message goes to all other ranks."""

    __slots__ = ("message", "sends")

    def __init__(
        self,
        rank: Rank,
        communicator: Communicator,
        me: int,
        scheduled: ScheduledCall,
        message: Any,
        sends: bool,
    ) -> None:
        super().__init__(rank, communicator, me, scheduled)
        self.message = message
        self.sends = sends

    def again(self) -> Contribution:
        """The contribution to the next start of a persistent call."""
        return self._as_before(
            Broadcast(
                self.rank, self.communicator, self.me, self.scheduled, self.message, self.sends
            )
        )

    def collect(self) -> None:
        """Copy the root's message."""
        if self.sends or self.call.root < 0 or self.message.nbytes == 0:
            return
        origin: Broadcast | None = self.values.get(self.call.root)
        self.error = ERR_INTERN if origin is None else transfer(origin.message, self.message)

    def release(self) -> None:
        """Deliver to all, or save a copy for ranks that have not entered."""
        if self.sends and self.message.nbytes:
            if self.complete():
                contribution: Contribution
                for contribution in self.values.values():
                    contribution.deliver()
            else:
                self.message = saved(self.message)


class Gather(Contribution):
    """Every rank's message goes to a block of the root."""

    __slots__ = ("blocks", "delivered", "message")

    def __init__(
        self,
        rank: Rank,
        communicator: Communicator,
        me: int,
        scheduled: ScheduledCall,
        message: Any,
        blocks: Blocks | None,
    ) -> None:
        super().__init__(rank, communicator, me, scheduled)
        self.message = message
        self.blocks = blocks  # at the root
        self.delivered = False

    def again(self) -> Contribution:
        """The contribution to the next start of a persistent call."""
        return self._as_before(
            Gather(self.rank, self.communicator, self.me, self.scheduled, self.message, self.blocks)
        )

    def collect(self) -> None:
        """At the root: take the blocks that have not been delivered."""
        blocks = self.blocks
        if blocks is None:
            return
        contributions: dict[int, Gather] = self.values
        fresh = True
        for contribution in contributions.values():
            if contribution.delivered:
                fresh = False
                break
        small = self.call.nbytes <= JOINED and not PAYLOAD.active
        if fresh and small and self.complete() and self._join(blocks):
            return
        for rank, contribution in contributions.items():
            self.take(rank, contribution)

    def _join(self, blocks: Blocks) -> bool:
        """Store all blocks in one copy; False if they do not fit this form."""
        contributions: dict[int, Gather] = self.values
        sent: list[Any] = [contributions[rank].message for rank in range(len(contributions))]
        sizes: list[int] = [m.nbytes if isinstance(m, MessageRegion) else len(m) for m in sent]
        if sizes != blocks.sizes():
            return False
        whole = merged(blocks)
        if whole is None:
            return False
        whole.unpack(b"".join([packed(message) for message in sent]))
        return True

    def take(self, rank: int, contribution: Gather) -> None:
        """At the root: take the block of one rank."""
        blocks, message = self.blocks, contribution.message
        if not contribution.delivered and blocks is not None:
            contribution.delivered = True
            whole = message.data if message.__class__ is MessageRegion else None
            if not copied(whole, blocks.view(rank)):
                self.error = transfer(message, blocks.block(rank)) or self.error

    def release(self) -> None:
        """Deliver a large block if the root has entered, else save a copy."""
        if self.blocks is not None or self.delivered or self.call.root < 0:
            return
        root: Gather | None = self.values.get(self.call.root)
        if root is not None and self.message.nbytes > JOINED:
            root.take(self.me, self)
        else:
            self.message = saved(self.message)


class Scatter(Contribution):
    """Every block of the root goes to a rank's message."""

    __slots__ = ("blocks", "copies", "message")

    def __init__(
        self,
        rank: Rank,
        communicator: Communicator,
        me: int,
        scheduled: ScheduledCall,
        blocks: Blocks | None,
        message: MessageRegion | None,
    ) -> None:
        super().__init__(rank, communicator, me, scheduled)
        self.blocks = blocks  # at the root
        self.message = message
        self.copies: dict[int, object] = _NO_COPIES

    def again(self) -> Contribution:
        """The contribution to the next start of a persistent call."""
        return self._as_before(
            Scatter(
                self.rank, self.communicator, self.me, self.scheduled, self.blocks, self.message
            )
        )

    def collect(self) -> None:
        """Copy the own block."""
        message = self.message
        if message is None or self.call.root < 0:
            return
        if message.nbytes == 0 and self.call.root not in self.values:
            return  # some algorithms send no empty blocks
        origin: Scatter | None = self.source(self.call.root)
        if origin is not None:
            block = origin.copies.get(self.me)
            if block is None:
                blocks = origin.blocks
                assert blocks is not None
                if copied(blocks.view(self.me), message.data):
                    return
                block = blocks.block(self.me)
            self.error = transfer(block, message)

    def release(self) -> None:
        """Deliver to the ranks that have entered, leave copies for the others."""
        blocks = self.blocks
        if blocks is None:
            return
        contributions = self.values
        copies: dict[int, object] = {}
        for rank in range(len(blocks.counts)):
            contribution: Contribution | None = contributions.get(rank)
            if contribution is None:
                copies[rank] = saved(blocks.block(rank))
            else:
                contribution.deliver()
        self.copies = copies


class Allgather(Contribution):
    """Every rank's message goes to a block of every rank.

    The first rank that is done joins all contributions, for all ranks; no rank has left by then.
    The data of `exempt` is always copied.
    """

    __slots__ = ("blocks", "exempt", "message")

    def __init__(
        self,
        rank: Rank,
        communicator: Communicator,
        me: int,
        scheduled: ScheduledCall,
        message: object,
        blocks: Blocks,
    ) -> None:
        super().__init__(rank, communicator, me, scheduled)
        self.message = message
        self.blocks = blocks
        self.exempt = False

    def again(self) -> Contribution:
        """The contribution to the next start of a persistent call."""
        return self._as_before(
            Allgather(
                self.rank, self.communicator, self.me, self.scheduled, self.message, self.blocks
            )
        )

    def collect(self) -> None:
        """Take all blocks."""
        blocks = self.blocks
        if PAYLOAD.active and not self.exempt and self._stays():
            return
        if not self.complete():
            # Ranks without data may not have entered.
            for rank, nbytes in enumerate(blocks.sizes()):
                if nbytes:
                    contribution: Allgather | None = self.source(rank)
                    if contribution is not None:
                        error = transfer(contribution.message, blocks.block(rank))
                        self.error = error or self.error
            return
        other = self.other
        if other.result is None or other.result is FOLDED:
            contributions: dict[int, Allgather] = self.values
            sent = [packed(contributions[rank].message) for rank in range(len(contributions))]
            sizes = [len(data) for data in sent]
            equal = sizes[0] if sizes.count(sizes[0]) == len(sizes) else -1
            other.result = (sizes, equal, b"".join(sent))
        sizes, equal, joined = other.result
        if blocks.nbytes == equal if is_equal(blocks) else blocks.sizes() == sizes:
            whole = merged(blocks)
            if whole is not None:
                whole.unpack(joined)
                return
        at = 0
        for rank, nbytes in enumerate(sizes):
            data = memoryview(joined)[at : at + nbytes]
            self.error = transfer(data, blocks.block(rank)) or self.error
            at += nbytes

    def _stays(self) -> bool:
        """Whether all data stays where it is."""
        blocks = self.blocks
        if all(nbytes > PAYLOAD.most for nbytes in set(blocks.sizes())):
            return True
        if not self.complete() or not PAYLOAD.folded(blocks):
            return False
        result = self.other.result
        if result is None and all(_folded(each.message) for each in self.values.values()):
            result = self.other.result = FOLDED
        return result is FOLDED

    def release(self) -> None:
        """Leave a copy, unless it is in the joined one."""
        if self.shared.result is None:
            self.message = saved(self.message)


class Alltoall(Contribution):
    """Block j of rank i goes to block i of rank j."""

    __slots__ = ("folded", "incoming", "copies", "outgoing")

    def __init__(
        self,
        rank: Rank,
        communicator: Communicator,
        me: int,
        scheduled: ScheduledCall,
        outgoing: Blocks | None,
        incoming: Blocks,
    ) -> None:
        super().__init__(rank, communicator, me, scheduled)
        self.outgoing = outgoing  # None: in place
        self.incoming = incoming
        self.copies: list[object] | None = None
        self.folded = False  # its contribution

    def again(self) -> Contribution:
        """The contribution to the next start of a persistent call."""
        return self._as_before(
            Alltoall(
                self.rank, self.communicator, self.me, self.scheduled, self.outgoing, self.incoming
            )
        )

    def begin(self) -> None:
        """In place, the contribution would be overwritten: save it."""
        outgoing = self.outgoing
        if outgoing is None:
            blocks = self.incoming
            self.copies = [saved(blocks.block(rank)) for rank in range(len(blocks))]
        else:
            self.copies = None
            self.folded = PAYLOAD.active and PAYLOAD.folded(outgoing)
        super().begin()

    def block_for(self, rank: int) -> object:
        """The data of this rank for another."""
        if self.copies is not None:
            return self.copies[rank]
        assert self.outgoing is not None
        return self.outgoing.block(rank)

    def view_for(self, rank: int) -> memoryview | None:
        """The data of this rank for another, if it is contiguous memory."""
        if self.copies is not None or self.outgoing is None:
            return None
        return self.outgoing.view(rank)

    def collect(self) -> None:
        """Take one block from each rank."""
        incoming, me = self.incoming, self.me
        if PAYLOAD.active and self._stays():
            return
        if self.complete() and self._join():
            return
        for rank in range(len(incoming)):
            if incoming.counts[rank]:
                contribution: Alltoall | None = self.source(rank)
                if contribution is not None and not copied(
                    contribution.view_for(me), incoming.view(rank)
                ):
                    block = incoming.block(rank)
                    self.error = transfer(contribution.block_for(me), block) or self.error

    def _stays(self) -> bool:
        """Whether all data stays where it is."""
        incoming = self.incoming
        sizes = set(incoming.sizes(1) if is_equal(incoming) else incoming.sizes())
        if all(nbytes > PAYLOAD.most for nbytes in sizes if nbytes):
            return True
        return (
            self.complete()
            and all(contribution.folded for contribution in self.values.values())
            and PAYLOAD.folded(incoming)
        )

    def _join(self) -> bool:
        """Receive all blocks in one copy if they are equal and small; False if they are not."""
        incoming = self.incoming
        if not is_equal(incoming):
            return False
        nbytes = incoming.nbytes
        if nbytes > JOINED:
            return False
        other = self.other
        if other.result is None:
            parts = [contribution.area() for _, contribution in sorted(self.values.items())]
            lengths = {-1 if area is None else len(area) for area in parts}
            other.result = (parts, lengths.pop() if len(lengths) == 1 else -1)
        areas, length = other.result
        if length != nbytes * len(self.shared.values):
            return False
        first = self.me * nbytes
        last = first + nbytes
        whole = merged(incoming)
        assert whole is not None
        whole.unpack(b"".join([area[first:last] for area in areas]))
        return True

    def area(self) -> object:
        """All blocks of this rank as contiguous memory, or None."""
        if self.copies is not None:
            return b"".join(map(packed, self.copies))
        assert self.outgoing is not None
        whole = merged(self.outgoing) if is_equal(self.outgoing) else None
        return None if whole is None else whole.pack()

    def release(self) -> None:
        """Deliver to the ranks that have entered, leave copies for the others."""
        if self.copies is not None or self.folded:
            return
        contributions = self.values
        contribution: Alltoall
        if self.complete():
            # No rank needs the contributions after this.
            for contribution in contributions.values():
                contribution.deliver()
            for contribution in self.shared.values.values():
                contribution.copies = _NOTHING
            return
        copies: list[object] = []
        for rank in range(self.communicator.remote.size):
            other: Alltoall | None = contributions.get(rank)
            if other is not None and other.collected:
                copies.append(b"")
            else:
                copies.append(saved(self.block_for(rank)))
        self.copies = copies
