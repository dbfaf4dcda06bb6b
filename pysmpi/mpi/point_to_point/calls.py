"""Point-to-point communication (MPI 4.1, chapter 3), in both forms of mpi4py."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pysmpi.kernel.requests import STANDARD, SYNCHRONOUS, Receive, Send
from pysmpi.mpi.base.constants import ANY_SOURCE, ANY_TAG, ERR_COMM, PROC_NULL
from pysmpi.mpi.base.exceptions import fail
from pysmpi.mpi.base.ranks import current
from pysmpi.mpi.buffers.payload import snapshot
from pysmpi.mpi.buffers.pickling import pickled
from pysmpi.mpi.calls import mpi
from pysmpi.mpi.datatypes.status import Status, check_status
from pysmpi.mpi.groups.communicator import Communicator
from pysmpi.mpi.point_to_point.envelopes import (
    IRECV_BYTES,
    blocking_receive,
    blocking_send,
    check_destination,
    check_source,
    interrupted,
    new_receive,
    new_send,
    object_buffer,
    receive_message,
    send_and_receive,
    send_message,
    truncated,
    unpickle,
    withdrawn,
)
from pysmpi.mpi.point_to_point.immediate import receive_later, send_later
from pysmpi.mpi.point_to_point.matched import Message
from pysmpi.mpi.point_to_point.operations import (
    NoOperation,
    PairOperation,
    PersistentReceive,
    PersistentSend,
    Template,
    describe,
)
from pysmpi.mpi.point_to_point.persistent_requests import Prequest
from pysmpi.mpi.point_to_point.probing import look_for_message, wait_for_message
from pysmpi.mpi.point_to_point.requests import Request

if TYPE_CHECKING:
    from mpi4py.typing import Buffer, BufSpec


def _deprecated() -> None:
    """Warn of an argument that mpi4py discourages."""
    warnings.warn("the 'buf' argument is deprecated", UserWarning, stacklevel=4)


class PointToPoint:
    """The point-to-point methods of a communicator."""

    __slots__ = ()

    def _communicator(self) -> Communicator:
        fail(ERR_COMM)

    # A payload is a message in memory, or the pickled bytes of an object.

    def _received(self, receive: Receive | None, status: Status | None) -> None:
        """End a blocking receive."""
        if receive is None:
            if status is not None:
                status._fill(PROC_NULL, ANY_TAG, 0)
            return
        if status is not None:
            describe(receive, status, False)
        if receive.truncated:
            truncated(self, receive)

    def _exchanged(self, send: Send | None, receive: Receive | None, status: Status | None) -> None:
        """End a send and a receive."""
        self._received(receive, status)
        if send is not None and withdrawn(send):
            interrupted(self, send)

    # Blocking, with buffers.

    @mpi.point_to_point("3.2.1")
    def Send(self, buf: BufSpec, dest: int, tag: int = 0) -> None:
        """Blocking send."""
        blocking_send(self, send_message(buf, dest), dest, tag, STANDARD)

    @mpi.point_to_point("3.4")
    def Ssend(self, buf: BufSpec, dest: int, tag: int = 0) -> None:
        """Blocking send in synchronous mode."""
        blocking_send(self, send_message(buf, dest), dest, tag, SYNCHRONOUS)

    @mpi.point_to_point("3.4")
    def Rsend(self, buf: BufSpec, dest: int, tag: int = 0) -> None:
        """Blocking send in ready mode."""
        blocking_send(self, send_message(buf, dest), dest, tag, STANDARD)

    @mpi.point_to_point("3.2.4")
    def Recv(
        self,
        buf: BufSpec,
        source: int = ANY_SOURCE,
        tag: int = ANY_TAG,
        status: Status | None = None,
    ) -> None:
        """Blocking receive."""
        if status is not None:
            check_status(status)
        receive = blocking_receive(self, receive_message(buf, source), source, tag)
        if receive is None or receive.truncated or status is not None:
            self._received(receive, status)

    @mpi.point_to_point("3.2.7")
    def Sendrecv(
        self,
        sendbuf: BufSpec,
        dest: int,
        sendtag: int = 0,
        recvbuf: BufSpec | None = None,
        source: int = ANY_SOURCE,
        recvtag: int = ANY_TAG,
        status: Status | None = None,
    ) -> None:
        """Send and receive a message."""
        if status is not None:
            check_status(status)
        out = send_message(sendbuf, dest)
        into = receive_message(recvbuf, source)
        send, receive, whole = send_and_receive(self, out, dest, sendtag, into, source, recvtag)
        if not whole or status is not None:
            self._exchanged(send, receive, status)

    @mpi.point_to_point("3.2.7")
    def Sendrecv_replace(
        self,
        buf: BufSpec,
        dest: int,
        sendtag: int = 0,
        source: int = ANY_SOURCE,
        recvtag: int = ANY_TAG,
        status: Status | None = None,
    ) -> None:
        """Send and receive a message with one buffer."""
        if status is not None:
            check_status(status)
        into = receive_message(buf, dest if source == PROC_NULL else source)
        out = snapshot(into)
        send, receive, _ = send_and_receive(self, out, dest, sendtag, into, source, recvtag)
        self._exchanged(send, receive, status)

    # Non-blocking and persistent, with buffers.

    @mpi.point_to_point("3.7.2")
    def Isend(self, buf: BufSpec, dest: int, tag: int = 0) -> Request:
        """Non-blocking send."""
        return send_later(self, send_message(buf, dest), dest, tag, STANDARD, Request)

    @mpi.point_to_point("3.7.2")
    def Issend(self, buf: BufSpec, dest: int, tag: int = 0) -> Request:
        """Non-blocking send in synchronous mode."""
        return send_later(self, send_message(buf, dest), dest, tag, SYNCHRONOUS, Request)

    @mpi.point_to_point("3.7.2")
    def Irsend(self, buf: BufSpec, dest: int, tag: int = 0) -> Request:
        """Non-blocking send in ready mode."""
        return send_later(self, send_message(buf, dest), dest, tag, STANDARD, Request)

    @mpi.point_to_point("3.7.2")
    def Irecv(self, buf: BufSpec, source: int = ANY_SOURCE, tag: int = ANY_TAG) -> Request:
        """Non-blocking receive."""
        return receive_later(self, receive_message(buf, source), source, tag, Request)

    @mpi.point_to_point("3.7.2")
    def Isendrecv(
        self,
        sendbuf: BufSpec,
        dest: int,
        sendtag: int = 0,
        recvbuf: BufSpec | None = None,
        source: int = ANY_SOURCE,
        recvtag: int = ANY_TAG,
    ) -> Request:
        """Send and receive a message."""
        out = send_message(sendbuf, dest)
        into = receive_message(recvbuf, source)
        return self._isendrecv(out, dest, sendtag, into, source, recvtag)

    @mpi.point_to_point("3.7.2")
    def Isendrecv_replace(
        self,
        buf: BufSpec,
        dest: int,
        sendtag: int = 0,
        source: int = ANY_SOURCE,
        recvtag: int = ANY_TAG,
    ) -> Request:
        """Send and receive a message with one buffer."""
        into = receive_message(buf, dest if source == PROC_NULL else source)
        out = snapshot(into)
        return self._isendrecv(out, dest, sendtag, into, source, recvtag)

    def _isendrecv(
        self,
        out: object,
        dest: int,
        sendtag: int,
        into: Any,
        source: int,
        recvtag: int,
    ) -> Request:
        rank = current()
        communicator = self._communicator()
        process = rank.process
        send = new_send(self, communicator, process, out, dest, sendtag, STANDARD)
        receive = new_receive(self, communicator, process, into, source, recvtag)
        starts: list[Any] = [request for request in (send, receive) if request is not None]
        if send is not None:
            send.immediate = True
        process.exchange(starts, [])
        request = Request._of(PairOperation(rank, self, send, receive))
        request.ob_buf = (out, into)
        return request

    def _send_init(
        self,
        buf: object,
        dest: int,
        tag: int,
        mode: int,
        prepare: Callable[[Any, object, Any], None] | None = None,
    ) -> Prequest:
        """The request of a persistent send; `prepare` gets the send before each start."""
        rank = current()
        communicator = self._communicator()
        message = send_message(buf, dest)
        check_destination(self, communicator, dest, tag)
        if dest == PROC_NULL:
            return Prequest._of(NoOperation(rank, self, False, persistent=True))

        def make() -> Any:
            send = new_send(self, communicator, rank.process, message, dest, tag, mode)
            assert send is not None
            send.immediate = True
            if prepare is not None:
                prepare(rank, self, send)
            return send

        template = Template(rank, communicator, True, dest, tag)
        request = Prequest._of(PersistentSend(rank, self, make, template))
        request.ob_buf = message
        return request

    @mpi.point_to_point("3.9")
    def Send_init(self, buf: BufSpec, dest: int, tag: int = 0) -> Prequest:
        """Create a persistent request for a standard send."""
        return self._send_init(buf, dest, tag, STANDARD)

    @mpi.point_to_point("3.9")
    def Ssend_init(self, buf: BufSpec, dest: int, tag: int = 0) -> Request:
        """Persistent request for a send in synchronous mode."""
        return self._send_init(buf, dest, tag, SYNCHRONOUS)

    @mpi.point_to_point("3.9")
    def Rsend_init(self, buf: BufSpec, dest: int, tag: int = 0) -> Request:
        """Persistent request for a send in ready mode."""
        return self._send_init(buf, dest, tag, STANDARD)

    @mpi.point_to_point("3.9")
    def Recv_init(self, buf: BufSpec, source: int = ANY_SOURCE, tag: int = ANY_TAG) -> Prequest:
        """Create a persistent request for a receive."""
        rank = current()
        communicator = self._communicator()
        message = receive_message(buf, source)
        check_source(self, communicator, source, tag)
        if source == PROC_NULL:
            return Prequest._of(NoOperation(rank, self, True, persistent=True))

        def make() -> Any:
            return new_receive(self, communicator, rank.process, message, source, tag)

        template = Template(rank, communicator, False, source, tag)
        request = Prequest._of(PersistentReceive(rank, self, make, template))
        request.ob_buf = message
        return request

    # Probing.

    @mpi.point_to_point("3.8.1")
    def Probe(
        self, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None
    ) -> bool:
        """Blocking test for a message."""
        if status is not None:
            check_status(status)
        wait_for_message(self, current(), source, tag, status)
        return True

    @mpi.point_to_point("3.8.1")
    def Iprobe(
        self, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None
    ) -> bool:
        """Non-blocking test for a message."""
        if status is not None:
            check_status(status)
        probe = look_for_message(self, current(), source, tag, status)
        return probe is None or probe.message is not None

    @mpi.point_to_point("3.8.2")
    def Mprobe(
        self, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None
    ) -> Message:
        """Blocking test for a matched message."""
        message: Message = Message.Probe(self, source, tag, status)
        return message

    @mpi.point_to_point("3.8.2")
    def Improbe(
        self, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None
    ) -> Message | None:
        """Non-blocking test for a matched message."""
        message: Message | None = Message.Iprobe(self, source, tag, status)
        return message

    # Lower-case: any Python object, pickled.

    @mpi.point_to_point("3.2.1")
    def send(self, obj: object, dest: int, tag: int = 0) -> None:
        """Send in standard mode."""
        blocking_send(self, pickled(obj, dest), dest, tag, STANDARD)

    @mpi.point_to_point("3.4")
    def ssend(self, obj: object, dest: int, tag: int = 0) -> None:
        """Send in synchronous mode."""
        blocking_send(self, pickled(obj, dest), dest, tag, SYNCHRONOUS)

    @mpi.point_to_point("3.2.4")
    def recv(
        self,
        buf: Buffer | None = None,
        source: int = ANY_SOURCE,
        tag: int = ANY_TAG,
        status: Status | None = None,
    ) -> Any:
        """Receive a message."""
        if status is not None:
            check_status(status)
        if buf is not None:
            _deprecated()
        buffer = object_buffer(buf, source)
        receive = blocking_receive(self, buffer, source, tag)
        self._received(receive, status)
        return unpickle(buffer)

    @mpi.point_to_point("3.2.7")
    def sendrecv(
        self,
        sendobj: Any,
        dest: int,
        sendtag: int = 0,
        recvbuf: Buffer | None = None,
        source: int = ANY_SOURCE,
        recvtag: int = ANY_TAG,
        status: Status | None = None,
    ) -> Any:
        """Send and receive a message."""
        if status is not None:
            check_status(status)
        if recvbuf is not None:
            _deprecated()
        data = pickled(sendobj, dest)
        buffer = object_buffer(recvbuf, source)
        send, receive, _ = send_and_receive(self, data, dest, sendtag, buffer, source, recvtag)
        self._exchanged(send, receive, status)
        return unpickle(buffer)

    @mpi.point_to_point("3.7.2")
    def isend(self, obj: object, dest: int, tag: int = 0) -> Request:
        """Non-blocking send."""
        return send_later(self, pickled(obj, dest), dest, tag, STANDARD, Request)

    @mpi.point_to_point("3.7.2")
    def issend(self, obj: object, dest: int, tag: int = 0) -> Request:
        """Non-blocking send in synchronous mode."""
        return send_later(self, pickled(obj, dest), dest, tag, SYNCHRONOUS, Request)

    @mpi.point_to_point("3.7.2")
    def irecv(
        self, buf: Buffer | None = None, source: int = ANY_SOURCE, tag: int = ANY_TAG
    ) -> Request:
        """Non-blocking receive."""
        buffer = object_buffer(buf, source, IRECV_BYTES)
        return receive_later(self, buffer, source, tag, Request, unpickle)

    @mpi.point_to_point("3.8.1")
    def probe(
        self, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None
    ) -> bool:
        """Blocking test for a message."""
        return self.Probe(source, tag, status)

    @mpi.point_to_point("3.8.1")
    def iprobe(
        self, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None
    ) -> bool:
        """Non-blocking test for a message."""
        return self.Iprobe(source, tag, status)

    @mpi.point_to_point("3.8.2")
    def mprobe(
        self, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None
    ) -> Message:
        """Blocking test for a matched message."""
        message: Message = Message.probe(self, source, tag, status)
        return message

    @mpi.point_to_point("3.8.2")
    def improbe(
        self, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None
    ) -> Message | None:
        """Non-blocking test for a matched message."""
        message: Message | None = Message.iprobe(self, source, tag, status)
        return message
