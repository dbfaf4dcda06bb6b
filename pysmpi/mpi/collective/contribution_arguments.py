"""Conversion of the arguments of a collective call to the rank's contribution.

The blocking, non-blocking and persistent forms of an operation make the same contribution. A
function here gets the communicator's handle and the arguments of the program. It raises the errors
of MPI, and makes the `Call` that determines the time.

This module is compiled: every collective call with buffers passes through it.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from pysmpi.mpi.base.constants import ERR_ROOT, PROC_NULL, ROOT
from pysmpi.mpi.base.exceptions import cint, fail
from pysmpi.mpi.base.running import calling_rank
from pysmpi.mpi.buffers.aliasing import alias, alias_of_block, refuse_alias
from pysmpi.mpi.buffers.contiguous import alike, contiguous
from pysmpi.mpi.buffers.memory import IN_PLACE
from pysmpi.mpi.buffers.spellings import Blocks, MessageRegion, held
from pysmpi.mpi.collective import arguments
from pysmpi.mpi.collective.arguments import RankPosition
from pysmpi.mpi.collective.contribution import (
    BackgroundBarrier,
    Contribution,
    WithoutData,
)
from pysmpi.mpi.collective.data import (
    Allgather,
    Alltoall,
    Broadcast,
    Gather,
    Scatter,
    merged,
)
from pysmpi.mpi.collective.execution import call_of, count_of, counts_of, run
from pysmpi.mpi.collective.in_place import note_in_place
from pysmpi.mpi.collective.reductions import Prefix, Reduction
from pysmpi.mpi.datatypes.records import Type
from pysmpi.mpi.groups.communicator import Communicator, check_intact
from pysmpi.mpi.operators.arithmetic import Operator
from pysmpi.mpi.operators.operators import Op, operator_of
from pysmpi.mpi.point_to_point.envelopes import communicator_of

_IN_PLACE: Final[object] = IN_PLACE


def located(comm: object) -> tuple[Communicator, int]:
    """The communicator that a rank calls, and its place in it; an error if it is not intact."""
    rank = calling_rank()
    communicator = communicator_of(comm, rank)
    if communicator.revoked:
        check_intact(comm, communicator)
    first = communicator.first
    return communicator, rank.pid - first if first >= 0 else communicator.rank_of(rank.pid)


def where(comm: object) -> tuple[Communicator, int, RankPosition]:
    """The calling rank's communicator and its place in it; an error if the communicator is null."""
    communicator, me = located(comm)
    remote = communicator.remote
    return communicator, me, RankPosition(me, remote.size, remote is not communicator)


def _is_member(communicator: Communicator, root: int) -> bool:
    """Whether a root is a rank of an intracommunicator: then a short way may follow."""
    return communicator.remote is communicator and 0 <= root < communicator.size


def check_root(comm: object, communicator: Communicator, root: int) -> None:
    """Refuse a root that the communicator does not have."""
    if 0 <= root < communicator.remote.size or (communicator.inter and root in (ROOT, PROC_NULL)):
        return
    expected = f"0 to {communicator.remote.size - 1}"
    if communicator.inter:
        expected += ", ROOT or PROC_NULL"
    fail(ERR_ROOT, f"root is {root}, expected {expected}", comm)


def units_of(region: MessageRegion | Blocks) -> tuple[int, int]:
    """(number of units, bytes of a unit) of a message or a block."""
    return count_of(_record(region), region.count)


def _record(region: MessageRegion | Blocks) -> Type:
    """The object of the datatype of a message, without a call in Python."""
    datatype = region.datatype
    record = datatype._impl
    return datatype._live() if record is None else record


def _operator(op: object, record: Type | None) -> Operator:
    """`operator_of`, without a call in Python for an operator that is defined on the datatype."""
    if op.__class__ is Op:
        operator: Operator | None = op._impl
        if operator is not None:
            if record is None or not operator.name or record.kind in operator.kinds:
                return operator
    return operator_of(op, record)


def _refuse_alias(comm: object, communicator: Communicator, me: int) -> None:
    """Refuse buffers that begin at one address.

    The call counts: as with MPICH, calls that the other ranks make later match those of this rank.
    """
    communicator.next_call(me)
    refuse_alias(comm)


def barrier(comm: object) -> Contribution:
    """Barrier."""
    communicator, me = located(comm)
    return WithoutData(communicator, me, call_of(communicator, me, "barrier"))


def background_barrier(comm: object) -> Contribution:
    """Ibarrier, Barrier_init."""
    communicator, me = located(comm)
    return BackgroundBarrier(communicator, me, call_of(communicator, me, "barrier"))


def bcast(comm: object, buf: object, root: object) -> Contribution:
    """Bcast."""
    if isinstance(root, int):
        communicator, me = located(comm)
        if _is_member(communicator, root):
            found = contiguous(buf, root != me)
            if found is not None:
                count, unit = units_of(found)
                call = call_of(communicator, me, "bcast", count, unit, root)
                return Broadcast(communicator, me, call, found, root == me)
    communicator, me, place = where(comm)
    root = cint(root)
    message = arguments.broadcast(buf, root, place)
    if not 0 <= root < place.size:
        check_root(comm, communicator, root)
    count, unit = units_of(message)
    call = call_of(communicator, me, "bcast", count, unit, root)
    return Broadcast(communicator, me, call, message, root == (ROOT if place.inter else me))


def gather(comm: object, v: bool, sendbuf: object, recvbuf: object, root: object) -> Contribution:
    """Gather and Gatherv."""
    if isinstance(root, int) and sendbuf is not _IN_PLACE:
        communicator, me = located(comm)
        if root != me and _is_member(communicator, root):
            found = contiguous(sendbuf, False)
            if found is not None:
                count, unit = units_of(found)
                call = call_of(communicator, me, "gatherv" if v else "gather", count, unit, root)
                return Gather(communicator, me, call, found, None)
    communicator, me, place = where(comm)
    root = cint(root)
    send, blocks, in_place = arguments.gather(v, sendbuf, recvbuf, root, place)
    if not 0 <= root < place.size:
        check_root(comm, communicator, root)
    assert isinstance(send, MessageRegion) and isinstance(blocks, Blocks)
    receives = root == (ROOT if place.inter else me)
    if receives:
        held(blocks)
    elif sendbuf is _IN_PLACE and not place.inter:
        note_in_place(communicator, me, "sendbuf")
    if in_place:
        send = blocks.block(me)
    elif receives and not place.inter and alias_of_block(send, blocks, me, not v):
        _refuse_alias(comm, communicator, me)
    counts = None
    if not receives:
        count, unit = units_of(send)
    elif not v:
        count, unit = units_of(blocks)
    else:
        # Units of the root's datatype, including its own block.
        record = blocks.datatype._live()
        counts = counts_of(record, blocks.counts)
        count, unit = count_of(record, 0 if place.inter else blocks.counts[me])
    call = call_of(
        communicator, me, "gatherv" if v else "gather", count, unit, root, in_place=in_place,
        recv_counts=counts,
    )  # fmt: skip
    return Gather(communicator, me, call, send, blocks if receives else None)


def scatter(comm: object, v: bool, sendbuf: object, recvbuf: object, root: object) -> Contribution:
    """Scatter and Scatterv."""
    if isinstance(root, int) and recvbuf is not _IN_PLACE:
        communicator, me = located(comm)
        if root != me and _is_member(communicator, root):
            found = contiguous(recvbuf, True)
            if found is not None:
                count, unit = units_of(found)
                call = call_of(communicator, me, "scatterv" if v else "scatter", count, unit, root)
                return Scatter(communicator, me, call, None, found)
    communicator, me, place = where(comm)
    root = cint(root)
    blocks, receive, in_place = arguments.scatter(v, sendbuf, recvbuf, root, place)
    if not 0 <= root < place.size:
        check_root(comm, communicator, root)
    assert isinstance(blocks, Blocks) and isinstance(receive, MessageRegion)
    sends = root == (ROOT if place.inter else me)
    counts = None
    if not sends:
        if recvbuf is _IN_PLACE and not place.inter:
            note_in_place(communicator, me, "recvbuf")
        count, unit = units_of(receive)
    else:
        held(blocks)
        if not in_place and not place.inter and alias_of_block(receive, blocks, me, not v):
            _refuse_alias(comm, communicator, me)
        record = blocks.datatype._live()
        count = blocks.count if not v else 0 if place.inter else blocks.counts[me]
        count, unit = count_of(record, count)
        if v:
            counts = counts_of(record, blocks.counts)
    call = call_of(
        communicator, me, "scatterv" if v else "scatter", count, unit, root, in_place=in_place,
        send_counts=counts,
    )  # fmt: skip
    takes = not in_place and not (place.inter and root < 0)
    return Scatter(communicator, me, call, blocks if sends else None, receive if takes else None)


def allgather(comm: object, v: bool, sendbuf: object, recvbuf: object) -> Contribution:
    """Allgather and Allgatherv."""
    communicator, me, place = where(comm)
    send, blocks, in_place = arguments.allgather(v, sendbuf, recvbuf, place)
    assert isinstance(send, MessageRegion) and isinstance(blocks, Blocks)
    held(blocks)
    if in_place:
        send = blocks.block(me)
    elif not place.inter and alias_of_block(send, blocks, me, not v):
        _refuse_alias(comm, communicator, me)
    counts = None
    count, unit = units_of(send if place.inter else blocks)
    if v:
        record = blocks.datatype._live()
        counts = counts_of(record, blocks.counts)
        if not place.inter:
            count, unit = count_of(record, blocks.counts[me])
    call = call_of(
        communicator, me, "allgatherv" if v else "allgather", count, unit, in_place=in_place,
        recv_counts=counts,
    )  # fmt: skip
    return Allgather(communicator, me, call, send, blocks)


def alltoall(comm: object, v: bool, sendbuf: object, recvbuf: object) -> Contribution:
    """Alltoall and Alltoallv."""
    communicator, me, place = where(comm)
    send, receive, in_place = arguments.alltoall(v, sendbuf, recvbuf, place)
    assert isinstance(send, Blocks) and isinstance(receive, Blocks)
    outgoing = receive if in_place else send
    if v:
        sent, taken = outgoing.datatype._live(), receive.datatype._live()
        _, unit = count_of(sent, 0)
        if count_of(taken, 0)[1] == unit:
            sends, receives = counts_of(sent, outgoing.counts), counts_of(taken, receive.counts)
        else:
            unit, sends, receives = 1, tuple(outgoing.sizes()), tuple(receive.sizes())
        call = call_of(
            communicator, me, "alltoallv", 0, unit, in_place=in_place, send_counts=sends,
            recv_counts=receives,
        )  # fmt: skip
    else:
        count, unit = units_of(outgoing)
        if not in_place and not place.inter and send.count and send.count == receive.count:
            if send.datatype == receive.datatype and alias(send.block(0), receive.block(0)):
                _refuse_alias(comm, communicator, me)
        call = call_of(communicator, me, "alltoall", count, unit, in_place=in_place)
    return Alltoall(communicator, me, call, None if in_place else held(send), held(receive))


def alltoallw(comm: object, sendbuf: object, recvbuf: object) -> Contribution:
    """Alltoallw."""
    communicator, me, place = where(comm)
    send, receive, in_place = arguments.alltoallw(sendbuf, recvbuf, place)
    assert isinstance(send, Blocks) and isinstance(receive, Blocks)
    outgoing = receive if in_place else send
    call = call_of(
        communicator, me, "alltoallw", in_place=in_place, send_counts=tuple(outgoing.sizes()),
        recv_counts=tuple(receive.sizes()),
    )  # fmt: skip
    return Alltoall(communicator, me, call, None if in_place else held(send), held(receive))


def reduce(
    comm: object, sendbuf: object, recvbuf: object, op: object, root: object
) -> Contribution:
    """Reduce."""
    if isinstance(root, int) and sendbuf is not _IN_PLACE:
        communicator, me = located(comm)
        if _is_member(communicator, root):
            if root != me:
                found = contiguous(sendbuf, False)
                if found is not None:
                    return _reduction(
                        comm, communicator, me, "reduce", op, found, None, found, root, False
                    )
            else:
                both = alike(sendbuf, recvbuf)
                if both is not None:
                    out, into = both
                    return _reduction(
                        comm, communicator, me, "reduce", op, out, into, into, root, False
                    )
    communicator, me, place = where(comm)
    root = cint(root)
    send, receive, in_place = arguments.reduce(sendbuf, recvbuf, root, place)
    if not 0 <= root < place.size:
        check_root(comm, communicator, root)
    assert isinstance(send, MessageRegion) and isinstance(receive, MessageRegion)
    takes = root == (ROOT if place.inter else me)
    brings = not place.inter or root >= 0
    if sendbuf is _IN_PLACE and not takes and not place.inter:
        note_in_place(communicator, me, "sendbuf")
    whole = receive if takes else send
    message = receive if in_place else send
    return _reduction(
        comm, communicator, me, "reduce", op, message if brings else None,
        receive if takes else None, whole, root, in_place,
    )  # fmt: skip


def allreduce(comm: object, sendbuf: object, recvbuf: object, op: object) -> Contribution:
    """Allreduce."""
    if sendbuf is _IN_PLACE:
        communicator, me = located(comm)
        if communicator.remote is communicator:
            whole = contiguous(recvbuf, True)
            if whole is not None:
                return _reduction(
                    comm, communicator, me, "allreduce", op, whole, whole, whole, 0, True
                )
    both = alike(sendbuf, recvbuf)
    if both is not None:
        communicator, me = located(comm)
        send, receive = both
        return _reduction(comm, communicator, me, "allreduce", op, send, receive, receive, 0, False)
    communicator, me, place = where(comm)
    source, target, in_place = arguments.allreduce(sendbuf, recvbuf, place)
    assert isinstance(source, MessageRegion) and isinstance(target, MessageRegion)
    message = target if in_place else source
    return _reduction(comm, communicator, me, "allreduce", op, message, target, target, 0, in_place)


def _reduction(
    comm: object,
    communicator: Communicator,
    me: int,
    name: str,
    op: object,
    message: MessageRegion | None,
    target: MessageRegion | None,
    whole: MessageRegion,
    root: int,
    in_place: bool,
    blocks: int = 1,
    counts: list[int] | None = None,
) -> Reduction:
    """A rank's contribution; its call counts one of `blocks` equal blocks, or has `counts`."""
    # Idle ranks of an intercommunicator give no datatype that could fit the operation.
    idle = message is None and target is None
    record = _record(whole)
    operator = _operator(op, None if idle or root == PROC_NULL else record)
    if message is not None and target is not None and not in_place and whole.count:
        if communicator.remote is communicator and alias(message, target):
            _refuse_alias(comm, communicator, me)
    count, unit = count_of(record, whole.count)
    call = call_of(
        communicator, me, name, count // blocks, unit, root, operator.commutative, in_place,
        recv_counts=None if counts is None else counts_of(record, counts),
    )  # fmt: skip
    return Reduction(
        communicator, me, call, operator, message, target, whole.count, record, whole.nbytes
    )


def reduce_scatter_block(
    comm: object, sendbuf: object, recvbuf: object, op: object
) -> Contribution:
    """Reduce_scatter_block."""
    communicator, me, place = where(comm)
    place = place._replace(size=communicator.size)
    send, receive, in_place = arguments.reduce_scatter_block(sendbuf, recvbuf, place)
    blocks = receive if in_place else send
    assert isinstance(blocks, Blocks)
    whole = merged(blocks)
    assert whole is not None
    target = whole if in_place else receive
    assert isinstance(target, MessageRegion)
    contribution = _reduction(
        comm,
        communicator,
        me,
        "reduce_scatter_block",
        op,
        whole,
        target,
        whole,
        0,
        in_place,
        communicator.size,
    )
    nbytes = whole.nbytes // communicator.size
    contribution.start = me * nbytes
    contribution.stop = contribution.start + nbytes
    return contribution


def reduce_scatter(
    comm: object, sendbuf: object, recvbuf: object, recvcounts: object, op: object
) -> Contribution:
    """Reduce_scatter."""
    communicator, me, place = where(comm)
    place = place._replace(size=communicator.size)
    buffers = arguments.reduce_scatter(sendbuf, recvbuf, place)
    send, target, in_place = buffers
    assert isinstance(send, MessageRegion) and isinstance(target, MessageRegion)
    if recvcounts is None and not place.inter and not in_place:
        recvcounts = all_counts(comm, target.count)
    counts = arguments.reduce_scatter_counts(buffers, recvcounts, place)
    whole = target if in_place else send
    contribution = _reduction(
        comm,
        communicator,
        me,
        "reduce_scatter",
        op,
        whole,
        target,
        whole,
        0,
        in_place,
        counts=counts,
    )
    size = whole.datatype._live().layout.size
    contribution.start = sum(counts[:me]) * size
    contribution.stop = contribution.start + counts[me] * size
    return contribution


def all_counts(comm: Any, count: int) -> list[int]:
    """The `count` of every rank, by an Allgather, as in mpi4py without counts."""
    size = comm.Get_size()
    counts = np.empty(size, np.int64)
    contribution: Any = allgather(comm, False, np.array([count], np.int64), counts)
    contribution.exempt = True
    run(comm, contribution)
    return [int(count) for count in counts]


def scan(
    comm: object, sendbuf: object, recvbuf: object, op: object, exclusive: bool
) -> Contribution:
    """Scan and Exscan."""
    communicator, me, _ = where(comm)
    send, target, in_place = arguments.scan(sendbuf, recvbuf)
    assert isinstance(send, MessageRegion) and isinstance(target, MessageRegion)
    message = target if in_place else send
    record = target.datatype._live()
    operator = operator_of(op, record)
    if not in_place and target.count and alias(send, target):
        _refuse_alias(comm, communicator, me)
    count, unit = units_of(target)
    name = "exscan" if exclusive else "scan"
    call = call_of(communicator, me, name, count, unit, 0, operator.commutative, in_place)
    return Prefix(communicator, me, call, operator, message, target, exclusive, record)
