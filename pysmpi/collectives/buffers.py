"""Places of the data of a collective at the beginning and at the end of its algorithm.

Addresses are those of `pysmpi.kernel.schedule`. Data is packed: block i follows block i - 1. Calls
in place are resolved before the algorithm, as in libraries, so an algorithm does not need to handle
them:

| operation | at `c.input` | at `c.output` when it begins | at the end |
| --- | --- | --- | --- |
| bcast | | the root: the message | all: the message |
| reduce, allreduce, scan, exscan | | the own vector | the result, of reduce the root's |
| reduce_scatter, reduce_scatter_block | the own vector | | the own block of the result |
| gather(v) | the own block | the root: its own block in its place | the root: all blocks |
| scatter(v) | the root: all blocks | the root: its own block | the own block |
| allgather(v) | | the own block in its place | all blocks |
| alltoall(v, w) | the blocks for all | the own block in its place | the blocks from all |
| neighbor_allgather(v) | the own block | | the blocks of the sources |
| neighbor_alltoall(v, w) | the blocks for the destinations | | the blocks of the sources |

If only some ranks have a buffer (the result of reduce, all blocks of gather), it is scratch memory
on the others. A reduction may change the own vector in any place; other input is not changed.
"""

from __future__ import annotations

from typing import Protocol

from pysmpi.collectives.call import ROOTED, Call
from pysmpi.kernel.schedule import RECEIVE_BUFFER, SEND_BUFFER, Place


class Moves(Protocol):
    """The operations of a builder on data before an algorithm begins."""

    def move(self, nbytes: int, source: Place, dest: Place) -> None:
        """Record that bytes have moved to another place."""

    def scratch(self) -> int:
        """The address of a new piece of scratch memory."""


def enter(s: Moves, c: Call) -> Call:
    """Move the data of a call from the buffers of the program to the places for algorithms.

    Returns the call with these addresses.
    """
    op, n, block = c.op, c.nbytes, own_block(c)
    at_root = op not in ROOTED or c.rank == c.root
    in_place = c.in_place and at_root
    own = RECEIVE_BUFFER + block
    if op in ("reduce", "allreduce", "scan", "exscan"):
        output = RECEIVE_BUFFER if at_root else s.scratch()
        if not in_place:
            s.move(n, SEND_BUFFER, output)
        return c._replace(input=output, output=output)
    if op in ("reduce_scatter", "reduce_scatter_block"):
        whole = s.scratch()
        counts = c.recv_counts or (c.count,) * c.size
        total = sum(counts) * c.type_size
        s.move(total, RECEIVE_BUFFER if in_place else SEND_BUFFER, whole)
        if c.size == 1:
            s.move(total, whole, RECEIVE_BUFFER)
        return c._replace(input=whole)
    if op in ("gather", "gatherv"):
        if not at_root:
            return c._replace(output=s.scratch())
        if not in_place:
            s.move(own_bytes(c), SEND_BUFFER, own)
        return c._replace(input=own)
    if op in ("scatter", "scatterv"):
        if not at_root:
            return c._replace(input=s.scratch())
        output = s.scratch() if in_place else RECEIVE_BUFFER
        s.move(own_bytes(c), SEND_BUFFER + block, output)
        return c._replace(output=output)
    if op in ("allgather", "allgatherv"):
        if not in_place:
            s.move(own_bytes(c), SEND_BUFFER, own)
        return c._replace(input=own)
    if op in ("alltoall", "alltoallv", "alltoallw"):
        if in_place:
            copied = s.scratch()
            counts = c.recv_counts or (c.count,) * c.size
            s.move(sum(counts) * c.type_size, RECEIVE_BUFFER, copied)
            return c._replace(input=copied)
        begin = sum((c.send_counts or (c.count,) * c.size)[: c.rank]) * c.type_size
        s.move(own_bytes(c), SEND_BUFFER + begin, own)
    return c


def own_block(c: Call) -> int:
    """The offset (bytes) of the calling rank's block among the blocks of all.

    The offset is in the received blocks, or in the sent blocks if the call receives one (scatter).
    """
    counts = c.send_counts if c.op == "scatterv" else c.recv_counts
    if counts is None:
        return c.rank * c.nbytes
    return sum(counts[: c.rank]) * c.type_size


def own_bytes(c: Call) -> int:
    """The bytes of the block of the calling rank."""
    counts = c.send_counts if c.op == "scatterv" else c.recv_counts
    return c.nbytes if counts is None else counts[c.rank] * c.type_size
