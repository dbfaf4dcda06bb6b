"""The arguments of a collective call, and the contribution that the calling rank makes with them.

The blocking, non-blocking and persistent forms of an operation make the same contribution. The
call, the root and the groups of the communicator determine the buffers that a process must give:
for reading or writing, with one block or one for each process, and whether IN_PLACE is allowed. A
function here implements these rules for one operation, with the errors of MPI, and makes the call
that determines the time. Arguments that mpi4py ignores are not read.

This module is compiled: every collective call with buffers passes through it. Its functions raise
nothing themselves: an exception that starts in compiled code is a bug of pysmpi.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np

from pysmpi.mpi.base.constants import ERR_ROOT, PROC_NULL, ROOT
from pysmpi.mpi.base.exceptions import cint, fail
from pysmpi.mpi.base.ranks import Rank
from pysmpi.mpi.base.running import calling_rank
from pysmpi.mpi.buffers.aliasing import alias, alias_of_block, refuse_alias
from pysmpi.mpi.buffers.contiguous import alike, contiguous
from pysmpi.mpi.buffers.memory import IN_PLACE
from pysmpi.mpi.buffers.spellings import (
    EMPTY,
    Blocks,
    MessageRegion,
    check_same,
    equal_blocks,
    held,
    matching,
    reduce_scatter_counts,
    reduction,
    vector,
    vector_w,
)
from pysmpi.mpi.collective.contribution import (
    BackgroundBarrier,
    Contribution,
    WithoutData,
    run,
)
from pysmpi.mpi.collective.data import (
    Allgather,
    Alltoall,
    Broadcast,
    Gather,
    Scatter,
    merged,
)
from pysmpi.mpi.collective.in_place import note_in_place
from pysmpi.mpi.collective.reductions import Prefix, Reduction
from pysmpi.mpi.collective.schedules import scheduled_call
from pysmpi.mpi.datatypes.layouts import leaves
from pysmpi.mpi.datatypes.records import Type
from pysmpi.mpi.groups.communicator import Communicator, located
from pysmpi.mpi.operators.arithmetic import Operator
from pysmpi.mpi.operators.operators import Op, operator_of

_IN_PLACE: Final[object] = IN_PLACE
# A constant of the compiled module, which is read without a look into a dictionary.
_EMPTY: Final[MessageRegion] = EMPTY


# Roots.


def _number(root: object) -> int:
    """A root as an integer of C."""
    return root if isinstance(root, int) and 0 <= root <= 0x7FFFFFFF else cint(root)


def check_root(comm: object, communicator: Communicator, root: int) -> None:
    """Refuse a root that the communicator does not have."""
    remote = communicator.remote
    inter = remote is not communicator
    if 0 <= root < remote.size or (inter and root in (ROOT, PROC_NULL)):
        return
    expected = f"0 to {remote.size - 1}"
    if inter:
        expected += ", ROOT or PROC_NULL"
    fail(ERR_ROOT, f"root is {root}, expected {expected}", comm)


def _is_root(communicator: Communicator, me: int, root: int) -> bool:
    """Whether the process is at the rooted end of the call."""
    if communicator.remote is communicator:
        return root == me
    return root == ROOT or root == PROC_NULL


# Buffers.


def _is_in_place(communicator: Communicator, spec: object) -> bool:
    """Whether the data is in the other buffer."""
    return (spec is None or spec is _IN_PLACE) and communicator.remote is communicator


def _message(spec: object, writable: bool, root: int = 0) -> MessageRegion:
    """A buffer with one message; empty if the root is PROC_NULL."""
    if root != PROC_NULL:
        message = contiguous(spec, writable)
        if message is not None:
            return message
    region: MessageRegion = reduction(spec, writable, root)
    return region


def _pair(
    comm: object, communicator: Communicator, me: int, op: object, send: object, receive: object
) -> tuple[MessageRegion, MessageRegion]:
    """The two buffers of a reduction, which have the same count and datatype."""
    both = alike(send, receive)
    if both is None:
        both = matching(send, receive)
        _check_apart(comm, communicator, me, op, both[0], both[1])
    return both


def blocks_of(v: bool, spec: object, writable: bool, count: int, root: int = 0) -> Blocks:
    """A buffer with `count` blocks, equal ones unless it is a `v` form."""
    blocks: Blocks = (vector if v else equal_blocks)(spec, writable, count, root)
    blocks.check()
    return blocks


def blocks_w(spec: object, writable: bool, count: int) -> Blocks:
    """A buffer with `count` blocks, each with its datatype."""
    blocks: Blocks = vector_w(spec, writable, count)
    blocks.check()
    return blocks


@lru_cache(maxsize=64)
def _no_blocks(v: bool, writable: bool, count: int) -> Blocks:
    return blocks_of(v, None, writable, count, PROC_NULL)


# Counts. Ranks may describe the same data by different datatypes, but must cut it into the same
# pieces: a derived datatype therefore counts as its basic parts, the units.


def _units(record: Type) -> tuple[int, int]:
    """(units in an element, bytes of a unit) of a datatype, for algorithms."""
    if record.unit:
        return 1, record.unit
    layout = record.layout
    if layout.size == 0:
        return 0, 1
    basic = list(leaves(layout.signature))
    if len(basic) == 1:
        size = basic[0].layout.size
        return layout.size // size, size
    return layout.size, 1


def count_of(record: Type, count: int) -> tuple[int, int]:
    """(number of units, bytes of a unit) of `count` elements of a datatype."""
    unit = record.unit
    if unit:
        return count, unit
    per, unit = _units(record)
    return count * per, unit


def counts_of(record: Type, counts: Sequence[int]) -> tuple[int, ...]:
    """Counts of elements as counts of units."""
    per, _ = _units(record)
    return tuple(counts) if per == 1 else tuple(n * per for n in counts)


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


def _check_apart(
    comm: object,
    communicator: Communicator,
    me: int,
    op: object,
    source: MessageRegion,
    target: MessageRegion,
) -> None:
    """Refuse buffers of a reduction that begin at one address; a wrong operator first."""
    if communicator.remote is communicator and source.count and alias(source, target):
        _operator(op, _record(source))
        _refuse_alias(comm, communicator, me)


def _refuse_alias(comm: object, communicator: Communicator, me: int) -> None:
    """Refuse buffers that begin at one address.

    The call counts: as with MPICH, calls that the other ranks make later match those of this rank.
    """
    communicator.next_call(me)
    refuse_alias(comm)


# Operations.


def barrier(comm: object) -> Contribution:
    """Barrier."""
    rank = calling_rank()
    communicator, me = located(comm, rank)
    return WithoutData(rank, communicator, me, scheduled_call(communicator, me, "barrier"))


def background_barrier(comm: object) -> Contribution:
    """Ibarrier, Barrier_init."""
    rank = calling_rank()
    communicator, me = located(comm, rank)
    return BackgroundBarrier(rank, communicator, me, scheduled_call(communicator, me, "barrier"))


def bcast(comm: object, buf: object, root_argument: object) -> Contribution:
    """Bcast: the root reads its buffer, the others write theirs."""
    rank = calling_rank()
    communicator, me = located(comm, rank)
    root = _number(root_argument)
    message = _message(buf, not _is_root(communicator, me, root), root)
    if not 0 <= root < communicator.remote.size:
        check_root(comm, communicator, root)
    count, unit = units_of(message)
    call = scheduled_call(communicator, me, "bcast", count, unit, root)
    sends = root == (me if communicator.remote is communicator else ROOT)
    return Broadcast(rank, communicator, me, call, message, sends)


def gather(
    comm: object, v: bool, sendbuf: object, recvbuf: object, root_argument: object
) -> Contribution:
    """Gather and Gatherv."""
    rank = calling_rank()
    communicator, me = located(comm, rank)
    root = _number(root_argument)
    name = "gatherv" if v else "gather"
    if _is_root(communicator, me, root):
        return _gather_at_root(comm, rank, communicator, me, v, sendbuf, recvbuf, root)
    message = _message(sendbuf, False, root)
    if not 0 <= root < communicator.remote.size:
        check_root(comm, communicator, root)
    if sendbuf is _IN_PLACE and communicator.remote is communicator:
        note_in_place(communicator, me, "sendbuf")
    count, unit = units_of(message)
    call = scheduled_call(communicator, me, name, count, unit, root)
    return Gather(rank, communicator, me, call, message, None)


def _gather_at_root(
    comm: object,
    rank: Rank,
    communicator: Communicator,
    me: int,
    v: bool,
    sendbuf: object,
    recvbuf: object,
    root: int,
) -> Contribution:
    inter = communicator.remote is not communicator
    name = "gatherv" if v else "gather"
    blocks = blocks_of(v, recvbuf, True, communicator.remote.size, root)
    if root == PROC_NULL:
        count, unit = units_of(_EMPTY)
        call = scheduled_call(communicator, me, name, count, unit, root)
        return Gather(rank, communicator, me, call, _EMPTY, None)
    in_place = _is_in_place(communicator, sendbuf)
    message = _EMPTY if inter or in_place else _message(sendbuf, False)
    held(blocks)
    if in_place:
        message = blocks.block(me)
    elif not inter and alias_of_block(message, blocks, me, not v):
        _refuse_alias(comm, communicator, me)
    counts: tuple[int, ...] | None = None
    if v:
        # Units of the root's datatype, including its own block.
        record = _record(blocks)
        counts = counts_of(record, blocks.counts)
        count, unit = count_of(record, 0 if inter else blocks.counts[me])
    else:
        count, unit = units_of(blocks)
    call = scheduled_call(
        communicator, me, name, count, unit, root, in_place=in_place, recv_counts=counts
    )
    return Gather(rank, communicator, me, call, message, blocks)


def scatter(
    comm: object, v: bool, sendbuf: object, recvbuf: object, root_argument: object
) -> Contribution:
    """Scatter and Scatterv."""
    rank = calling_rank()
    communicator, me = located(comm, rank)
    root = _number(root_argument)
    name = "scatterv" if v else "scatter"
    if _is_root(communicator, me, root):
        return _scatter_at_root(comm, rank, communicator, me, v, sendbuf, recvbuf, root)
    message = _message(recvbuf, True, root)
    if not 0 <= root < communicator.remote.size:
        check_root(comm, communicator, root)
    if recvbuf is _IN_PLACE and communicator.remote is communicator:
        note_in_place(communicator, me, "recvbuf")
    count, unit = units_of(message)
    call = scheduled_call(communicator, me, name, count, unit, root)
    return Scatter(rank, communicator, me, call, None, message)


def _scatter_at_root(
    comm: object,
    rank: Rank,
    communicator: Communicator,
    me: int,
    v: bool,
    sendbuf: object,
    recvbuf: object,
    root: int,
) -> Contribution:
    inter = communicator.remote is not communicator
    name = "scatterv" if v else "scatter"
    blocks = blocks_of(v, sendbuf, False, communicator.remote.size, root)
    if root == PROC_NULL:
        count, unit = units_of(_EMPTY)
        call = scheduled_call(communicator, me, name, count, unit, root)
        return Scatter(rank, communicator, me, call, None, None)
    in_place = _is_in_place(communicator, recvbuf)
    message = None if inter or in_place else _message(recvbuf, True)
    held(blocks)
    if message is not None and alias_of_block(message, blocks, me, not v):
        _refuse_alias(comm, communicator, me)
    record = _record(blocks)
    counts: tuple[int, ...] | None = None
    if v:
        counts = counts_of(record, blocks.counts)
        count, unit = count_of(record, 0 if inter else blocks.counts[me])
    else:
        count, unit = count_of(record, blocks.count)
    call = scheduled_call(
        communicator, me, name, count, unit, root, in_place=in_place, send_counts=counts
    )
    return Scatter(rank, communicator, me, call, blocks, message)


def allgather(comm: object, v: bool, sendbuf: object, recvbuf: object) -> Contribution:
    """Allgather and Allgatherv."""
    rank = calling_rank()
    communicator, me = located(comm, rank)
    inter = communicator.remote is not communicator
    blocks = blocks_of(v, recvbuf, True, communicator.remote.size)
    in_place = _is_in_place(communicator, sendbuf)
    message = _EMPTY if in_place else _message(sendbuf, False)
    held(blocks)
    if in_place:
        message = blocks.block(me)
    elif not inter and alias_of_block(message, blocks, me, not v):
        _refuse_alias(comm, communicator, me)
    counts: tuple[int, ...] | None = None
    count, unit = units_of(message) if inter else units_of(blocks)
    if v:
        record = _record(blocks)
        counts = counts_of(record, blocks.counts)
        if not inter:
            count, unit = count_of(record, blocks.counts[me])
    call = scheduled_call(
        communicator, me, "allgatherv" if v else "allgather", count, unit, in_place=in_place,
        recv_counts=counts,
    )  # fmt: skip
    return Allgather(rank, communicator, me, call, message, blocks)


def alltoall(comm: object, v: bool, sendbuf: object, recvbuf: object) -> Contribution:
    """Alltoall and Alltoallv."""
    rank = calling_rank()
    communicator, me = located(comm, rank)
    size = communicator.remote.size
    receive = blocks_of(v, recvbuf, True, size)
    in_place = _is_in_place(communicator, sendbuf)
    send = _no_blocks(v, False, size) if in_place else blocks_of(v, sendbuf, False, size)
    outgoing = receive if in_place else send
    if v:
        sent, received = _record(outgoing), _record(receive)
        _, unit = count_of(sent, 0)
        if count_of(received, 0)[1] == unit:
            sends, receives = counts_of(sent, outgoing.counts), counts_of(received, receive.counts)
        else:
            unit, sends, receives = 1, tuple(outgoing.sizes()), tuple(receive.sizes())
        call = scheduled_call(
            communicator, me, "alltoallv", 0, unit, in_place=in_place, send_counts=sends,
            recv_counts=receives,
        )  # fmt: skip
    else:
        count, unit = units_of(outgoing)
        if not in_place and communicator.remote is communicator:
            if send.count and send.count == receive.count and send.datatype == receive.datatype:
                if alias(send.block(0), receive.block(0)):
                    _refuse_alias(comm, communicator, me)
        call = scheduled_call(communicator, me, "alltoall", count, unit, in_place=in_place)
    return Alltoall(rank, communicator, me, call, None if in_place else held(send), held(receive))


def alltoallw(comm: object, sendbuf: object, recvbuf: object) -> Contribution:
    """Alltoallw."""
    rank = calling_rank()
    communicator, me = located(comm, rank)
    size = communicator.remote.size
    receive = blocks_w(recvbuf, True, size)
    in_place = _is_in_place(communicator, sendbuf)
    send = receive if in_place else blocks_w(sendbuf, False, size)
    call = scheduled_call(
        communicator, me, "alltoallw", in_place=in_place, send_counts=tuple(send.sizes()),
        recv_counts=tuple(receive.sizes()),
    )  # fmt: skip
    return Alltoall(rank, communicator, me, call, None if in_place else held(send), held(receive))


def reduce(
    comm: object, sendbuf: object, recvbuf: object, op: object, root_argument: object
) -> Contribution:
    """Reduce."""
    rank = calling_rank()
    communicator, me = located(comm, rank)
    root = _number(root_argument)
    inter = communicator.remote is not communicator
    send: MessageRegion | None = None
    receive: MessageRegion | None = None
    in_place = False
    if not _is_root(communicator, me, root):
        send = _message(sendbuf, False, root)
    elif inter:
        if root == ROOT:
            receive = _message(recvbuf, True)
    elif _is_in_place(communicator, sendbuf):
        in_place = True
        receive = _message(recvbuf, True)
        send = receive
    else:
        send, receive = _pair(comm, communicator, me, op, sendbuf, recvbuf)
    if not 0 <= root < communicator.remote.size:
        check_root(comm, communicator, root)
    if receive is None and sendbuf is _IN_PLACE and not inter:
        note_in_place(communicator, me, "sendbuf")
    whole = receive if receive is not None else _EMPTY if send is None else send
    return _reduction(rank, communicator, me, "reduce", op, send, receive, whole, root, in_place)


def allreduce(comm: object, sendbuf: object, recvbuf: object, op: object) -> Contribution:
    """Allreduce."""
    rank = calling_rank()
    communicator, me = located(comm, rank)
    in_place = _is_in_place(communicator, sendbuf)
    if in_place:
        receive = _message(recvbuf, True)
        send = receive
    else:
        send, receive = _pair(comm, communicator, me, op, sendbuf, recvbuf)
    return _reduction(rank, communicator, me, "allreduce", op, send, receive, receive, 0, in_place)


def _reduction(
    rank: Rank,
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
    count, unit = count_of(record, whole.count)
    call = scheduled_call(
        communicator, me, name, count // blocks, unit, root, operator.commutative, in_place,
        recv_counts=None if counts is None else counts_of(record, counts),
    )  # fmt: skip
    return Reduction(
        rank, communicator, me, call, operator, message, target, whole.count, record, whole.nbytes
    )


def reduce_scatter_block(
    comm: object, sendbuf: object, recvbuf: object, op: object
) -> Contribution:
    """Reduce_scatter_block: the result is one block of the contribution."""
    rank = calling_rank()
    communicator, me = located(comm, rank)
    size = communicator.size
    in_place = _is_in_place(communicator, sendbuf)
    if in_place:
        blocks = blocks_of(False, recvbuf, True, size)
        whole = merged(blocks)
        target = whole
    else:
        result: Blocks = equal_blocks(recvbuf, True, 1)
        blocks = equal_blocks(sendbuf, False, size)
        check_same(blocks, result)
        blocks.check()
        whole = merged(blocks)
        target = result.block(0)
    assert whole is not None and target is not None
    if not in_place:
        _check_apart(comm, communicator, me, op, whole, target)
    contribution = _reduction(
        rank, communicator, me, "reduce_scatter_block", op, whole, target, whole, 0, in_place, size
    )
    nbytes = whole.nbytes // size
    contribution.start = me * nbytes
    contribution.stop = contribution.start + nbytes
    return contribution


def reduce_scatter(
    comm: object, sendbuf: object, recvbuf: object, recvcounts: object, op: object
) -> Contribution:
    """Reduce_scatter. Without counts, ranks first exchange the counts of their receive buffers."""
    rank = calling_rank()
    communicator, me = located(comm, rank)
    in_place = _is_in_place(communicator, sendbuf)
    target = _message(recvbuf, True)
    whole = target if in_place else _message(sendbuf, False)
    if recvcounts is None and communicator.remote is communicator and not in_place:
        recvcounts = all_counts(comm, target.count)
    counts: list[int] = reduce_scatter_counts(
        recvcounts, whole, target, in_place, communicator.size, me
    )
    if not in_place:
        _check_apart(comm, communicator, me, op, whole, target)
    contribution = _reduction(
        rank, communicator, me, "reduce_scatter", op, whole, target, whole, 0, in_place,
        counts=counts,
    )  # fmt: skip
    size = _record(whole).layout.size
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
    rank = calling_rank()
    communicator, me = located(comm, rank)
    in_place = sendbuf is None or sendbuf is _IN_PLACE
    if in_place:
        receive = _message(recvbuf, True)
        send = receive
    else:
        send, receive = _pair(comm, communicator, me, op, sendbuf, recvbuf)
    record = _record(receive)
    operator = operator_of(op, record)
    count, unit = units_of(receive)
    name = "exscan" if exclusive else "scan"
    call = scheduled_call(communicator, me, name, count, unit, 0, operator.commutative, in_place)
    return Prefix(rank, communicator, me, call, operator, send, receive, exclusive, record)
