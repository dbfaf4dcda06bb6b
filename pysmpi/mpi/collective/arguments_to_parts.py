"""Conversion of the arguments of a collective call to the rank's part in it.

The blocking, non-blocking and persistent forms of an operation make the same part. A function here
gets the communicator's handle and the arguments of the program. It raises the errors of MPI, and
makes the `Call` that determines the time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pysmpi.collectives.call import Call
from pysmpi.mpi.base.constants import ERR_ROOT, PROC_NULL, ROOT
from pysmpi.mpi.base.exceptions import cint, fail
from pysmpi.mpi.base.ranks import current
from pysmpi.mpi.buffers.spellings import Blocks, MessageRegion, held
from pysmpi.mpi.collective import arguments
from pysmpi.mpi.collective.arguments import RankPosition
from pysmpi.mpi.collective.data import (
    Allgather,
    Alltoall,
    Broadcast,
    Gather,
    Scatter,
    merged,
)
from pysmpi.mpi.collective.execution import Contribution, Meeting, counts_of, new_call, run
from pysmpi.mpi.collective.reductions import Prefix, Reduction
from pysmpi.mpi.groups.communicator import Communicator
from pysmpi.mpi.operators.operators import operator_of


def where(comm: Any) -> tuple[Communicator, int, RankPosition]:
    """The calling rank's core and its place in it; an error if the communicator is null."""
    core = comm._usable()
    me = core.rank_of(current().pid)
    remote = core.remote
    return core, me, RankPosition(me, remote.size, remote is not core)


def check_root(comm: Any, core: Communicator, root: int) -> None:
    """Refuse a root that the communicator does not have."""
    if 0 <= root < core.remote.size or (core.inter and root in (ROOT, PROC_NULL)):
        return
    expected = f"0 to {core.remote.size - 1}"
    if core.inter:
        expected += ", ROOT or PROC_NULL"
    fail(ERR_ROOT, f"root is {root}, expected {expected}", comm)


def call_of(
    core: Communicator, me: int, op: str, part: MessageRegion | Blocks, root: int = 0
) -> Call:
    """The call of a rank with the given message or block."""
    return new_call(core, me, op, part.datatype._live(), part.count, root)


def barrier(comm: Any) -> Contribution:
    """Barrier."""
    core, me, _ = where(comm)
    return Meeting(core, me, Call("barrier", me, core.size))


def bcast(comm: Any, buf: Any, root: int) -> Contribution:
    """Bcast."""
    core, me, place = where(comm)
    root = cint(root)
    message = arguments.broadcast(buf, root, place)
    if not 0 <= root < place.size:
        check_root(comm, core, root)
    call = call_of(core, me, "bcast", message, root)
    return Broadcast(core, me, call, message, root == (ROOT if place.inter else me))


def gather(comm: Any, v: bool, sendbuf: Any, recvbuf: Any, root: int) -> Contribution:
    """Gather and Gatherv."""
    core, me, place = where(comm)
    root = cint(root)
    send, blocks, in_place = arguments.gather(v, sendbuf, recvbuf, root, place)
    if not 0 <= root < place.size:
        check_root(comm, core, root)
    assert isinstance(blocks, Blocks)
    receives = root == (ROOT if place.inter else me)
    if receives:
        held(blocks)
    if in_place:
        send = blocks.block(me)
    op = "gatherv" if v else "gather"
    call = call_of(core, me, op, blocks if receives and not v else send, root)
    call.in_place = in_place
    if receives and v:
        # Units of the root's datatype, including its own block.
        record = blocks.datatype._live()
        call.recv_counts = counts_of(record, blocks.counts)
        count = 0 if place.inter else blocks.counts[me]
        call = _recounted(call, new_call(core, me, op, record, count, root))
    return Gather(core, me, call, send, blocks if receives else None)


def scatter(comm: Any, v: bool, sendbuf: Any, recvbuf: Any, root: int) -> Contribution:
    """Scatter and Scatterv."""
    core, me, place = where(comm)
    root = cint(root)
    blocks, receive, in_place = arguments.scatter(v, sendbuf, recvbuf, root, place)
    if not 0 <= root < place.size:
        check_root(comm, core, root)
    assert isinstance(blocks, Blocks)
    sends = root == (ROOT if place.inter else me)
    op = "scatterv" if v else "scatter"
    if sends:
        held(blocks)
        record = blocks.datatype._live()
        counts = blocks.counts
        count = blocks.count if not v else 0 if place.inter else counts[me]
        call = new_call(core, me, op, record, count, root)
        if v:
            call.send_counts = counts_of(record, counts)
    else:
        call = call_of(core, me, op, receive, root)
    call.in_place = in_place
    takes = not in_place and not (place.inter and root < 0)
    return Scatter(core, me, call, blocks if sends else None, receive if takes else None)  # type: ignore[arg-type]


def allgather(comm: Any, v: bool, sendbuf: Any, recvbuf: Any) -> Contribution:
    """Allgather and Allgatherv."""
    core, me, place = where(comm)
    send, blocks, in_place = arguments.allgather(v, sendbuf, recvbuf, place)
    assert isinstance(blocks, Blocks)
    held(blocks)
    if in_place:
        send = blocks.block(me)
    if v:
        call = call_of(core, me, "allgatherv", send)
        record = blocks.datatype._live()
        call.recv_counts = counts_of(record, blocks.counts)
        if not place.inter:
            call = _recounted(call, new_call(core, me, "allgatherv", record, blocks.counts[me]))
    else:
        call = call_of(core, me, "allgather", send if place.inter else blocks)
    call.in_place = in_place
    return Allgather(core, me, call, send, blocks)


def _recounted(call: Call, units: Call) -> Call:
    """The call, counted in the units of another."""
    call.count, call.type_size = units.count, units.type_size
    return call


def alltoall(comm: Any, v: bool, sendbuf: Any, recvbuf: Any) -> Contribution:
    """Alltoall and Alltoallv."""
    core, me, place = where(comm)
    send, receive, in_place = arguments.alltoall(v, sendbuf, recvbuf, place)
    assert isinstance(send, Blocks) and isinstance(receive, Blocks)
    outgoing = receive if in_place else send
    if v:
        sent = outgoing.datatype._live()
        call = new_call(core, me, "alltoallv", sent, 0)
        taken = receive.datatype._live()
        call.send_counts = counts_of(sent, outgoing.counts)
        call.recv_counts = counts_of(taken, receive.counts)
        if new_call(core, me, "alltoallv", taken, 0).type_size != call.type_size:
            _in_bytes(call, outgoing, receive)
    else:
        call = call_of(core, me, "alltoall", outgoing)
    call.in_place = in_place
    return Alltoall(core, me, call, None if in_place else held(send), held(receive))


def alltoallw(comm: Any, sendbuf: Any, recvbuf: Any) -> Contribution:
    """Alltoallw."""
    core, me, place = where(comm)
    send, receive, in_place = arguments.alltoallw(sendbuf, recvbuf, place)
    assert isinstance(send, Blocks) and isinstance(receive, Blocks)
    call = Call("alltoallw", me, core.size)
    _in_bytes(call, receive if in_place else send, receive)
    call.in_place = in_place
    return Alltoall(core, me, call, None if in_place else held(send), held(receive))


def _in_bytes(call: Call, outgoing: Blocks, incoming: Blocks) -> None:
    call.type_size = 1
    call.send_counts = tuple(outgoing.sizes())
    call.recv_counts = tuple(incoming.sizes())


def reduce(comm: Any, sendbuf: Any, recvbuf: Any, op: Any, root: int) -> Contribution:
    """Reduce."""
    core, me, place = where(comm)
    root = cint(root)
    send, receive, in_place = arguments.reduce(sendbuf, recvbuf, root, place)
    if not 0 <= root < place.size:
        check_root(comm, core, root)
    assert isinstance(send, MessageRegion) and isinstance(receive, MessageRegion)
    takes = root == (ROOT if place.inter else me)
    brings = not place.inter or root >= 0
    whole = receive if takes else send
    message = receive if in_place else send
    return _reduction(
        comm, core, me, "reduce", op, message if brings else None,
        receive if takes else None, whole, root, in_place,
    )  # fmt: skip


def allreduce(comm: Any, sendbuf: Any, recvbuf: Any, op: Any) -> Contribution:
    """Allreduce."""
    core, me, place = where(comm)
    send, receive, in_place = arguments.allreduce(sendbuf, recvbuf, place)
    assert isinstance(send, MessageRegion) and isinstance(receive, MessageRegion)
    message = receive if in_place else send
    return _reduction(
        comm, core, me, "allreduce", op, message, receive, receive, 0, in_place
    )


def _reduction(
    comm: Any,
    core: Communicator,
    me: int,
    name: str,
    op: Any,
    message: MessageRegion | None,
    target: MessageRegion | None,
    whole: MessageRegion,
    root: int,
    in_place: bool,
) -> Reduction:
    # Idle ranks of an intercommunicator give no datatype that could fit the operation.
    idle = message is None and target is None
    operator = operator_of(op, None if idle or root == PROC_NULL else whole.datatype._live())
    call = call_of(core, me, name, whole, root)
    call.commutative = operator.commutative
    call.in_place = in_place
    return Reduction(core, me, call, operator, message, target, whole)


def reduce_scatter_block(comm: Any, sendbuf: Any, recvbuf: Any, op: Any) -> Contribution:
    """Reduce_scatter_block."""
    core, me, place = where(comm)
    place = place._replace(size=core.size)
    send, receive, in_place = arguments.reduce_scatter_block(sendbuf, recvbuf, place)
    blocks = receive if in_place else send
    assert isinstance(blocks, Blocks)
    whole = merged(blocks)
    assert whole is not None
    target = whole if in_place else receive
    assert isinstance(target, MessageRegion)
    part = _reduction(
        comm, core, me, "reduce_scatter_block", op, whole, target, whole, 0, in_place
    )
    part.call.count //= core.size
    nbytes = whole.nbytes // core.size
    part.start = me * nbytes
    part.stop = part.start + nbytes
    return part


def reduce_scatter(comm: Any, sendbuf: Any, recvbuf: Any, recvcounts: Any, op: Any) -> Contribution:
    """Reduce_scatter."""
    core, me, place = where(comm)
    place = place._replace(size=core.size)
    buffers = arguments.reduce_scatter(sendbuf, recvbuf, place)
    send, target, in_place = buffers
    assert isinstance(send, MessageRegion) and isinstance(target, MessageRegion)
    if recvcounts is None and not place.inter and not in_place:
        recvcounts = all_counts(comm, target.count)
    counts = arguments.reduce_scatter_counts(buffers, recvcounts, place)
    whole = target if in_place else send
    part = _reduction(comm, core, me, "reduce_scatter", op, whole, target, whole, 0, in_place)
    record = whole.datatype._live()
    part.call.recv_counts = counts_of(record, counts)
    size = record.layout.size
    part.start = sum(counts[:me]) * size
    part.stop = part.start + counts[me] * size
    return part


def all_counts(comm: Any, count: int) -> list[int]:
    """The `count` of every rank, by an Allgather, as in mpi4py without counts."""
    size = comm.Get_size()
    counts = np.empty(size, np.int64)
    part: Any = allgather(comm, False, np.array([count], np.int64), counts)
    part.exempt = True
    run(current(), comm, part)
    return [int(count) for count in counts]


def scan(comm: Any, sendbuf: Any, recvbuf: Any, op: Any, exclusive: bool) -> Contribution:
    """Scan and Exscan."""
    core, me, _ = where(comm)
    send, target, in_place = arguments.scan(sendbuf, recvbuf)
    assert isinstance(send, MessageRegion) and isinstance(target, MessageRegion)
    message = target if in_place else send
    operator = operator_of(op, target.datatype._live())
    call = call_of(core, me, "exscan" if exclusive else "scan", target)
    call.commutative = operator.commutative
    call.in_place = in_place
    return Prefix(core, me, call, operator, message, target, exclusive)
