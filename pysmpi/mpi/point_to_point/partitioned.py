"""Partitioned point-to-point communication (MPI 4.1, section 4.2), as a mixin of `Comm`.

A send and a receive that were initialized for each other share a `PartitionedChannel` for all their
starts. The number of messages is the greatest common divisor of the numbers of partitions on both
sides. A message leaves when the last of its partitions is ready, so no partition waits longer than
necessary, and both sides know the partitions of a message. Before both sides are initialized, no
message can leave, because the partitions of the other side are unknown; real libraries need a
handshake for that.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from math import gcd
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from pysmpi.kernel.matching import mailbox_at
from pysmpi.kernel.process import Process
from pysmpi.kernel.requests import Context, KernelRequest, Receive, Send
from pysmpi.mpi.base.constants import (
    ANY_SOURCE,
    ANY_TAG,
    ERR_ARG,
    ERR_PROC_FAILED,
    ERR_RANK,
    ERR_REQUEST,
    ERR_REVOKED,
    ERR_TAG,
    ERR_TRUNCATE,
    PROC_NULL,
    SUCCESS,
)
from pysmpi.mpi.base.exceptions import cint, fail
from pysmpi.mpi.base.info import INFO_NULL, Info, check_info
from pysmpi.mpi.base.ranks import Rank, current
from pysmpi.mpi.base.running import called
from pysmpi.mpi.base.state import StateSlot
from pysmpi.mpi.buffers.spellings import Blocks, held, partitioned
from pysmpi.mpi.calls import mpi
from pysmpi.mpi.datatypes.status import Status
from pysmpi.mpi.groups.communicator import Communicator, check_revoked
from pysmpi.mpi.point_to_point.operations import NoOperation, RequestOperation
from pysmpi.mpi.point_to_point.persistent_requests import Prequest
from pysmpi.mpi.point_to_point.polling import poll

if TYPE_CHECKING:
    from mpi4py.typing import BufSpec


class PartitionedChannel:
    """A partitioned send and receive that belong together."""

    __slots__ = ("context", "messages", "receiver", "sender", "source", "destination")

    def __init__(self, sender: PartitionedSend, receiver: PartitionedReceive) -> None:
        self.sender = sender
        self.receiver = receiver
        communicator = receiver.communicator
        self.context = Context(communicator.universe.next_context(), communicator.p2p.members)
        self.context.peer = communicator.p2p.peer
        communicator.universe.purposes[self.context.number] = communicator
        self.source = sender.me
        self.destination = receiver.me
        # If the sizes differ, only the whole can be compared.
        same = sender.nbytes == receiver.nbytes
        self.messages = gcd(sender.partitions, receiver.partitions) if same else 1


class Partitioned(RequestOperation):
    """One side of a partitioned communication.

    `pieces` are the kernel's requests of the messages of this start, if the other side is known.
    `peer` and `tag` identify the other side.
    """

    __slots__ = ("blocks", "channel", "communicator", "interrupted", "kept", "me", "nbytes",
                 "origin", "partitions", "peer", "pieces", "tag")  # fmt: skip

    persistent = True

    def __init__(
        self, rank: Rank, subject: object, communicator: Communicator, blocks: Blocks,
        partitions: int, peer: int, tag: int,
    ) -> None:  # fmt: skip
        super().__init__(rank, subject)
        self.communicator = communicator
        self.me = communicator.rank_of(rank.pid)
        self.blocks: Blocks | None = held(blocks)
        self.nbytes = sum(blocks.sizes())
        self.partitions = partitions
        self.peer = peer
        self.tag = tag
        self.channel: PartitionedChannel | None = None
        self.kept: Blocks | None = None  # the data, a block for each message
        self.pieces: list[Any] = []
        self.interrupted = False
        self.origin = called()  # the name and the line of the call that made it
        # A revocation of the communicator must find active operations.
        STARTED.of(communicator)[self] = None

    def start(self) -> None:
        """Begin once more."""
        self.rank.process.finish_compute()
        self.request = KernelRequest()
        self.pieces = []
        if self.channel is not None:
            self.arm(self.channel)

    def connect(self, channel: PartitionedChannel) -> None:
        """The other side is known."""
        self.channel = channel
        assert self.blocks is not None
        self.kept = self.blocks.joined(self.partitions // channel.messages)
        if self.request is not None:
            self.arm(channel)

    def arm(self, channel: PartitionedChannel) -> None:
        """Prepare the messages of this start; the operation completes with them."""
        assert self.kept is not None
        whole = self.request
        assert whole is not None
        self.pieces = [self.piece(channel, i) for i in range(channel.messages)]
        rank = self.rank
        rank.engine.listeners.notify("requests_joined", whole, self.pieces)
        main = rank.process
        follower = Process(rank.engine, rank.pid, main.slot, main.core)
        follower.purpose = whole
        follower.resume = lambda: whole.complete(rank.engine.now)
        follower.follow(self.pieces)

    def messages(self) -> list[object]:
        return [] if self.request is None else list(self.pieces)

    def interruption(self) -> int:
        """The error class of an operation that was ended from outside."""
        revoked = self.rank.pid in self.communicator.revoked
        return ERR_REVOKED if revoked else ERR_PROC_FAILED

    def interrupt(self) -> None:
        """The communicator is revoked, or the other side has failed: end the operation."""
        whole = self.request
        if whole is None or whole.done:
            return
        self.interrupted = True
        now = self.rank.engine.now
        for piece in self.pieces:
            box = mailbox_at(piece.context, piece.destination)
            if not piece.done and (box is None or box.cancel(piece)):
                piece.complete(now)
        whole.complete(now)

    def piece(self, channel: PartitionedChannel, i: int) -> Any:
        """The kernel's request of message i."""
        raise TypeError("a partitioned operation sends or receives")

    def message_of(self, partition: int) -> int:
        """The message that holds a partition."""
        assert self.channel is not None
        return partition * self.channel.messages // self.partitions

    def check(self, partition: int) -> None:
        """Refuse a partition that does not exist."""
        if not 0 <= partition < self.partitions:
            fail(
                ERR_ARG,
                f"partition is {partition}, expected 0 to {self.partitions - 1}",
                self.subject,
            )

    def ready(self, partitions: Sequence[int]) -> None:
        """The program has written partitions."""
        fail(ERR_REQUEST, "Pready on a request that does not send", self.subject)

    def arrived(self, partition: int) -> bool:
        """Whether a partition has arrived."""
        fail(ERR_REQUEST, "Parrived on a request that does not receive", self.subject)

    def release(self) -> None:
        """Remove an operation whose other side is not known; else let go of the memory.

        Both sides refer to each other, so they are freed much later.
        """
        if self.channel is None:
            _forget(self)
        elif self.request is None:
            self.blocks = self.kept = None
            self.pieces = []


# The partitioned operations of the ranks of a communicator, in the order of their calls: that of a
# set depends on their addresses.
STARTED: StateSlot[Communicator, WeakKeyDictionary[Partitioned, None]] = StateSlot(
    Communicator, WeakKeyDictionary
)


class PartitionedSend(Partitioned):
    """The sending side: `waiting[i]` counts the partitions that message i still waits for."""

    __slots__ = ("marked", "waiting")

    def start(self) -> None:
        self.marked: set[int] = set()
        super().start()

    def arm(self, channel: PartitionedChannel) -> None:
        self.waiting = [self.partitions // channel.messages] * channel.messages
        super().arm(channel)
        for partition in sorted(self.marked):
            self.count(partition)

    def piece(self, channel: PartitionedChannel, i: int) -> Send:
        assert self.kept is not None
        message = self.kept.block(i)
        send = Send(channel.context, channel.source, channel.destination, i, message.nbytes)
        send.immediate = True
        send.payload = message
        return send

    def ready(self, partitions: Sequence[int]) -> None:
        if self.communicator.revoked:
            check_revoked(self.subject, self.communicator)
        if self.request is None:
            fail(ERR_REQUEST, "Pready on a request that is not started", self.subject)
        fresh: set[int] = set()
        for partition in partitions:
            self.check(partition)
            if partition in self.marked or partition in fresh:
                fail(ERR_ARG, f"partition {partition} is ready already", self.subject)
            fresh.add(partition)
        for partition in partitions:
            self.marked.add(partition)
            if self.channel is not None:
                self.count(partition)

    def count(self, partition: int) -> None:
        """One more partition of a message is ready; the last one lets it go."""
        i = self.message_of(partition)
        self.waiting[i] -= 1
        if self.waiting[i] == 0:
            if current() is self.rank:
                self.rank.process.start(self.pieces[i])
            else:
                # The receiver is late, and the sender has continued.
                process, send = self.rank.process, self.pieces[i]
                send.expect(process)
                process.announce(send)
                send.post(process)

    def fill(self, status: Status | None) -> int:
        if status is not None:
            status._fill(ANY_SOURCE, ANY_TAG, 0)
        return self.interruption() if self.interrupted else SUCCESS


class PartitionedReceive(Partitioned):
    """The receiving side."""

    __slots__ = ()

    def piece(self, channel: PartitionedChannel, i: int) -> Receive:
        assert self.kept is not None
        message = self.kept.block(i)
        receive = Receive(channel.context, channel.source, channel.destination, i, message.nbytes)
        receive.payload = message
        self.rank.process.announce(receive)
        self.rank.engine.post_receive(receive)
        return receive

    def arrived(self, partition: int) -> bool:
        self.check(partition)
        if self.request is None:
            return True
        rank = self.rank
        result = poll(
            rank, lambda: bool(self.pieces) and self.pieces[self.message_of(partition)].done
        )
        if result:
            rank.polls = 0
        return result

    def fill(self, status: Status | None) -> int:
        error = ERR_TRUNCATE if any(piece.truncated for piece in self.pieces) else SUCCESS
        if self.interrupted:
            error = self.interruption()
        if status is not None:
            sent = self.nbytes
            if self.channel is not None:
                sent = min(sent, self.channel.sender.nbytes)
            status._fill(self.peer, self.tag, sent)
            status.error = error
        return error


class PartitionedNothing(NoOperation):
    """A partitioned message to or from PROC_NULL."""

    __slots__ = ("partitions",)

    def __init__(self, rank: Rank, subject: object, receives: bool, partitions: int) -> None:
        super().__init__(rank, subject, receives, persistent=True)
        self.partitions = partitions

    def ready(self, partitions: Sequence[int]) -> None:
        """There is no other side."""

    def arrived(self, partition: int) -> bool:
        """There is no data, so it has always arrived."""
        return True


class PartitionedCommunication:
    """The partitioned calls of a communicator."""

    __slots__ = ()

    @mpi.point_to_point("4.2.1")
    def Psend_init(
        self, buf: BufSpec, partitions: int, dest: int, tag: int = 0, info: Info = INFO_NULL
    ) -> Prequest:
        """Create request for a partitioned send operation."""
        return _init(self, buf, partitions, dest, tag, info, True)

    @mpi.point_to_point("4.2.1")
    def Precv_init(
        self,
        buf: BufSpec,
        partitions: int,
        source: int = ANY_SOURCE,
        tag: int = ANY_TAG,
        info: Info = INFO_NULL,
    ) -> Prequest:
        """Create request for a partitioned recv operation."""
        return _init(self, buf, partitions, source, tag, info, False)


def _init(
    comm: Any, buf: object, partitions: int, peer: int, tag: int, info: Info, sends: bool
) -> Prequest:
    rank = current()
    communicator = comm._usable()
    count, peer, tag = cint(partitions), cint(peer), cint(tag)
    check_info(info)
    if count <= 0:
        fail(ERR_ARG, f"partitions is {count}, expected at least 1", comm)
    blocks = partitioned(buf, not sends, peer, count)
    if peer != PROC_NULL and not 0 <= peer < communicator.remote.size:
        name, last = "dest" if sends else "source", communicator.remote.size - 1
        fail(
            ERR_RANK,
            f"{name} is {peer}, expected 0 to {last} or PROC_NULL: partitioned communication has "
            "no wildcards",
            comm,
        )
    if tag < 0 and peer != PROC_NULL:
        fail(ERR_TAG, f"tag is {tag}: partitioned communication has no wildcards", comm)
    operation: object
    if peer == PROC_NULL:
        operation = PartitionedNothing(rank, comm, not sends, count)
    else:
        side = PartitionedSend if sends else PartitionedReceive
        operation = side(rank, comm, communicator, blocks, count, peer, tag)
        _meet(operation)
    request: Any = Prequest._of(operation)
    request.ob_buf = blocks
    return request  # type: ignore[no-any-return]


# Operations without their other side are kept at the receiver's side of the communicator,
# by (source, destination, tag); all in one queue are of the same kind.
Queue = deque[Partitioned]
Envelope = tuple[int, int, int]
WAITING: StateSlot[Communicator, dict[Envelope, Queue]] = StateSlot(Communicator, dict)


def _queue(operation: Partitioned) -> tuple[dict[Envelope, Queue], Envelope]:
    communicator = operation.communicator
    if isinstance(operation, PartitionedSend):
        key = (operation.me, operation.peer, operation.tag)
        communicator = communicator.remote
    else:
        key = (operation.peer, operation.me, operation.tag)
    return WAITING.of(communicator), key


def _meet(operation: Partitioned) -> None:
    """Find the other side of an operation, in the order of initialization, or wait for it."""
    waiting, key = _queue(operation)
    queue = waiting.get(key)
    if queue is None or type(queue[0]) is type(operation):
        waiting.setdefault(key, deque()).append(operation)
        return
    other: object = queue.popleft()
    if not queue:
        del waiting[key]
    pair: Any = (other, operation) if isinstance(other, PartitionedSend) else (operation, other)
    channel = PartitionedChannel(*pair)
    for side in reversed(pair):
        side.connect(channel)


def _forget(operation: Partitioned) -> None:
    waiting, key = _queue(operation)
    queue = waiting.get(key)
    if queue is not None and operation in queue:
        queue.remove(operation)
        if not queue:
            del waiting[key]
