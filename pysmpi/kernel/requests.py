"""Requests: the sends and receives that a process starts and waits for."""

from typing import TYPE_CHECKING, Any, Final, Optional

from pysmpi.kernel.plan import Plan

if TYPE_CHECKING:
    from pysmpi.kernel.listeners import Listeners
    from pysmpi.kernel.matching import Mailbox
    from pysmpi.kernel.process import Process

STANDARD: Final = 0  # completes as the protocol requires
SYNCHRONOUS: Final = 1  # completes once matched and transferred
BUFFERED: Final = 2  # completes at once


class Request:
    """An operation that a process starts and that completes at a date.

    `payload` belongs to the layer that moves data; the kernel only passes it on.
    """

    def __init__(self) -> None:
        self.done: bool = False
        self.date: float = 0.0  # (s) of completion
        self.start_cost: float = 0.0  # seconds of the process before it is posted
        self.finish_cost: float = 0.0  # seconds of the process once it waits for it
        self.waiter: Optional[Process] = None
        self.payload: Any = None
        self.listeners: Optional[Listeners] = None  # notified of the end, if the start was reported
        self.order: int = 0  # of posting, over the whole simulation
        self.next: Optional[Request] = None
        self.last: Optional[Request] = None

    def post(self, process: "Process") -> None:
        """Post the request; called after its start cost is paid."""

    def expect(self, process: "Process") -> None:
        """Compute `start_cost`; called when the posting process is known."""

    def complete(self, now: float) -> None:
        """Mark as complete and notify the waiting process."""
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
    """A set of processes that exchange messages only among themselves.

    `members[i]` is the process of rank i. Requests of a rank in `closed` are complete at once,
    without a message: a schedule that it executes ends.
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
        """The mailbox of the envelope, if it exists."""
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
        self.unexpected: bool = False  # there is no matching receive yet
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
        """Get the sender's cost of the message from the transport."""
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
        engine = process.engine
        engine.post_send(self)
        if self.unexpected and self.detached and self.payload is not None:
            if engine.keep is not None:
                if process.calling:
                    process.lend(self)
                else:
                    engine.keep(self)


class Transfer(Send):
    """Bytes between two members of a context without a receive: one-sided communication.

    The transfer starts when it is posted; either of the two may post it. `landed(transfer)` is
    called after the last byte has arrived.
    """

    def __init__(
        self, context: Context, source: int, destination: int, nbytes: int, landed: Any
    ) -> None:
        super().__init__(context, source, destination, 0, nbytes)
        self.eager = True
        self.landed: Any = landed

    def expect(self, process: "Process") -> None:
        """Get the plan from the transport; the posting process pays for a non-blocking send."""
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
