"""The arguments of a recorded collective call, by name as in `pysmpi.collectives.call.Call`.

The buffers and datatypes are those of a real MPI library: their sizes are read from the arguments
that mpi4py takes, or for Python objects from the bytes that were pickled in the call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from pysmpi.collectives.call import REDUCING
from pysmpi.record.sizes import message, parts

Arguments = dict[str, Any]  # the arguments of a call by name

ONE, EACH = False, True  # one message, or a block for each rank

# The buffers that give the count: the next one if one is IN_PLACE or None.
_WHOLE = (("sendbuf", ONE), ("recvbuf", ONE))
_GATHERED = (("sendbuf", ONE), ("recvbuf", EACH))
_SCATTERED = (("recvbuf", ONE), ("sendbuf", EACH))
EQUAL: dict[str, tuple[tuple[str, bool], ...]] = {
    "barrier": (),
    "bcast": (("buf", ONE),),
    "reduce": _WHOLE,
    "allreduce": _WHOLE,
    "scan": _WHOLE,
    "exscan": _WHOLE,
    "gather": _GATHERED,
    "allgather": _GATHERED,
    "scatter": _SCATTERED,
    "reduce_scatter_block": _SCATTERED,
    "alltoall": (("sendbuf", EACH), ("recvbuf", EACH)),
}


class Unequal(NamedTuple):
    """The buffers of an operation with counts for each rank.

    `own` is the message of the rank itself. `send` and `receive` have blocks with counts. If it is
    `rooted`, only the root has counts. `counted`: the rank's own block is the count of the call.
    """

    own: str
    send: str = ""
    receive: str = ""
    rooted: bool = False
    counted: bool = True


UNEQUAL = {
    "gatherv": Unequal("sendbuf", receive="recvbuf", rooted=True),
    "scatterv": Unequal("recvbuf", send="sendbuf", rooted=True),
    "allgatherv": Unequal("sendbuf", receive="recvbuf"),
    "alltoallv": Unequal("sendbuf", send="sendbuf", receive="recvbuf", counted=False),
}
OPERATIONS = (*EQUAL, *UNEQUAL, "reduce_scatter")


def of_buffers(op: str, passed: Arguments, size: int, rank: int) -> Arguments:
    """The arguments of a call with buffers, from those that the program passes."""
    arguments = _rooted(op, passed)
    if op == "reduce_scatter":
        return {**arguments, **_reduce_scatter(passed, size)}
    if op in UNEQUAL:
        return {**arguments, **_unequal(UNEQUAL[op], passed, size, rank)}
    for buffer, blocks in EQUAL[op]:
        elements = message(passed.get(buffer))
        if elements is not None:
            count, type_size = elements
            return {
                **arguments,
                "count": count // size if blocks else count,
                "type_size": type_size,
            }
    return arguments


def _rooted(op: str, passed: Arguments) -> Arguments:
    root = passed.get("root", 0)
    return {"op": op, "root": root} if root else {"op": op}


def _unequal(form: Unequal, passed: Arguments, size: int, rank: int) -> Arguments:
    own = message(passed[form.own])
    sent = parts(passed[form.send], size) if form.send else None
    received = parts(passed[form.receive], size) if form.receive else None
    sizes = own or sent or received
    if sizes is None:
        return {}
    arguments: Arguments = {"type_size": sizes[1]}
    if not form.rooted or rank == passed["root"]:
        if sent is not None:
            arguments["send_counts"] = list(sent[0])
        if received is not None:
            arguments["recv_counts"] = list(received[0])
    if form.counted:
        blocks = sent or received
        if own is not None:
            arguments["count"] = own[0]
        elif blocks is not None:
            arguments["count"] = blocks[0][rank]
    return arguments


def _reduce_scatter(passed: Arguments, size: int) -> Arguments:
    total, type_size = message(passed["sendbuf"]) or message(passed["recvbuf"]) or (0, 1)
    counts = passed.get("recvcounts")
    if counts is None:
        each, more = divmod(total, size)
        counts = [each + (rank < more) for rank in range(size)]
    return {"type_size": type_size, "recv_counts": [int(count) for count in counts]}


def of_objects(
    op: str, passed: Arguments, size: int, rank: int, dumped: Sequence[int], loaded: Sequence[int]
) -> Arguments:
    """The arguments of a call with Python objects; `dumped` and `loaded` are bytes of pickles.

    Objects of different ranks in a reduction may differ in size: the count is that of the largest
    object of this rank.
    """
    arguments = _rooted(op, passed)
    at_root = rank == passed.get("root", 0)
    if op == "bcast":
        arguments["count"] = next(iter(dumped or loaded), 0)
    elif op in REDUCING:
        arguments["count"] = max(dumped, default=0)
    elif op == "gather":
        arguments.update(op="gatherv", count=sum(dumped))
        if at_root:
            arguments["recv_counts"] = _padded(loaded, size)
    elif op == "scatter":
        arguments.update(op="scatterv", count=sum(loaded))
        if at_root:
            arguments["send_counts"] = _padded(dumped, size)
    elif op == "allgather":
        arguments.update(op="allgatherv", count=sum(dumped), recv_counts=_padded(loaded, size))
    elif op == "alltoall":
        arguments.update(
            op="alltoallv", send_counts=_padded(dumped, size), recv_counts=_padded(loaded, size)
        )
    return arguments


def _padded(sizes: Sequence[int], ranks: int) -> list[int]:
    return [*sizes, *[0] * ranks][:ranks]
