"""The buffer arguments of collective and one-sided calls (MPI 4.1, chapters 6, 8 and 12).

The call, the root and the groups of the communicator determine the buffers that a process must
give: for reading or writing, with one block or one for each process, and whether IN_PLACE is
allowed. Each function here implements these rules for one kind of call and returns the parsed
`CollectiveBuffers`; arguments that mpi4py ignores are not read.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from pysmpi.mpi.base.constants import PROC_NULL, ROOT
from pysmpi.mpi.base.exceptions import integer, sequence
from pysmpi.mpi.base.integers import plain_integers
from pysmpi.mpi.buffers.memory import is_in_place
from pysmpi.mpi.buffers.spellings import (
    EMPTY,
    Blocks,
    MessageRegion,
    check_same,
    datatype_argument,
    equal_blocks,
    is_integral,
    matching,
    reduction,
    unread,
    vector,
    vector_w,
)
from pysmpi.mpi.datatypes.datatypes import Datatype
from pysmpi.python.records import record


class RankPosition(NamedTuple):
    """The position of a process in a collective call.

    `size` is the number of processes with which it exchanges data: its own group, or the remote
    group of an intercommunicator.
    """

    rank: int
    size: int
    inter: bool = False


class CollectiveBuffers(NamedTuple):
    """The buffers of a collective call; an unused buffer is empty.

    `in_place` means that the data of the missing buffer is in the other one (IN_PLACE).
    """

    send: MessageRegion | Blocks
    receive: MessageRegion | Blocks
    in_place: bool = False


def _blocks(v: bool, spec: object, writable: bool, count: int, rank: int = 0) -> Blocks:
    made = (vector if v else equal_blocks)(spec, writable, count, rank)
    made.check()
    return made


def _blocks_w(spec: object, writable: bool, count: int) -> Blocks:
    made = vector_w(spec, writable, count)
    made.check()
    return made


@lru_cache(maxsize=64)
def _nothing(v: bool, writable: bool, count: int) -> Blocks:
    return _blocks(v, None, writable, count, PROC_NULL)


def _is_root(place: RankPosition, root: int) -> bool:
    """Whether the process is at the rooted end of the call."""
    return root in (ROOT, PROC_NULL) if place.inter else root == place.rank


def broadcast(spec: object, root: int, place: RankPosition) -> MessageRegion:
    """Bcast: the root reads its buffer, the others write theirs."""
    return reduction(spec, not _is_root(place, root), root)


def gather(
    v: bool, send: object, receive: object, root: int, place: RankPosition
) -> CollectiveBuffers:
    """Gather and Gatherv."""
    if not _is_root(place, root):
        return CollectiveBuffers(reduction(send, False, root), _nothing(v, True, place.size))
    target = _blocks(v, receive, True, place.size, root)
    if place.inter:
        return CollectiveBuffers(EMPTY, target)
    if is_in_place(send):
        return CollectiveBuffers(EMPTY, target, True)
    return CollectiveBuffers(reduction(send, False), target)


def scatter(
    v: bool, send: object, receive: object, root: int, place: RankPosition
) -> CollectiveBuffers:
    """Scatter and Scatterv."""
    if not _is_root(place, root):
        return CollectiveBuffers(_nothing(v, False, place.size), reduction(receive, True, root))
    source = _blocks(v, send, False, place.size, root)
    if place.inter:
        return CollectiveBuffers(source, EMPTY)
    if is_in_place(receive):
        return CollectiveBuffers(source, EMPTY, True)
    return CollectiveBuffers(source, reduction(receive, True, root))


def allgather(v: bool, send: object, receive: object, place: RankPosition) -> CollectiveBuffers:
    """Allgather and Allgatherv."""
    target = _blocks(v, receive, True, place.size)
    if not place.inter and is_in_place(send):
        return CollectiveBuffers(EMPTY, target, True)
    return CollectiveBuffers(reduction(send, False), target)


def alltoall(v: bool, send: object, receive: object, place: RankPosition) -> CollectiveBuffers:
    """Alltoall and Alltoallv."""
    target = _blocks(v, receive, True, place.size)
    if not place.inter and is_in_place(send):
        return CollectiveBuffers(_nothing(v, False, place.size), target, True)
    return CollectiveBuffers(_blocks(v, send, False, place.size), target)


def alltoallw(send: object, receive: object, place: RankPosition) -> CollectiveBuffers:
    """Alltoallw."""
    target = _blocks_w(receive, True, place.size)
    if not place.inter and is_in_place(send):
        return CollectiveBuffers(_nothing(False, False, place.size), target, True)
    return CollectiveBuffers(_blocks_w(send, False, place.size), target)


def neighbor_allgather(v: bool, send: object, receive: object, sources: int) -> CollectiveBuffers:
    """Neighbor_allgather and Neighbor_allgatherv."""
    source = reduction(send, False)
    return CollectiveBuffers(source, _blocks(v, receive, True, sources))


def neighbor_alltoall(
    v: bool, send: object, receive: object, sources: int, targets: int
) -> CollectiveBuffers:
    """Neighbor_alltoall and Neighbor_alltoallv."""
    source = _blocks(v, send, False, targets)
    return CollectiveBuffers(source, _blocks(v, receive, True, sources))


def neighbor_alltoallw(
    send: object, receive: object, sources: int, targets: int
) -> CollectiveBuffers:
    """Neighbor_alltoallw."""
    target = _blocks_w(receive, True, sources)
    return CollectiveBuffers(_blocks_w(send, False, targets), target)


def reduce(send: object, receive: object, root: int, place: RankPosition) -> CollectiveBuffers:
    """Reduce: a missing buffer has the form of the other one."""
    if not _is_root(place, root):
        return CollectiveBuffers(reduction(send, False, root), EMPTY)
    if place.inter or is_in_place(send):
        return CollectiveBuffers(EMPTY, reduction(receive, True, root), not place.inter)
    return CollectiveBuffers(*matching(send, receive))


def allreduce(send: object, receive: object, place: RankPosition) -> CollectiveBuffers:
    """Allreduce."""
    if not place.inter and is_in_place(send):
        return CollectiveBuffers(EMPTY, reduction(receive, True), True)
    return CollectiveBuffers(*matching(send, receive))


def scan(send: object, receive: object) -> CollectiveBuffers:
    """Scan and Exscan."""
    if is_in_place(send):
        return CollectiveBuffers(EMPTY, reduction(receive, True), True)
    return CollectiveBuffers(*matching(send, receive))


def reduce_scatter_block(send: object, receive: object, place: RankPosition) -> CollectiveBuffers:
    """Reduce_scatter_block: the result is one block of the contribution."""
    if not place.inter and is_in_place(send):
        return CollectiveBuffers(EMPTY, _blocks(False, receive, True, place.size), True)
    target = equal_blocks(receive, True, 1)
    source = equal_blocks(send, False, place.size)
    check_same(source, target)
    source.check()
    return CollectiveBuffers(source, target.block(0))


def reduce_scatter(send: object, receive: object, place: RankPosition) -> CollectiveBuffers:
    """Reduce_scatter, without the counts: see `reduce_scatter_counts`."""
    target = reduction(receive, True)
    if not place.inter and is_in_place(send):
        return CollectiveBuffers(EMPTY, target, True)
    return CollectiveBuffers(reduction(send, False), target)


def reduce_scatter_counts(
    buffers: CollectiveBuffers, counts: object, place: RankPosition
) -> list[int]:
    """The counts of all processes, checked against the buffers.

    If a program omits the counts, the caller must first collect the receive count of every process.
    """
    numbers = plain_integers(counts)
    items = sequence(counts) if numbers is None else numbers
    if len(items) != place.size:
        raise ValueError(f"expecting {place.size} items, got {len(items)}")
    if numbers is None:
        numbers = [integer(item) for item in items]
    total = sum(numbers)
    send, receive = buffers.send, buffers.receive
    if buffers.in_place:
        if receive.count != total:
            raise ValueError(f"mismatch in receive count {receive.count} and sum(counts) {total}")
        return numbers
    if send.datatype is not receive.datatype and send.datatype != receive.datatype:
        raise ValueError("mismatch in send and receive MPI datatypes")
    if send.count != total:
        raise ValueError(f"mismatch in send count {send.count} and sum(counts) {total}")
    if receive.count != numbers[place.rank]:
        raise ValueError(
            f"mismatch in receive count {receive.count} and "
            f"counts[{place.rank}] {numbers[place.rank]}"
        )
    return numbers


@record(frozen=True)
class WindowTarget:
    """The part of a window that a one-sided call reaches: displacement in displacement units."""

    displacement: int
    count: int
    datatype: Datatype


def one_sided(
    origin: object, writable: bool, rank: int, target: object, ignored: bool = False
) -> tuple[MessageRegion, WindowTarget]:
    """The origin and target of Put, Get and the accumulating calls.

    A target of None or of a displacement alone has the count and the datatype of the origin. The
    data of an origin that is `ignored` is not accessed.
    """
    message = (unread if ignored else reduction)(origin, writable, rank)
    count, datatype = message.count, message.datatype
    if (
        rank == PROC_NULL
        and isinstance(origin, (list, tuple))
        and origin
        and isinstance(origin[-1], (Datatype, str))
    ):
        datatype = datatype_argument(origin[-1])
    displacement = 0
    if target is None:
        pass
    elif is_integral(target):
        displacement = integer(target)
    elif isinstance(target, (list, tuple)):
        if len(target) > 3:
            raise ValueError("target: expecting 3 items at most")
        if len(target) >= 1:
            displacement = integer(target[0])
        if len(target) >= 2:
            count = integer(target[1])
        if len(target) >= 3:
            datatype = datatype_argument(target[2])
    else:
        raise ValueError("target: expecting integral or list/tuple")
    return message, WindowTarget(displacement, count, datatype)


def single(buffers: dict[str, MessageRegion], rank: int) -> None:
    """Refuse the buffers of Fetch_and_op and Compare_and_swap unless each is one like the others.

    `buffers` are the messages by their role: origin, compare, result.
    """
    if rank == PROC_NULL:
        return
    for role, message in buffers.items():
        if message.count != 1:
            raise ValueError(f"{role}: expecting a single element, got {message.count}")
    first, *others = buffers
    for role in others:
        if buffers[role].datatype != buffers[first].datatype:
            raise ValueError(f"mismatch in {first} and {role} MPI datatypes")
