"""Operations: the objects of requests, from start to status (MPI 4.1, section 3.7)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import ref

from pysmpi.kernel.matching import ANY, mailbox_at
from pysmpi.kernel.process import Process
from pysmpi.kernel.requests import KernelRequest, Receive, Send
from pysmpi.mpi.base.constants import (
    ANY_SOURCE,
    ANY_TAG,
    ERR_REQUEST,
    ERR_TRUNCATE,
    PROC_NULL,
    SUCCESS,
)
from pysmpi.mpi.base.exceptions import fail
from pysmpi.mpi.base.ranks import Rank
from pysmpi.mpi.base.running import called
from pysmpi.mpi.base.state import StateSlot
from pysmpi.mpi.datatypes.status import Status
from pysmpi.mpi.groups.communicator import Communicator
from pysmpi.mpi.point_to_point.envelopes import interruption, withdrawn


class RequestOperation:
    """The object of a request.

    `request` is the kernel's request, None if the operation is not active (a persistent operation
    that has not been started). `subject` is the handle for errors.
    """

    __slots__ = ("rank", "subject", "request", "__weakref__")

    persistent = False

    def __init__(self, rank: Rank, subject: object) -> None:
        self.rank = rank
        self.subject = subject
        self.request: KernelRequest | None = None

    def start(self) -> None:
        """Begin, again for a persistent operation."""
        fail(ERR_REQUEST, "only a persistent request can be started", self.subject)

    def messages(self) -> list[object]:
        """The kernel's requests that the operation is made of, if it is active."""
        return [] if self.request is None else [self.request]

    def done(self) -> bool:
        """Whether it is complete in the kernel."""
        return self.request is None or self.request.done

    def fill(self, status: Status | None) -> int:
        """Describe the completed operation in `status`; return its error class."""
        if status is not None:
            status._fill(ANY_SOURCE, ANY_TAG, 0)
        return SUCCESS

    def ended(self) -> int:
        """A call has completed it; return the error class of what it leaves to be done."""
        return SUCCESS

    def error_detail(self, error: int) -> str:
        """The message of an error with which it has ended."""
        return ""

    def result(self) -> object:
        """The Python object that a lower-case call returns."""
        return None

    def cancel(self) -> None:
        """Withdraw it if it has not been matched."""

    def release(self) -> None:
        """Free the handle; the operation may continue."""


class NoOperation(RequestOperation):
    """A message to or from `PROC_NULL`: complete from the start."""

    __slots__ = ("receives", "_persistent")

    def __init__(
        self, rank: Rank, subject: object, receives: bool, persistent: bool = False
    ) -> None:
        super().__init__(rank, subject)
        self.receives = receives
        self._persistent = persistent
        if not persistent:
            self.start()

    @property
    def persistent(self) -> bool:  # type: ignore[override]
        return self._persistent

    def start(self) -> None:
        self.request = KernelRequest()
        self.request.done = True

    def fill(self, status: Status | None) -> int:
        if status is not None:
            if self.receives:
                status._fill(PROC_NULL, ANY_TAG, 0)
            else:
                status._fill(ANY_SOURCE, ANY_TAG, 0)
        return SUCCESS


class MessageOperation(RequestOperation):
    """A send or a receive that was started; `make` prepares it anew for a persistent one."""

    __slots__ = ("make", "cancelled")

    def __init__(
        self, rank: Rank, subject: object, make: Callable[[], KernelRequest] | None
    ) -> None:
        self.rank = rank
        self.subject = subject
        self.request: KernelRequest | None = None
        self.make = make
        self.cancelled = False

    def start(self) -> None:
        assert self.make is not None
        request = self.make()
        self.cancelled = False
        self.request = request
        self.rank.process.start(request)

    def cancel(self) -> None:
        request: Any = self.request
        if request is None:
            return
        control = self.rank.engine.control
        if control is not None and isinstance(request, Receive) and request.source == ANY:
            # MPI does not say whether a message comes first.
            place = f"{control.label(request.context)}:{request.destination}"
            control.turn(self.rank.process, place, "cancel")
        # A detached send is done, and a matched one is in no mailbox.
        if request.done or (isinstance(request, Receive) and request.message is not None):
            return
        box = mailbox_at(request.context, request.destination)
        if box is not None and box.cancel(request):
            self.cancelled = True
            request.complete(self.rank.engine.now)
            if control is not None:
                control.match_forced(box)


class SendOperation(MessageOperation):
    """A send that was started."""

    __slots__ = ()

    def fill(self, status: Status | None) -> int:
        if status is not None:
            status._fill(ANY_SOURCE, ANY_TAG, 0, self.cancelled)
        send = self.request
        if isinstance(send, Send) and withdrawn(send) and not self.cancelled:
            return interruption(send)
        return SUCCESS


class ReceiveOperation(MessageOperation):
    """A receive that was started; `unpickle` makes the object of a lower-case one."""

    __slots__ = ("unpickle",)

    def __init__(
        self,
        rank: Rank,
        subject: object,
        make: Callable[[], KernelRequest] | None,
        unpickle: Callable[[object], object] | None = None,
    ) -> None:
        self.rank = rank
        self.subject = subject
        self.request: KernelRequest | None = None
        self.make = make
        self.cancelled = False
        self.unpickle = unpickle

    def fill(self, status: Status | None) -> int:
        return describe(self.request, status, self.cancelled)

    def result(self) -> object:
        request = self.request
        if self.unpickle is None or self.cancelled or request is None:
            return None
        return self.unpickle(request.payload)


class Template:
    """The message of a persistent operation, and the name and the line of the call that made it.

    Reports of deadlocks find in it an operation that was never started, or not started again.
    """

    __slots__ = ("rank", "sends", "peer", "tag", "origin", "started", "operation")

    def __init__(
        self, rank: Rank, communicator: Communicator, sends: bool, peer: int, tag: int
    ) -> None:
        self.rank = rank
        self.sends = sends
        self.peer = peer
        self.tag = tag
        self.origin = called()
        self.started = False
        self.operation: Callable[[], RequestOperation | None] = lambda: None
        TEMPLATES.of(communicator)[rank.pid, sends, peer, tag] = self

    @property
    def idle(self) -> bool:
        """Whether the operation is not active: one that was freed has no message under way."""
        operation = self.operation()
        return operation is None or operation.done()


# The latest template of each rank for sends or receives, a peer and a tag.
TEMPLATES: StateSlot[Communicator, dict[tuple[int, bool, int, int], Template]] = StateSlot(
    Communicator, dict
)


class PersistentOperation(MessageOperation):
    """A send or a receive that is started again and again (MPI 4.1, section 3.9)."""

    __slots__ = ()
    persistent = True

    template: Template

    def __init__(
        self, rank: Rank, subject: object, make: Callable[[], KernelRequest], template: Template
    ) -> None:
        super().__init__(rank, subject, make)
        self.template = template  # type: ignore[misc]  # a slot of the subclasses
        template.operation = ref(self)

    def start(self) -> None:
        self.template.started = True
        super().start()


class PersistentSend(PersistentOperation, SendOperation):
    """A send made by one of the `*send_init` calls."""

    __slots__ = ("template",)


class PersistentReceive(PersistentOperation, ReceiveOperation):
    """A receive made by `Recv_init`."""

    __slots__ = ("template",)


class PairOperation(RequestOperation):
    """The two halves of `Isendrecv`; complete when both are."""

    __slots__ = ("receive", "send")

    def __init__(self, rank: Rank, subject: object, send: Any, receive: Receive | None) -> None:
        super().__init__(rank, subject)
        self.send = send
        self.receive = receive
        both = [half for half in (send, receive) if half is not None]
        self.request = joint(rank, both)

    def messages(self) -> list[object]:
        return [half for half in (self.send, self.receive) if half is not None]

    def fill(self, status: Status | None) -> int:
        if self.receive is None:
            if status is not None:
                status._fill(PROC_NULL, ANY_TAG, 0)
            error = SUCCESS
        else:
            error = describe(self.receive, status, False)
        if self.send is not None and withdrawn(self.send):
            return interruption(self.send)
        return error


def joint(rank: Rank, parts: list[Any]) -> KernelRequest:
    """A request that completes once all its parts have, in the background."""
    whole = KernelRequest()
    main = rank.process
    follower = Process(rank.engine, rank.pid, main.slot, main.core)
    follower.purpose = whole
    follower.resume = lambda: whole.complete(rank.engine.now)
    follower.follow(parts)
    return whole


def describe(request: Any, status: Status | None, cancelled: bool) -> int:
    """Fill the status of a receive; return its error class."""
    if request is None:
        if status is not None:
            status._fill(ANY_SOURCE, ANY_TAG, 0)
        return SUCCESS
    if cancelled:
        if status is not None:
            status._fill(ANY_SOURCE, ANY_TAG, 0, True)
        return SUCCESS
    send = request.message
    if send is None:
        error = interruption(request)
        if status is not None:
            status._fill(ANY_SOURCE, ANY_TAG, 0)
            status.error = error
        return error
    error = ERR_TRUNCATE if request.truncated else SUCCESS
    if status is not None:
        nbytes = request.nbytes if request.truncated else send.nbytes
        status._fill(send.source, send.tag, nbytes)
        status.error = error
    return error
