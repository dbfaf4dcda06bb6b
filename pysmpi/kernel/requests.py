"""Requests: the sends and receives that a process starts and waits for.

Requests call their process and its engine, and both hold requests. `AbstractProcess` and
`AbstractEngine` declare the attributes and methods that requests and processes use of each other.
They are classes, not protocols, because compiled code reads attributes of classes directly.
"""

from typing import Any, Final, Optional

from mypy_extensions import mypyc_attr

from pysmpi.kernel.events import INFINITY, Event, EventQueue
from pysmpi.kernel.listeners import Listeners
from pysmpi.kernel.meter import Meter
from pysmpi.kernel.plan import AbstractPricing, Plan, PlanBook, Transport
from pysmpi.kernel.sharing import System

STANDARD: Final = 0  # completes as the protocol requires
SYNCHRONOUS: Final = 1  # completes once matched and transferred
BUFFERED: Final = 2  # completes at once


class KernelRequest:
    """An operation that a process starts and that completes at a time.

    `payload` belongs to the layer that moves data. The kernel only passes it on.
    """

    def __init__(self) -> None:
        self.done: bool = False
        self.time: float = 0.0  # time (s) of the completion; for envelopes, before, of the posting
        self.start_cost: float = 0.0  # seconds that the process is busy before it posts the request
        self.finish_cost: float = 0.0  # seconds that the process is busy after the completion
        self.waiter: Optional[AbstractProcess] = None
        self.payload: Any = None
        self.listeners: Optional[Listeners] = None  # set if the start was reported: report the end
        self.order: int = 0  # number of the posting, over the whole simulation
        self.next: Optional[KernelRequest] = None  # the next in a list of a mailbox
        self.last: Optional[KernelRequest] = None  # in the first of a chain: its last

    def post(self, process: "AbstractProcess") -> None:
        """Post the request; the process has paid its start cost."""

    def expect(self, process: "AbstractProcess") -> None:
        """Compute `start_cost`; called when the posting process is known."""

    def complete(self, now: float) -> None:
        """Mark as complete and notify the waiting process."""
        self.done = True
        self.time = now
        if self.listeners is not None:
            methods = self.listeners.request_completed
            self.listeners = None
            if methods is not None:
                for method in methods:
                    method(self, now)
        waiter = self.waiter
        if waiter is not None:
            self.waiter = None
            waiter.notify(self)


class AbstractProcess(Event):
    """The part of `kernel.process.Process` that requests and choices use."""

    def __init__(self, engine: "AbstractEngine", pid: int, slot: int) -> None:
        self.engine: AbstractEngine = engine
        self.pid: int = pid
        self.slot: int = slot
        self.all: bool = True  # whether it waits for all of its requests, or for one
        # Whether its program is in a call, so the buffers of its messages cannot change.
        self.calling: bool = False
        # The mailbox of the latest message to this process, and its context: the next message is
        # often of the same context.
        self.box: Optional[AbstractMailbox] = None
        self.boxed: Optional[Context] = None
        # The plan of its latest message, with the book, the slot of the destination and the size:
        # the next message often has the same.
        self.plan: Optional[Plan] = None
        self.plan_book: Optional[PlanBook] = None
        self.plan_slot: int = -1
        self.plan_bytes: int = -1

    def plan_to(self, context: "Context", destination: int, nbytes: int) -> Plan:
        """The plan of a message of `nbytes` to a rank of a context."""
        slot = context.members[destination].slot
        book = self.engine.book
        plan = self.plan
        if (
            plan is None
            or slot != self.plan_slot
            or nbytes != self.plan_bytes
            or book is not self.plan_book
        ):
            plan = book.plan(self.slot, slot, nbytes)
            self.plan = plan if plan.turns is None else None
            self.plan_book = book
            self.plan_slot = slot
            self.plan_bytes = nbytes
        return plan

    def notify(self, request: KernelRequest) -> None:
        """A request that the process waits for is complete."""
        raise RuntimeError("a process must define what a completion does")

    def lend(self, send: "Send") -> None:
        """Save the data of an unmatched message when the running call ends, not before."""
        raise RuntimeError("a process must define how it saves messages")

    def finish_compute(self) -> None:
        """Let the compute pass that the process still owes."""
        raise RuntimeError("a process must define how it computes")

    def wait(self, requests: "list[KernelRequest]") -> None:
        """Wait until all requests are complete, and pay their finish costs."""
        raise RuntimeError("a process must define how it waits")

    def run(self) -> None:
        """Continue; called by the engine when the process is ready."""
        raise RuntimeError("a process must define how it continues")


class AbstractEngine:
    """The part of `kernel.engine.Engine` that requests, processes and choices use."""

    def __init__(self, transport: Transport, slots: int) -> None:
        self.queue: EventQueue = EventQueue()
        self.system: System = System(self.queue, slots)
        self.book: PlanBook = PlanBook(transport, slots)
        # The processes that run at this instant, in their order; None for those that have run.
        self.ready: list[Optional[AbstractProcess]] = []
        self.current: Optional[AbstractProcess] = None
        self.order: int = 0
        self.reduce_rate: float = INFINITY  # bytes/s
        self.copy_rate: float = INFINITY  # bytes/s
        self.keep: Any = None
        self.awake: Any = None  # called in a process that continues after it was suspended
        self.controlled: bool = False  # whether the engine has a control
        self.listeners: Listeners = Listeners()
        self.meter: Optional[Meter] = None  # notified of the part of the simulation that works

    @property
    def now(self) -> float:
        """The simulated time (s)."""
        return self.queue.now

    @now.setter
    def now(self, time: float) -> None:
        self.queue.now = time

    def stop(self) -> None:
        """Have `run` return before anything else happens."""
        raise RuntimeError("an engine must stop")

    def quiet_until(self, time: float) -> bool:
        """Whether no other process can have an event before or at `time` (s)."""
        raise RuntimeError("an engine must know its next event")

    def only_timeouts(self) -> bool:
        """Whether the next events only end waits that may also end before."""
        raise RuntimeError("an engine must know its next event")

    def alarm(self, time: float) -> KernelRequest:
        """Return a request that completes at `time` (s)."""
        raise RuntimeError("an engine must complete requests at times")

    def waited(self, process: AbstractProcess, requests: "list[KernelRequest]") -> None:
        """A process has learnt that some requests are complete; called if `controlled`."""
        raise RuntimeError("an engine must tell its control of waits")

    def join(self, send: "Send", receive: "Receive") -> None:
        """Give an unexpected message to a receive."""
        raise RuntimeError("an engine must match messages")

    def post_send(self, send: "Send") -> None:
        """Offer a message; start its flow when the protocol lets it start."""
        raise RuntimeError("an engine must carry messages")

    def post_transfer(self, transfer: "Transfer") -> None:
        """Start a transfer of bytes that needs no receive."""
        raise RuntimeError("an engine must carry messages")

    def post_receive(self, receive: "Receive") -> None:
        """Match a receive with a message, now or when one arrives."""
        raise RuntimeError("an engine must match messages")


class AbstractMailbox:
    """The part of `kernel.matching.Mailbox` that contexts use."""


class Context:
    """A set of processes that exchange messages only among themselves.

    `members[i]` is the process of rank i. Requests of a rank in `closed` are complete at once,
    without a message: a schedule that it executes ends.
    """

    def __init__(self, number: int, members: "list[AbstractProcess]") -> None:
        self.number: int = number
        self.members: list[AbstractProcess] = members
        # By rank; the list is empty before the first message.
        self.mailboxes: list[Optional[AbstractMailbox]] = []
        self.first: int = -1  # the pid of rank 0 if the pids of the members are consecutive
        # For an intercommunicator, the context of the remote group: its members send the messages
        # that arrive here.
        self.peer: Optional[Context] = None
        self.closed: Optional[set[int]] = None
        self.lost: Optional[Losses] = None  # set if `closed` is


class Losses:
    """The failed processes of a context.

    `destinations` and `sources` are their ranks, as messages name them. A receive from any source
    ends with an error at the ranks of `wary`, which have not acknowledged all failures.
    """

    def __init__(self) -> None:
        self.destinations: set[int] = set()
        self.sources: set[int] = set()
        self.wary: set[int] = set()


class Envelope(KernelRequest):
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


class Send(Envelope):
    """A message: a send, and its transfer."""

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
        self.unexpected: bool = False  # whether it waits in a mailbox for its receive
        self.visible: float = 0.0  # time (s) from which wildcards and probes see it
        self.awaited: bool = False  # whether the engine announces it at this time
        self.detached: bool = False  # whether its sender continues at once
        self.eager: bool = False  # whether its transfer starts before its receive
        self.flowing: bool = False  # whether its transfer has started
        self.arrived: bool = False  # whether its transfer has ended
        self.receive: Optional[Receive] = None
        self.arrival: Optional[KernelRequest] = None  # completes when the transfer ends
        self.immediate: bool = False  # started by a non-blocking call: pays ois, not os

    def sender(self) -> "AbstractProcess":
        """The process that has sent it; in an intercommunicator, of the remote group."""
        context = self.context.peer
        if context is None:
            context = self.context
        return context.members[self.source]

    def expect(self, process: "AbstractProcess") -> None:
        """Take the plan of the message from the transport, and the sender's cost from the plan."""
        self.follow(process.plan_to(self.context, self.destination, self.nbytes))

    def follow(self, plan: Plan) -> None:
        """Take a plan, and the sender's cost from it."""
        self.plan = plan
        self.detached = self.mode == BUFFERED or (self.mode == STANDARD and plan.detached)
        self.eager = plan.eager and self.mode != SYNCHRONOUS
        if self.immediate:
            self.start_cost = plan.isend_cost
        elif self.detached or self.mode == SYNCHRONOUS or plan.gap is not None:
            self.start_cost = plan.send_cost
        if plan.pricing is not None:
            pricing_of(plan.pricing).sending(self)

    def post(self, process: "AbstractProcess") -> None:
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
    called after the last byte has arrived. `reads` is the memory of the source that the
    destination reads; None if the source writes.
    """

    def __init__(
        self,
        context: Context,
        source: int,
        destination: int,
        nbytes: int,
        landed: Any,
        reads: Any = None,
    ) -> None:
        super().__init__(context, source, destination, 0, nbytes)
        self.eager = True
        self.landed: Any = landed
        self.reads: Any = reads

    def expect(self, process: "AbstractProcess") -> None:
        """Take the plan from the transport; the posting process pays for a non-blocking send."""
        book = process.engine.book
        members = self.context.members
        sender = members[self.source]
        receiver = members[self.destination]
        plan = book.plan(sender.slot, receiver.slot, self.nbytes)
        self.plan = plan
        pricing = plan.pricing
        if sender.slot != process.slot:
            plan = book.plan(process.slot, sender.slot, self.nbytes)
        self.start_cost = plan.isend_cost
        if pricing is not None:
            pricing_of(pricing).moving(self)

    def post(self, process: "AbstractProcess") -> None:
        """Start the transfer."""
        process.engine.post_transfer(self)

    def complete(self, now: float) -> None:
        """The last byte has arrived."""
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

    def post(self, process: "AbstractProcess") -> None:
        """Match the receive with a message, now or when one arrives."""
        process.engine.post_receive(self)


@mypyc_attr(allow_interpreted_subclasses=True)
class Pricing(AbstractPricing):
    """Computes the costs of messages when they are sent, not when their plans are made.

    The costs may depend on the state of the memory at both ends. A plan names its pricing. The
    methods of the pricing change the requests, and give a send another plan, before the engine uses
    them.
    """

    def sending(self, send: Send) -> None:
        """A message is about to be sent: change its `start_cost`, which is initially the plan's."""

    def matched(self, send: Send, receive: Receive) -> None:
        """A message has matched its receive, and no bytes have moved.

        Set `receive.finish_cost`. A message whose transfer has not started takes the plan in
        `send.plan`.
        """

    def moving(self, transfer: Transfer) -> None:
        """Bytes are about to move without a receive."""


def pricing_of(pricing: AbstractPricing) -> Pricing:
    """The pricing of a plan, with the type that has all methods."""
    assert isinstance(pricing, Pricing)
    return pricing
