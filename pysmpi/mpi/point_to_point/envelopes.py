"""The envelopes of messages and receives, and the memory or object behind them.

A message has an envelope for the kernel, which determines its time, and a payload, which is kept
here. The payload of a buffer call describes memory; that of a lower-case call is the pickled bytes.
When the kernel has matched a send with a receive, `deliver` copies the payload directly from the
send buffer to the receive buffer. `keep` saves the payload if the sender may continue before that.

This module is compiled: every message passes through it.
"""

from __future__ import annotations

from typing import Any, Final, Optional

from pysmpi.kernel.engine import Engine
from pysmpi.kernel.matching import ANY
from pysmpi.kernel.process import Process
from pysmpi.kernel.requests import STANDARD, Context, Envelope, KernelRequest, Receive, Send
from pysmpi.mpi.base.constants import (
    ANY_SOURCE,
    ANY_TAG,
    ERR_PROC_FAILED,
    ERR_RANK,
    ERR_REVOKED,
    ERR_TAG,
    ERR_TRUNCATE,
    PROC_NULL,
)
from pysmpi.mpi.base.exceptions import cint, fail
from pysmpi.mpi.base.exporting import acquire
from pysmpi.mpi.base.ranks import current
from pysmpi.mpi.base.running import calling_rank
from pysmpi.mpi.buffers import spellings
from pysmpi.mpi.buffers.contiguous import MessageRegion, contiguous, copy_message
from pysmpi.mpi.buffers.payload import PAYLOAD, move, snapshot
from pysmpi.mpi.buffers.pickling import pickle
from pysmpi.mpi.groups.communicator import Communicator, check_revoked, communicator_of

# A constant of the compiled module, which is read without a look into a dictionary.
_PAYLOAD: Final[Any] = PAYLOAD

TAG_UB: Final = 0x7FFFFFFF
# The buffer size of `irecv` without a buffer: as in mpi4py, a longer message fails.
IRECV_BYTES: Final = 1 << 15
UNLIMITED: Final = 1 << 62


class ObjectBuffer:
    """The buffer of a lower-case receive: for up to `nbytes`, in memory of the program if given."""

    __slots__ = ("data", "buffer", "nbytes")

    def __init__(self, nbytes: int = UNLIMITED, buffer: Any = None) -> None:
        self.data: Any = None
        self.buffer = buffer
        self.nbytes = nbytes


def deliver(send: Send, receive: Receive) -> None:
    """Move the data of a matched message."""
    source, target = send.payload, receive.payload
    if isinstance(target, ObjectBuffer):
        data = source.snapshot() if isinstance(source, MessageRegion) else source
        target.data = memoryview(data)[: receive.nbytes] if receive.truncated else data
    elif isinstance(source, MessageRegion):
        if _PAYLOAD.active:
            move(source, target)
        else:
            copy_message(source, target)
    elif target is not None:
        target.unpack(source)
    send.payload = None


def keep(send: Send) -> None:
    """Save the data of a message if its sender continues before the match."""
    if isinstance(send.payload, MessageRegion):
        send.payload = snapshot(send.payload)


def install(engine: Engine) -> None:
    """Have the engine move the data of messages."""
    engine.deliver = deliver
    engine.keep = keep


def send_message(spec: Any, dest: Any) -> MessageRegion:
    """The message of a send to `dest`."""
    message: Optional[MessageRegion] = None
    if dest != PROC_NULL:
        message = contiguous(spec, False)
    return spellings.send(spec, dest) if message is None else message


def receive_message(spec: Any, source: Any) -> MessageRegion:
    """The message of a receive from `source`."""
    message: Optional[MessageRegion] = None
    if source != PROC_NULL:
        message = contiguous(spec, True)
    return spellings.receive(spec, source) if message is None else message


def check_destination(comm: object, communicator: Communicator, dest: object, tag: object) -> None:
    """Refuse a destination or tag that no message can have, and a revoked communicator."""
    if communicator.revoked:
        check_revoked(comm, communicator)
    dest, tag = cint(dest), cint(tag)
    if not 0 <= dest < communicator.remote.size and dest != PROC_NULL:
        fail(
            ERR_RANK,
            f"dest is {dest}, expected 0 to {communicator.remote.size - 1} or PROC_NULL",
            comm,
        )
    if tag < 0:
        name = _tag_of("send")
        fail(ERR_TAG, f"{name} is {tag}, expected 0 to {TAG_UB}", comm)


def check_source(comm: object, communicator: Communicator, source: object, tag: object) -> None:
    """Refuse a source or tag that no receive can have, and a revoked communicator."""
    if communicator.revoked:
        check_revoked(comm, communicator)
    source, tag = cint(source), cint(tag)
    if not 0 <= source < communicator.remote.size and source not in (ANY_SOURCE, PROC_NULL):
        last = communicator.remote.size - 1
        fail(ERR_RANK, f"source is {source}, expected 0 to {last}, ANY_SOURCE or PROC_NULL", comm)
    if tag < 0 and tag != ANY_TAG:
        name = _tag_of("recv")
        fail(ERR_TAG, f"{name} is {tag}, expected 0 to {TAG_UB} or ANY_TAG", comm)


def _tag_of(direction: str) -> str:
    """The name of a tag in the program's call: some calls have two tags."""
    call = current().call
    name = f"{direction}tag"
    return name if call is not None and name in call.procedure.parameters else "tag"


def _rank_of(comm: object, communicator: Communicator, pid: int) -> int:
    """The rank of a process in a communicator; an error if it is revoked."""
    if communicator.revoked:
        check_revoked(comm, communicator)
    return communicator.group.rank_of(pid)


def _size(payload: Any) -> int:
    """The bytes of a message, or of the buffer of a receive; no limit for a probe, without one."""
    if isinstance(payload, MessageRegion):
        return payload.nbytes
    if isinstance(payload, ObjectBuffer):
        return payload.nbytes
    return UNLIMITED if payload is None else len(payload)


def new_send(
    comm: object,
    communicator: Communicator,
    process: Process,
    payload: object,
    dest: object,
    tag: object,
    mode: int,
) -> Send | None:
    """The envelope of a message of a process, with its payload; None for a message to PROC_NULL."""
    context: Context = communicator.p2p
    peer = context if context.peer is None else context.peer
    if not (
        isinstance(dest, int)
        and isinstance(tag, int)
        and 0 <= dest < len(peer.members)
        and 0 <= tag <= TAG_UB
    ):
        check_destination(comm, communicator, dest, tag)
        dest, tag = cint(dest), cint(tag)
        if dest == PROC_NULL:
            return None
    first = context.first
    pid = process.pid
    me = pid - first if first >= 0 else _rank_of(comm, communicator, pid)
    send = Send(peer, me, dest, tag, _size(payload), mode)
    send.payload = payload
    return send


def new_receive(
    comm: object,
    communicator: Communicator,
    process: Process,
    payload: object,
    source: object,
    tag: object,
) -> Receive | None:
    """The envelope of a receive of a process into a message or an `ObjectBuffer`, or of a probe.

    None for PROC_NULL.
    """
    if isinstance(tag, int) and tag == ANY_TAG:
        tag = ANY
    elif not (isinstance(tag, int) and 0 <= tag <= TAG_UB):
        check_source(comm, communicator, source, tag)
        tag = cint(tag)
        if tag == ANY_TAG:
            tag = ANY
    context: Context = communicator.p2p
    peer = context if context.peer is None else context.peer
    if not (isinstance(source, int) and 0 <= source < len(peer.members)):
        check_source(comm, communicator, source, 0)
        source = cint(source)
        if source == PROC_NULL:
            return None
        if source == ANY_SOURCE:
            source = ANY
    first = context.first
    pid = process.pid
    me = pid - first if first >= 0 else _rank_of(comm, communicator, pid)
    receive = Receive(context, source, me, tag, _size(payload))
    receive.payload = payload
    return receive


def blocking_send(comm: object, payload: object, dest: object, tag: object, mode: int) -> None:
    """The body of a blocking send of a message or of packed data."""
    rank = calling_rank()
    communicator = communicator_of(comm, rank)
    process: Process = rank.process
    send = new_send(comm, communicator, process, payload, dest, tag, mode)
    if send is not None:
        process.start_and_wait(send)
        if communicator.revoked and withdrawn(send):
            interrupted(comm, send)


def blocking_receive(comm: object, payload: object, source: object, tag: object) -> Receive | None:
    """The body of a blocking receive: the receive, None for PROC_NULL."""
    rank = calling_rank()
    communicator = communicator_of(comm, rank)
    process: Process = rank.process
    receive = new_receive(comm, communicator, process, payload, source, tag)
    if receive is not None:
        process.start_and_wait(receive)
    return receive


def send_and_receive(
    comm: object,
    sent: object,
    dest: object,
    send_tag: object,
    received: object,
    source: object,
    receive_tag: object,
) -> tuple[Send | None, Receive | None, bool]:
    """The body of a send and a receive at once: both, and whether they arrived in full.

    None is a message to or from PROC_NULL.
    """
    rank = calling_rank()
    communicator = communicator_of(comm, rank)
    process: Process = rank.process
    send = new_send(comm, communicator, process, sent, dest, send_tag, STANDARD)
    receive = new_receive(comm, communicator, process, received, source, receive_tag)
    both: list[KernelRequest] = []
    if send is not None:
        send.immediate = True
        both.append(send)
    if receive is not None:
        both.append(receive)
    if len(both) > 0:
        process.prepare_exchange(both, both)
        process.perform()
    if send is None or receive is None:
        return send, receive, False
    whole = not receive.truncated and receive.message is not None and not withdrawn(send)
    return send, receive, whole


def withdrawn(send: Send) -> bool:
    """Whether a send is complete although its message never arrived, nor will."""
    return not (send.arrived or send.detached)


def unpickle(buffer: ObjectBuffer) -> Any:
    """The object that arrived."""
    data = buffer.data
    buffer.data = None
    if data is None or len(data) == 0:
        return None
    if buffer.buffer is not None:
        view: memoryview = buffer.buffer
        view[: len(data)] = data
        data = view[: len(data)]
    return pickle.loads(data)


def object_buffer(buf: object, source: object, default: int = UNLIMITED) -> ObjectBuffer:
    """The buffer of a lower-case receive.

    A program may pass the memory, an integer for its size in bytes, or None for the `default`.
    """
    if buf is None:
        return ObjectBuffer(default)
    if source == PROC_NULL:
        return ObjectBuffer()
    if spellings.is_integral(buf):
        return ObjectBuffer(spellings.object_size(buf))
    memory = acquire(buf, writable=True).memory
    return ObjectBuffer(memory.nbytes, memory)


def interruption(request: Envelope) -> int:
    """The error class of a request that was ended from outside: a revocation or a failure."""
    rank = current()
    communicator: Any = rank.universe.communicators.get(request.context.number)
    pid = rank.pid
    if communicator is not None and (
        pid in communicator.revoked or pid in communicator.remote.revoked
    ):
        return ERR_REVOKED
    return ERR_PROC_FAILED


def interrupted(comm: object, request: Envelope) -> None:
    """Report a call that a revocation or a failure has ended."""
    error = interruption(request)
    if error == ERR_REVOKED:
        fail(error, "the communicator was revoked during the call", comm)
    fail(error, _who(request), comm)


def _who(request: Envelope) -> str:
    """The failed process that a request depends on."""
    lost = request.context.lost
    if lost is not None and request.source == ANY:
        ranks = ", ".join(str(source) for source in sorted(lost.sources))
        return f"a receive from any source may wait for rank {ranks}, which has failed"
    peer = request.destination if isinstance(request, Send) else request.source
    return f"rank {peer} of the communicator has failed"


def truncated(comm: object, receive: Receive) -> None:
    """Report a message that was longer than its receive, or a receive without a message."""
    send = receive.message
    if send is None:
        interrupted(comm, receive)
        return
    fail(
        ERR_TRUNCATE,
        f"a message of {send.nbytes} bytes from rank {send.source} with tag {send.tag} met a "
        f"receive of {receive.nbytes} bytes",
        comm,
    )
