"""The origin and target arguments of one-sided calls (MPI 4.1, chapter 12)."""

from __future__ import annotations

from pysmpi.mpi.base.constants import PROC_NULL
from pysmpi.mpi.base.exceptions import integer
from pysmpi.mpi.buffers.spellings import (
    MessageRegion,
    datatype_argument,
    is_integral,
    reduction,
    unread,
)
from pysmpi.mpi.datatypes.datatypes import Datatype
from pysmpi.python.records import record


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
