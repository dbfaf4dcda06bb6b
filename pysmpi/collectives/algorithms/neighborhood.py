"""Neighbourhood collectives: every rank exchanges with its neighbours only."""

from __future__ import annotations

from collections.abc import Sequence

from pysmpi.collectives.building import Builder
from pysmpi.collectives.call import Call
from pysmpi.collectives.registry import algorithm

_SUMMARY = "all neighbours at once, receives first; 1 step"


@algorithm("neighbor_allgather", "default", _SUMMARY)
@algorithm("neighbor_allgatherv", "default", _SUMMARY)
@algorithm("neighbor_alltoall", "default", _SUMMARY)
@algorithm("neighbor_alltoallv", "default", _SUMMARY)
@algorithm("neighbor_alltoallw", "default", _SUMMARY)
def flat(s: Builder, c: Call) -> None:
    """Start a receive from each source, a send to each destination, and wait for all.

    The linear algorithm of MPICH and Open MPI; SMPI has no neighbourhood collectives. A rank
    that is a neighbour twice exchanges two messages, in the order of the neighbours.
    """
    place = c.output
    for peer, nbytes in zip(c.sources, _sizes(c, c.recv_counts, len(c.sources))):
        s.irecv(peer, nbytes, place)
        place += nbytes
    place = c.input
    to_all = c.op in ("neighbor_allgather", "neighbor_allgatherv")
    for peer, nbytes in zip(c.destinations, _sizes(c, c.send_counts, len(c.destinations))):
        s.isend(peer, nbytes, place)
        if not to_all:
            place += nbytes
    s.waitall()


def _sizes(c: Call, counts: Sequence[int] | None, number: int) -> list[int]:
    """The bytes of the message of each neighbour."""
    if counts is None:
        return [c.nbytes] * number
    return [count * c.type_size for count in counts]
