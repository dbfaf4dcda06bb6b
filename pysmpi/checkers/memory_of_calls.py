"""The memory that calls and operations of MPI read and write in their rank."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import numpy as np

from pysmpi.checkers.expressions import array_of
from pysmpi.checkers.memory import WatchedRegion, overlap, region_of, regions_of
from pysmpi.kernel.requests import Receive, Send
from pysmpi.mpi.base.constants import PROC_NULL
from pysmpi.mpi.buffers import spellings
from pysmpi.mpi.buffers.memory import is_in_place
from pysmpi.mpi.buffers.spellings import Blocks, MessageRegion
from pysmpi.mpi.calls import CallKind, MpiCall, Procedure, Role
from pysmpi.mpi.collective.background import CollectiveOperation
from pysmpi.mpi.collective.data import Allgather, Alltoall, Broadcast, Gather, Scatter
from pysmpi.mpi.collective.neighborhood import Neighborhood
from pysmpi.mpi.collective.reductions import Prefix, Reduction
from pysmpi.mpi.files.access import FileAccess
from pysmpi.mpi.point_to_point.operations import (
    PairOperation,
    ReceiveOperation,
    RequestOperation,
    SendOperation,
)

# Calls of the chapter on datatypes and operators that move data.
LOCAL = frozenset("Pack Unpack Pack_external Unpack_external Reduce_local".split())
_WRITTEN = frozenset(("recvbuf", "outbuf", "inoutbuf"))
_MANY = 100  # items of a list in which arrays are looked for
_DEEP = 3
_ENDS = (("dest", "recvbuf"), ("source", "sendbuf"))


def may_use_memory(procedure: Procedure) -> bool:
    """Whether calls of a procedure may use memory of the program that their arguments name."""
    if procedure.kind is CallKind.LOCAL:
        return procedure.name in LOCAL
    return procedure.kind is not CallKind.ONE_SIDED and Role.BUFFER in procedure.places


def uses_memory(call: MpiCall) -> bool:
    """Whether a call may use memory of the program that its arguments name."""
    return may_use_memory(call.procedure)


def significant(call: MpiCall, name: str, arguments: dict[str, Any] | None = None) -> bool:
    """Whether a call uses one of its buffers in its rank.

    Some only matter at the root, and a message to or from PROC_NULL has none. `arguments` are those
    of the call.
    """
    if arguments is None:
        arguments = call.arguments
    peers = null = 0
    for end, of in _ENDS:
        if end in arguments and name != of:
            peer = arguments[end]
            peers += 1
            null += isinstance(peer, int) and peer == PROC_NULL
    if peers and peers == null:
        return False
    root = arguments.get("root")
    if not isinstance(root, int):
        return True
    handle = call.values[0]
    try:
        mine: int = handle.Get_rank()
    except Exception:  # a null handle: the call will refuse it
        return False
    operation = call.name.removesuffix("_init").lstrip("I").capitalize()
    if operation in ("Reduce", "Gather", "Gatherv"):
        return name != "recvbuf" or root == mine
    if operation in ("Scatter", "Scatterv") or call.name == "bcast":
        return name not in ("sendbuf", "sendobj", "obj") or root == mine
    return True


def memory_of_arguments(call: MpiCall) -> dict[str, list[WatchedRegion]]:
    """The memory of each buffer that a call uses in its rank, by the name of the argument."""
    memory: dict[str, list[WatchedRegion]] = {}
    objects = call.name[0].islower()
    values = call.values
    arguments = dict(zip(call.procedure.parameters, values))
    for i, name in call.procedure.places.get(Role.BUFFER, ()):
        if i >= len(values):
            continue
        spec = values[i]
        if spec is None or not significant(call, name, arguments):
            continue
        if type(spec) is not np.ndarray and is_in_place(spec):
            continue
        if objects:
            if name in ("obj", "sendobj"):  # which the call pickles
                memory[name] = list(_within(spec, _DEEP))
            continue
        try:
            if call.kind is CallKind.LOCAL:
                memory[name] = _packed(call, name, spec)
            else:
                memory[name] = regions_of(spellings.send(spec))
        except Exception:  # the call itself will refuse it, or it has one block for each rank
            continue
    return memory


def _within(value: object, depth: int) -> Iterator[WatchedRegion]:
    """The memory of the arrays in an object of the program."""
    array = array_of(value)
    if array is not None:
        yield WatchedRegion.of_array(array)
    elif depth > 0 and not isinstance(value, str | bytes | int | float | type):
        parts: Iterable[object] = ()
        if isinstance(value, dict):
            parts = value.values()
        elif isinstance(value, list | tuple | set | frozenset):
            parts = value
        elif type(getattr(value, "__dict__", None)) is dict:
            parts = value.__dict__.values()
        for part in list(islice(parts, _MANY)):
            yield from _within(part, depth - 1)


def _packed(call: MpiCall, name: str, spec: object) -> list[WatchedRegion]:
    """The memory of one argument of a call that packs, or reduces locally."""
    if call.name == "Reduce_local":
        return regions_of(spellings.send(spec))
    arguments = call.arguments
    typed = "inbuf" if call.name.startswith("Pack") else "outbuf"
    message = spellings.send([arguments[typed], call.values[0]])
    if name == typed:
        return regions_of(message)
    whole = region_of(spellings.send(spec))
    if whole is None or not isinstance(message, MessageRegion):
        return []
    first = whole.low + int(arguments["position"])
    last = min(first + message.nbytes, whole.high)
    return [WatchedRegion(first, last)] if last > first else []


def receives(call: MpiCall, name: str) -> bool:
    """Whether a call writes to a buffer."""
    if name in _WRITTEN:
        return True
    if call.name[0].islower() or call.kind is CallKind.LOCAL:
        return False
    if "ecv" in call.name or "ead" in call.name:
        return name != "sendbuf" and call.arguments.get("source") != PROC_NULL
    if call.name in ("Bcast", "Ibcast"):
        return bool(call.arguments.get("root") != call.values[0].Get_rank())
    return False


def memory_of_operation(
    operation: RequestOperation, handle: Any
) -> tuple[list[WatchedRegion], list[WatchedRegion]]:
    """The memory that an operation reads, and the memory that it writes."""
    if isinstance(operation, SendOperation | ReceiveOperation):
        message = getattr(handle, "ob_buf", None)
        pieces = regions_of(message)
        if isinstance(operation.request, Receive):
            return [], pieces
        return (pieces, []) if isinstance(operation.request, Send) else ([], [])
    if isinstance(operation, PairOperation):
        out, into = getattr(handle, "ob_buf", (None, None))
        return regions_of(out), regions_of(into)
    if isinstance(operation, CollectiveOperation):
        return memory_of_contribution(operation.contribution)
    if isinstance(operation, FileAccess):
        pieces = regions_of(operation.message)
        return (pieces, []) if operation.write else ([], pieces)
    return [], []


def memory_of_contribution(
    contribution: object,
) -> tuple[list[WatchedRegion], list[WatchedRegion]]:
    """The memory that a rank's part of a collective call reads, and the memory that it writes.

    In place, a buffer is written.
    """
    reads, writes = buffers_of_contribution(contribution)
    return [piece for piece in reads if not overlap([piece], writes)], writes


def buffers_of_contribution(
    contribution: object,
) -> tuple[list[WatchedRegion], list[WatchedRegion]]:
    """The memory of the send and of the receive buffers of a rank's part of a collective call."""

    def every(blocks: object) -> list[WatchedRegion]:
        if not isinstance(blocks, Blocks):
            return []
        return [piece for i in range(len(blocks)) for piece in regions_of(blocks.block(i))]

    if isinstance(contribution, Broadcast):
        pieces = regions_of(contribution.message)
        return (pieces, []) if contribution.sends else ([], pieces)
    if isinstance(contribution, Reduction | Prefix):
        return regions_of(contribution.message), regions_of(contribution.target)
    if isinstance(contribution, Gather | Allgather):
        return regions_of(contribution.message), every(contribution.blocks)
    if isinstance(contribution, Scatter):
        return every(contribution.blocks), regions_of(contribution.message)
    if isinstance(contribution, Alltoall):
        return every(contribution.outgoing), every(contribution.incoming)
    if isinstance(contribution, Neighborhood):
        outgoing = contribution.outgoing
        return every(outgoing) or regions_of(outgoing), every(contribution.incoming)
    return [], []
