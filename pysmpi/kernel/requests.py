"""Requests: the sends and receives that a process starts and waits for."""

from typing import TYPE_CHECKING, Any, Final, Optional

from pysmpi.kernel.plan import Plan

if TYPE_CHECKING:
    from pysmpi.kernel.listeners import Listeners
    from pysmpi.kernel.matching import Mailbox
    from pysmpi.kernel.process import Process

STANDARD: Final = 0  # completes as the protocol asks
SYNCHRONOUS: Final = 1  # completes once matched and transferred
BUFFERED: Final = 2  # completes at once


class Request:
    """Something that a process starts and that completes at a date.

    `payload` belongs to whoever moves data; the kernel only hands it on.
    """

    def __init__(self) -> None:
        self.done: bool = False
        self.date: float = 0.0  # (s) of completion
        self.start_cost: float = 0.0  # seconds of the process before it is posted
        self.finish_cost: float = 0.0  # seconds of the process once it waits for it
        self.waiter: Optional[Process] = None
        self.payload: Any = None
        self.listeners: Optional[Listeners] = None  # told of the end, if somebody heard the start
        self.order: int = 0  # of posting, over the whole simulation
        self.next: Optional[Request] = None
        self.last: Optional[Request] = None

    def post(self, process: "Process") -> None:
        """Make the request known; called once its start cost is paid."""

    def expect(self, process: "Process") -> None:
        """Work out `start_cost`; called when the process that will post it is known."""

    def complete(self, now: float) -> None:
        """Mark as complete and tell the process that waits."""
        self.done = True
        self.date = now
        if self.listeners is not None:
            tell = self.listeners.request_completed
            self.listeners = None
            if tell is not None:
                for method in tell:
                    method(self, now)
        waiter = self.waiter
        if waiter is not None:
            self.waiter = None
            waiter.notify(self)


class Context:
    """A set of processes that exchange messages among themselves and with nobody else.

    `members[i]` is the process that messages to rank i go to. What a rank in `closed` starts is
    complete at once, without a message: a schedule that it executes comes to its end.
    """

    def __init__(self, number: int, members: "list[Process]") -> None:
        self.number: int = number
        self.members: list[Process] = members
        self.mailboxes: dict[int, Mailbox] = {}
        self.closed: Optional[set[int]] = None


class Envelope(Request):
    """A send or a receive; `source` and `destination` are ranks in the context."""

    def __init__(
        self, context: Context, source: int, destination: int, tag: int, nbytes: int
    ) -> None:
        super().__init__()
        self.context: Context = context
        self.source: int = source
        self.destination: int = destination
        self.tag: int = tag
        self.nbytes: int = nbytes

    def mailbox(self) -> "Mailbox | None":
        """Where the envelope is matched, if anything ever was."""
        return self.context.mailboxes.get(self.destination)


class Send(Envelope):
    """A message on its way."""

    def __init__(
        self,
        context: Context,
        source: int,
        destination: int,
        tag: int,
        nbytes: int,
        mode: int = STANDARD,
    ) -> None:
        super().__init__(context, source, destination, tag, nbytes)
        self.mode: int = mode
        self.plan: Optional[Plan] = None
        self.unexpected: bool = False  # no receive was there for it, and none is yet
        self.visible: float = 0.0  # (s) wildcards and probes see it from then on
        self.awaited: bool = False  # whether the engine will announce it then
        self.detached: bool = False
        self.eager: bool = False
        self.flowing: bool = False
        self.arrived: bool = False
        self.receive: Optional[Receive] = None
        self.arrival: Optional[Request] = None  # completes once the message is transferred
        self.immediate: bool = False  # started by a non-blocking call: pays ois, not os

    def expect(self, process: "Process") -> None:
        """Ask the transport what the message costs its sender."""
        engine = process.engine
        peer = self.context.members[self.destination]
        plan = engine.book.plan(process.slot, peer.slot, self.nbytes)
        self.plan = plan
        self.detached = self.mode == BUFFERED or (self.mode == STANDARD and plan.detached)
        self.eager = plan.eager and self.mode != SYNCHRONOUS
        if self.immediate:
            self.start_cost = plan.isend_cost
        elif self.detached or self.mode == SYNCHRONOUS or plan.gap is not None:
            self.start_cost = plan.send_cost
        if plan.pricing is not None:
            plan.pricing.sending(self)

    def post(self, process: "Process") -> None:
        """Offer the message to its destination."""
        process.engine.post_send(self)


class Transfer(Send):
    """Bytes that go between two members of a context without a receive: one-sided communication.

    It flows as soon as it is posted, and either of the two may post it. `landed(transfer)` is
    called once the last byte is there.
    """

    def __init__(
        self, context: Context, source: int, destination: int, nbytes: int, landed: Any
    ) -> None:
        super().__init__(context, source, destination, 0, nbytes)
        self.eager = True
        self.landed: Any = landed

    def expect(self, process: "Process") -> None:
        """Ask the transport for the plan; whoever posts pays for a non-blocking send."""
        book = process.engine.book
        members = self.context.members
        sender = members[self.source]
        receiver = members[self.destination]
        plan = book.plan(sender.slot, receiver.slot, self.nbytes)
        self.plan = plan
        if sender.slot != process.slot:
            plan = book.plan(process.slot, sender.slot, self.nbytes)
        self.start_cost = plan.isend_cost
        if plan.pricing is not None:
            plan.pricing.moving(self)

    def post(self, process: "Process") -> None:
        """Let the bytes flow."""
        process.engine.post_transfer(self)

    def complete(self, now: float) -> None:
        """The last byte is there."""
        super().complete(now)
        landed = self.landed
        self.landed = None
        landed(self)


class Receive(Envelope):
    """A posted receive; `source` and `tag` may be `ANY`. `nbytes` is its capacity.

    Once matched, `message` is the send that it took.
    """

    def __init__(
        self, context: Context, source: int, destination: int, tag: int, nbytes: int
    ) -> None:
        super().__init__(context, source, destination, tag, nbytes)
        self.message: Optional[Send] = None
        self.truncated: bool = False

    def post(self, process: "Process") -> None:
        """Let the receive take a message."""
        process.engine.post_receive(self)
