"""Point-to-point communication (MPI 4.1, chapters 3 and 4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pysmpi.abi.entry import entry
from pysmpi.abi.values import (
    buffer,
    give,
    give_request,
    give_status,
    handle_at,
    read_integers,
    status_argument,
    view,
    write_integer,
)
from pysmpi.mpi.base.exporting import address_of

if TYPE_CHECKING:
    from mpi4py import MPI
else:
    from pysmpi.mpi import MPI


@entry
def Send(buf: int, count: int, datatype: MPI.Datatype, dest: int, tag: int, comm: MPI.Comm) -> None:
    comm.Send(buffer(buf, count, datatype), dest, tag)


@entry
def Bsend(
    buf: int, count: int, datatype: MPI.Datatype, dest: int, tag: int, comm: MPI.Comm
) -> None:
    comm.Bsend(buffer(buf, count, datatype), dest, tag)


@entry
def Ssend(
    buf: int, count: int, datatype: MPI.Datatype, dest: int, tag: int, comm: MPI.Comm
) -> None:
    comm.Ssend(buffer(buf, count, datatype), dest, tag)


@entry
def Rsend(
    buf: int, count: int, datatype: MPI.Datatype, dest: int, tag: int, comm: MPI.Comm
) -> None:
    comm.Rsend(buffer(buf, count, datatype), dest, tag)


@entry
def Recv(
    buf: int, count: int, datatype: MPI.Datatype, source: int, tag: int, comm: MPI.Comm, status: int
) -> None:
    result = status_argument(status)
    try:
        comm.Recv(buffer(buf, count, datatype), source, tag, result)
    finally:
        give_status(status, result)


@entry
def Sendrecv(
    sendbuf: int, sendcount: int, sendtype: MPI.Datatype, dest: int, sendtag: int,
    recvbuf: int, recvcount: int, recvtype: MPI.Datatype, source: int, recvtag: int,
    comm: MPI.Comm, status: int,
) -> None:  # fmt: skip
    result = status_argument(status)
    try:
        comm.Sendrecv(
            buffer(sendbuf, sendcount, sendtype), dest, sendtag,
            buffer(recvbuf, recvcount, recvtype), source, recvtag, result,
        )  # fmt: skip
    finally:
        give_status(status, result)


@entry
def Sendrecv_replace(
    buf: int, count: int, datatype: MPI.Datatype, dest: int, sendtag: int, source: int,
    recvtag: int, comm: MPI.Comm, status: int,
) -> None:  # fmt: skip
    result = status_argument(status)
    try:
        comm.Sendrecv_replace(buffer(buf, count, datatype), dest, sendtag, source, recvtag, result)
    finally:
        give_status(status, result)


@entry
def Isend(
    buf: int, count: int, datatype: MPI.Datatype, dest: int, tag: int, comm: MPI.Comm, request: int
) -> None:
    give_request(request, comm.Isend(buffer(buf, count, datatype), dest, tag))


@entry
def Ibsend(
    buf: int, count: int, datatype: MPI.Datatype, dest: int, tag: int, comm: MPI.Comm, request: int
) -> None:
    give_request(request, comm.Ibsend(buffer(buf, count, datatype), dest, tag))


@entry
def Issend(
    buf: int, count: int, datatype: MPI.Datatype, dest: int, tag: int, comm: MPI.Comm, request: int
) -> None:
    give_request(request, comm.Issend(buffer(buf, count, datatype), dest, tag))


@entry
def Irsend(
    buf: int, count: int, datatype: MPI.Datatype, dest: int, tag: int, comm: MPI.Comm, request: int
) -> None:
    give_request(request, comm.Irsend(buffer(buf, count, datatype), dest, tag))


@entry
def Irecv(
    buf: int, count: int, datatype: MPI.Datatype, source: int, tag: int, comm: MPI.Comm,
    request: int,
) -> None:  # fmt: skip
    give_request(request, comm.Irecv(buffer(buf, count, datatype), source, tag))


@entry
def Isendrecv(
    sendbuf: int, sendcount: int, sendtype: MPI.Datatype, dest: int, sendtag: int,
    recvbuf: int, recvcount: int, recvtype: MPI.Datatype, source: int, recvtag: int,
    comm: MPI.Comm, request: int,
) -> None:  # fmt: skip
    made = comm.Isendrecv(
        buffer(sendbuf, sendcount, sendtype), dest, sendtag,
        buffer(recvbuf, recvcount, recvtype), source, recvtag,
    )  # fmt: skip
    give_request(request, made)


@entry
def Isendrecv_replace(
    buf: int, count: int, datatype: MPI.Datatype, dest: int, sendtag: int, source: int,
    recvtag: int, comm: MPI.Comm, request: int,
) -> None:  # fmt: skip
    made = comm.Isendrecv_replace(buffer(buf, count, datatype), dest, sendtag, source, recvtag)
    give_request(request, made)


@entry
def Send_init(
    buf: int, count: int, datatype: MPI.Datatype, dest: int, tag: int, comm: MPI.Comm, request: int
) -> None:
    give_request(request, comm.Send_init(buffer(buf, count, datatype), dest, tag))


@entry
def Bsend_init(
    buf: int, count: int, datatype: MPI.Datatype, dest: int, tag: int, comm: MPI.Comm, request: int
) -> None:
    give_request(request, comm.Bsend_init(buffer(buf, count, datatype), dest, tag))


@entry
def Ssend_init(
    buf: int, count: int, datatype: MPI.Datatype, dest: int, tag: int, comm: MPI.Comm, request: int
) -> None:
    give_request(request, comm.Ssend_init(buffer(buf, count, datatype), dest, tag))


@entry
def Rsend_init(
    buf: int, count: int, datatype: MPI.Datatype, dest: int, tag: int, comm: MPI.Comm, request: int
) -> None:
    give_request(request, comm.Rsend_init(buffer(buf, count, datatype), dest, tag))


@entry
def Recv_init(
    buf: int, count: int, datatype: MPI.Datatype, source: int, tag: int, comm: MPI.Comm,
    request: int,
) -> None:  # fmt: skip
    give_request(request, comm.Recv_init(buffer(buf, count, datatype), source, tag))


@entry
def Psend_init(
    buf: int, partitions: int, count: int, datatype: MPI.Datatype, dest: int, tag: int,
    comm: MPI.Comm, info: MPI.Info, request: int,
) -> None:  # fmt: skip
    message = buffer(buf, count, datatype, partitions)
    give_request(request, comm.Psend_init(message, partitions, dest, tag, info))


@entry
def Precv_init(
    buf: int, partitions: int, count: int, datatype: MPI.Datatype, source: int, tag: int,
    comm: MPI.Comm, info: MPI.Info, request: int,
) -> None:  # fmt: skip
    message = buffer(buf, count, datatype, partitions)
    give_request(request, comm.Precv_init(message, partitions, source, tag, info))


@entry
def Pready(partition: int, request: MPI.Prequest) -> None:
    request.Pready(partition)


@entry
def Pready_range(partition_low: int, partition_high: int, request: MPI.Prequest) -> None:
    request.Pready_range(partition_low, partition_high)


@entry
def Pready_list(length: int, array_of_partitions: int, request: MPI.Prequest) -> None:
    request.Pready_list(read_integers(array_of_partitions, length))


@entry
def Parrived(request: MPI.Prequest, partition: int, flag: int) -> None:
    write_integer(flag, request.Parrived(partition))


@entry
def Probe(source: int, tag: int, comm: MPI.Comm, status: int) -> None:
    result = status_argument(status)
    comm.Probe(source, tag, result)
    give_status(status, result)


@entry
def Iprobe(source: int, tag: int, comm: MPI.Comm, flag: int, status: int) -> None:
    result = status_argument(status)
    arrived = comm.Iprobe(source, tag, result)
    write_integer(flag, arrived)
    if arrived:
        give_status(status, result)


@entry
def Mprobe(source: int, tag: int, comm: MPI.Comm, message: int, status: int) -> None:
    result = status_argument(status)
    give(message, comm.Mprobe(source, tag, result))
    give_status(status, result)


@entry
def Improbe(source: int, tag: int, comm: MPI.Comm, flag: int, message: int, status: int) -> None:
    result = status_argument(status)
    matched = comm.Improbe(source, tag, result)
    write_integer(flag, matched is not None)
    if matched is not None:
        give(message, matched)
        give_status(status, result)


@entry
def Mrecv(buf: int, count: int, datatype: MPI.Datatype, message: int, status: int) -> None:
    result = status_argument(status)
    matched = _message(message)
    matched.Recv(buffer(buf, count, datatype), result)
    give(message, MPI.MESSAGE_NULL)
    give_status(status, result)


@entry
def Imrecv(buf: int, count: int, datatype: MPI.Datatype, message: int, request: int) -> None:
    started = _message(message).Irecv(buffer(buf, count, datatype))
    give(message, MPI.MESSAGE_NULL)
    give_request(request, started)


def _message(address: int) -> MPI.Message:
    message: MPI.Message = handle_at(address, "M")
    return message


@entry
def Buffer_attach(buffer: int, size: int) -> None:
    MPI.Attach_buffer(view(buffer, size))


@entry
def Buffer_detach(buffer_addr: int, size: int, width: int) -> None:
    _detached(MPI.Detach_buffer(), buffer_addr, size, width)


def _detached(attached: Any, buffer_addr: int, size: int, width: int) -> None:
    if attached is None or attached is MPI.BUFFER_AUTOMATIC:
        write_integer(buffer_addr, -2 if attached is not None else 0, 8)
        write_integer(size, 0, width)
        return
    memory = memoryview(attached)
    write_integer(buffer_addr, address_of(memory), 8)
    write_integer(size, memory.nbytes, width)


@entry
def Buffer_flush() -> None:
    MPI.Flush_buffer()


@entry
def Buffer_iflush(request: int) -> None:
    give_request(request, MPI.Iflush_buffer())


@entry
def Comm_attach_buffer(comm: MPI.Comm, buffer: int, size: int) -> None:
    comm.Attach_buffer(view(buffer, size))


@entry
def Comm_detach_buffer(comm: MPI.Comm, buffer_addr: int, size: int, width: int) -> None:
    _detached(comm.Detach_buffer(), buffer_addr, size, width)


@entry
def Comm_flush_buffer(comm: MPI.Comm) -> None:
    comm.Flush_buffer()


@entry
def Comm_iflush_buffer(comm: MPI.Comm, request: int) -> None:
    give_request(request, comm.Iflush_buffer())


@entry
def Session_attach_buffer(session: MPI.Session, buffer: int, size: int) -> None:
    session.Attach_buffer(view(buffer, size))


@entry
def Session_detach_buffer(session: MPI.Session, buffer_addr: int, size: int, width: int) -> None:
    _detached(session.Detach_buffer(), buffer_addr, size, width)


@entry
def Session_flush_buffer(session: MPI.Session) -> None:
    session.Flush_buffer()


@entry
def Session_iflush_buffer(session: MPI.Session, request: int) -> None:
    give_request(request, session.Iflush_buffer())
