"""The memory that calls and operations of MPI read and write in their rank."""

from __future__ import annotations

from typing import Any

from pysmpi.checkers.memory import WatchedRegion, overlap, regions_of
from pysmpi.kernel.requests import Receive, Send
from pysmpi.mpi.buffers import spellings
from pysmpi.mpi.buffers.memory import is_in_place
from pysmpi.mpi.buffers.spellings import Blocks
from pysmpi.mpi.calls import MpiCall, Role
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


def _significant(call: MpiCall, name: str) -> bool:
    """Whether a call uses one of its buffers in its rank: some only matter at the root."""
    root = call.arguments.get("root")
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
    if operation in ("Scatter", "Scatterv"):
        return name != "sendbuf" or root == mine
    return True


def memory_of_arguments(call: MpiCall) -> dict[str, list[WatchedRegion]]:
    """The memory of each buffer that a call uses in its rank, by the name of the argument."""
    memory: dict[str, list[WatchedRegion]] = {}
    for name, spec in call.having(Role.BUFFER).items():
        if spec is None or is_in_place(spec) or not _significant(call, name):
            continue
        try:
            memory[name] = regions_of(spellings.send(spec))
        except Exception:  # the call itself will refuse it, or it has one block for each rank
            continue
    return memory


def receives(call: MpiCall, name: str) -> bool:
    """Whether a call writes to a buffer."""
    if name == "recvbuf" or "ecv" in call.name or "ead" in call.name:
        return name != "sendbuf"
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
    """The memory that a rank's part of a collective call reads, and the memory that it writes."""

    def every(blocks: object) -> list[WatchedRegion]:
        if not isinstance(blocks, Blocks):
            return []
        return [piece for i in range(len(blocks)) for piece in regions_of(blocks.block(i))]

    if isinstance(contribution, Broadcast):
        pieces = regions_of(contribution.message)
        return (pieces, []) if contribution.sends else ([], pieces)
    if isinstance(contribution, Reduction | Prefix):
        return _apart(regions_of(contribution.message), regions_of(contribution.target))
    if isinstance(contribution, Gather | Allgather):
        return _apart(regions_of(contribution.message), every(contribution.blocks))
    if isinstance(contribution, Scatter):
        return _apart(every(contribution.blocks), regions_of(contribution.message))
    if isinstance(contribution, Alltoall):
        return _apart(every(contribution.outgoing), every(contribution.incoming))
    if isinstance(contribution, Neighborhood):
        outgoing = contribution.outgoing
        return every(outgoing) or regions_of(outgoing), every(contribution.incoming)
    return [], []


def _apart(
    reads: list[WatchedRegion], writes: list[WatchedRegion]
) -> tuple[list[WatchedRegion], list[WatchedRegion]]:
    """In place, a buffer is written."""
    return [piece for piece in reads if not overlap([piece], writes)], writes
