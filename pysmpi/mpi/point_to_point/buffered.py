"""Sends in buffered mode, and the memory that a program attaches for them.

MPI 4.1, sections 3.4 and 3.6. A communicator's own buffer is used first, then that of the session,
which represents the process. A buffered send completes at once; its message uses space until it has
been transferred.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pysmpi.kernel.requests import BUFFERED, KernelRequest, Send
from pysmpi.mpi.base.constants import BSEND_OVERHEAD, ERR_BUFFER
from pysmpi.mpi.base.exceptions import fail
from pysmpi.mpi.base.exporting import acquire
from pysmpi.mpi.base.ranks import Rank, current
from pysmpi.mpi.base.state import StateSlot
from pysmpi.mpi.buffers.memory import BUFFER_AUTOMATIC
from pysmpi.mpi.buffers.pickling import pickled
from pysmpi.mpi.buffers.spellings import send as send_message
from pysmpi.mpi.calls import mpi
from pysmpi.mpi.groups.communicator import Communicator
from pysmpi.mpi.point_to_point.envelopes import new_send
from pysmpi.mpi.point_to_point.operations import (
    NoOperation,
    RequestOperation,
    SendOperation,
    joint,
)
from pysmpi.mpi.point_to_point.persistent_requests import Prequest
from pysmpi.mpi.point_to_point.requests import Request

if TYPE_CHECKING:
    from mpi4py.typing import Buffer, BufSpec

__all__ = ["Attach_buffer", "Detach_buffer", "Flush_buffer", "Iflush_buffer"]

PROCESS = "process"  # represents the process among the owners of attached buffers


class Attached:
    """A buffer for buffered sends, and the messages that take room in it."""

    __slots__ = ("obj", "nbytes", "sends")

    def __init__(self, obj: object, nbytes: float) -> None:
        self.obj = obj
        self.nbytes = nbytes
        self.sends: list[Send] = []

    def pending(self) -> list[Send]:
        """The messages that are still on their way."""
        self.sends = [send for send in self.sends if not send.arrived]
        return self.sends


ATTACHED: StateSlot[Rank, dict[object, Attached]] = StateSlot(Rank, dict)  # by owner


def _table(rank: Rank) -> dict[object, Attached]:
    return ATTACHED.of(rank)


def attach(owner: object, buf: object, subject: object = None) -> None:
    """Attach memory to an owner; None: buffered sends allocate memory as needed."""
    table = _table(current())
    automatic = buf is None or buf is BUFFER_AUTOMATIC
    nbytes = float("inf") if automatic else acquire(buf, writable=True).memory.nbytes
    if owner in table:
        fail(ERR_BUFFER, "a buffer is attached already", subject)
    if nbytes < BSEND_OVERHEAD:
        detail = f"buf: {nbytes} bytes are less than BSEND_OVERHEAD, {BSEND_OVERHEAD}"
        fail(ERR_BUFFER, detail, subject)
    table[owner] = Attached(buf, nbytes)


def detach(owner: object) -> object:
    """Wait for the messages in a buffer; return the object that was attached."""
    flush(owner)
    attached = _table(current()).pop(owner, None)
    if attached is None or attached.obj is None:
        return None
    return attached.obj


def flush(owner: object) -> None:
    """Wait until all messages in a buffer have been transferred."""
    rank = current()
    attached = _table(rank).get(owner)
    if attached is None:
        return
    process = rank.process
    process.wait([arrival(send) for send in attached.pending()])


def arrival(send: Send) -> KernelRequest:
    """A request that completes when a message has been transferred."""
    if send.arrival is None:
        send.arrival = KernelRequest()
        send.arrival.done = send.arrived
    return send.arrival


def reserve(rank: Rank, comm: Any, send: Send) -> None:
    """Take room for a message in the buffer that is attached for it."""
    table = _table(rank)
    attached = table.get(comm._impl)
    if attached is None:
        attached = table.get(PROCESS)
    needed = send.nbytes + BSEND_OVERHEAD
    if attached is None:
        fail(ERR_BUFFER, f"no buffer is attached for a message of {send.nbytes} bytes", comm)
    used = sum(other.nbytes + BSEND_OVERHEAD for other in attached.pending())
    if used + needed > attached.nbytes:
        fail(
            ERR_BUFFER,
            f"a message takes {needed} bytes of the attached buffer, where {used} of "
            f"{attached.nbytes} are taken",
            comm,
        )
    attached.sends.append(send)


class BufferedSends:
    """The buffered sends of a communicator, and its own buffer for them."""

    __slots__ = ()

    if TYPE_CHECKING:  # the class that this one is mixed into has them

        def _communicator(self) -> Communicator: ...
        def _live(self) -> Any: ...
        def _send_init(
            self, buf: object, dest: int, tag: int, mode: int, prepare: Any
        ) -> Prequest: ...

    @mpi.point_to_point("3.6")
    def Attach_buffer(self, buf: Buffer | None) -> None:
        """Attach a user-provided buffer for sending in buffered mode."""
        attach(self._live(), buf, self)

    @mpi.point_to_point("3.6")
    def Detach_buffer(self) -> Any:
        """Remove an existing attached buffer."""
        return detach(self._live())

    @mpi.point_to_point("3.6")
    def Flush_buffer(self) -> None:
        """Block until all buffered messages have been transmitted."""
        flush(self._live())

    @mpi.point_to_point("3.6")
    def Iflush_buffer(self) -> Request:
        """Nonblocking flush for buffered messages."""
        return flush_later(self._live(), self)

    @mpi.point_to_point("3.4")
    def Bsend(self, buf: BufSpec, dest: int, tag: int = 0) -> None:
        """Blocking send in buffered mode."""
        self._bsend(send_message(buf, dest), dest, tag, False)

    @mpi.point_to_point("3.7.2")
    def Ibsend(self, buf: BufSpec, dest: int, tag: int = 0) -> Request:
        """Non-blocking send in buffered mode."""
        message = send_message(buf, dest)
        request: Request = self._bsend(message, dest, tag, True)
        request.ob_buf = message
        return request

    @mpi.point_to_point("3.4")
    def bsend(self, obj: object, dest: int, tag: int = 0) -> None:
        """Send in buffered mode."""
        self._bsend(pickled(obj, dest), dest, tag, False)

    @mpi.point_to_point("3.7.2")
    def ibsend(self, obj: Any, dest: int, tag: int = 0) -> Request:
        """Non-blocking send in buffered mode."""
        request: Request = self._bsend(pickled(obj, dest), dest, tag, True)
        return request

    @mpi.point_to_point("3.9")
    def Bsend_init(self, buf: BufSpec, dest: int, tag: int = 0) -> Request:
        """Persistent request for a send in buffered mode."""
        return self._send_init(buf, dest, tag, BUFFERED, reserve)

    def _bsend(self, payload: Any, dest: int, tag: int, later: bool) -> Any:
        rank = current()
        send = new_send(self, self._communicator(), rank.process, payload, dest, tag, BUFFERED)
        if send is None:
            return Request._of(NoOperation(rank, self, False)) if later else None
        process = rank.process
        send.immediate = later
        reserve(rank, self, send)
        process.start(send)
        if not later:
            return None
        operation = SendOperation(rank, self, None)
        operation.request = send
        return Request._of(operation)


def flush_later(owner: object, subject: object) -> Request:
    """A request that completes once the messages in a buffer have been transferred."""
    rank = current()
    attached = _table(rank).get(owner)
    sends = [] if attached is None else attached.pending()
    operation = RequestOperation(rank, subject)
    operation.request = joint(rank, [arrival(send) for send in sends])
    return Request._of(operation)


@mpi.point_to_point("3.6")
def Attach_buffer(buf: Buffer | None) -> None:
    """Attach a user-provided buffer for sending in buffered mode."""
    attach(PROCESS, buf)


@mpi.point_to_point("3.6")
def Detach_buffer() -> Any:
    """Remove an existing attached buffer."""
    return detach(PROCESS)


@mpi.point_to_point("3.6")
def Flush_buffer() -> None:
    """Block until all buffered messages have been transmitted."""
    flush(PROCESS)


@mpi.point_to_point("3.6")
def Iflush_buffer() -> Request:
    """Nonblocking flush for buffered messages."""
    return flush_later(PROCESS, None)
