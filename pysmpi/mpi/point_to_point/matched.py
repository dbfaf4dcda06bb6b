"""Matched probes: messages that were taken from the queue and wait for their receive.

MPI 4.1, section 3.8.2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from pysmpi.kernel.matching import mailbox_of
from pysmpi.kernel.requests import Send
from pysmpi.mpi.base.constants import ANY_SOURCE, ANY_TAG, ERR_REQUEST, PROC_NULL
from pysmpi.mpi.base.handles import Handle, check_comm
from pysmpi.mpi.base.ranks import current
from pysmpi.mpi.buffers.spellings import receive
from pysmpi.mpi.calls import mpi
from pysmpi.mpi.datatypes.status import Status, check_status
from pysmpi.mpi.point_to_point.envelopes import ObjectBuffer, new_receive, unpickle
from pysmpi.mpi.point_to_point.operations import NoOperation, ReceiveOperation, describe
from pysmpi.mpi.point_to_point.probing import look_for_message, wait_for_message
from pysmpi.mpi.point_to_point.requests import Request

if TYPE_CHECKING:
    from mpi4py.typing import BufSpec

__all__ = ["Message", "MESSAGE_NULL", "MESSAGE_NO_PROC"]


class Match:
    """A message that a matched probe has removed: no other call can receive it."""

    __slots__ = ("comm", "send")

    def __init__(self, comm: Any, send: Send | None) -> None:
        self.comm = comm
        self.send = send


NO_PROC = Match(None, None)


class Message(Handle, kind=12, null=0x2C000000, error=ERR_REQUEST, release=None):
    """Matched message handle."""

    __slots__ = ("ob_buf",)

    def __new__(cls, message: Message | None = None) -> Self:
        self = object.__new__(cls)
        Handle._copy(self, message, "message")
        return self

    @classmethod
    @mpi.point_to_point("3.8.2")
    def Probe(
        cls,
        comm: Any,
        source: int = ANY_SOURCE,
        tag: int = ANY_TAG,
        status: Status | None = None,
    ) -> Self:
        """Blocking test for a matched message."""
        check_comm(comm)
        if status is not None:
            check_status(status)
        rank = current()
        while True:
            probe = wait_for_message(comm, rank, source, tag, status)
            if probe is None:
                return cls._of(NO_PROC)
            # Another thread of the rank may have received it since.
            box = mailbox_of(probe)
            if rank.engine.control is None:
                send = box.peek(probe, rank.engine.now)
            else:
                send = probe.message
            if send is not None and send.unexpected:
                probe.message = box.take(send)
                describe(probe, status, False)
                return cls._of(Match(comm, send))

    @classmethod
    @mpi.point_to_point("3.8.2")
    def Iprobe(
        cls,
        comm: Any,
        source: int = ANY_SOURCE,
        tag: int = ANY_TAG,
        status: Status | None = None,
    ) -> Self | None:
        """Non-blocking test for a matched message."""
        check_comm(comm)
        if status is not None:
            check_status(status)
        probe = look_for_message(comm, current(), source, tag, status)
        if probe is None:
            return cls._of(NO_PROC)
        if probe.message is None:
            return None
        return cls._of(Match(comm, mailbox_of(probe).take(probe.message)))

    @classmethod
    @mpi.point_to_point("3.8.2")
    def probe(
        cls,
        comm: Any,
        source: int = ANY_SOURCE,
        tag: int = ANY_TAG,
        status: Status | None = None,
    ) -> Self:
        """Blocking test for a matched message."""
        return cls.Probe(comm, source, tag, status)

    @classmethod
    @mpi.point_to_point("3.8.2")
    def iprobe(
        cls,
        comm: Any,
        source: int = ANY_SOURCE,
        tag: int = ANY_TAG,
        status: Status | None = None,
    ) -> Self | None:
        """Non-blocking test for a matched message."""
        return cls.Iprobe(comm, source, tag, status)

    @mpi.point_to_point("3.8.3")
    def Recv(self, buf: BufSpec, status: Status | None = None) -> None:
        """Blocking receive of matched message."""
        if status is not None:
            check_status(status)
        self.Irecv(buf).Wait(status)

    @mpi.point_to_point("3.8.3")
    def Irecv(self, buf: BufSpec) -> Request:
        """Non-blocking receive of matched message."""
        message = receive(buf, PROC_NULL if self._impl is NO_PROC else 0)
        request = self._receive(message, None)
        request.ob_buf = message
        return request

    @mpi.point_to_point("3.8.3")
    def recv(self, status: Status | None = None) -> Any:
        """Blocking receive of matched message."""
        if status is not None:
            check_status(status)
        return self.irecv().wait(status)

    @mpi.point_to_point("3.8.3")
    def irecv(self) -> Request:
        """Non-blocking receive of matched message."""
        return self._receive(ObjectBuffer(), unpickle)

    def _receive(self, payload: Any, unpickle: Any) -> Request:
        match: Match = self._live()
        rank = current()
        if match.send is None:
            self._drop()
            return Request._of(NoOperation(rank, None, True))
        process = rank.process
        process.finish_compute()
        send = match.send
        comm = match.comm
        receive = new_receive(comm, comm._communicator(), process, payload, send.source, send.tag)
        assert receive is not None
        operation = ReceiveOperation(rank, comm, None, unpickle)
        operation.request = receive
        process.announce(receive)
        rank.engine.claim(send, receive)
        self._retire()
        return Request._of(operation)


MESSAGE_NULL = Message._define("MESSAGE_NULL", None, 0x2C000000)
MESSAGE_NO_PROC = Message._define("MESSAGE_NO_PROC", NO_PROC, 0x6C000000)
