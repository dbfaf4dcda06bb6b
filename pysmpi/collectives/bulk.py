"""Many steps at a time."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat

from pysmpi.collectives.building import Builder
from pysmpi.kernel.schedule import IRECV, ISEND, UNNAMED, WAITALL, Schedule


def isend_each(
    s: Builder, peers: Sequence[int], nbytes: int, at: int = UNNAMED, apart: int = 0, tag: int = 0
) -> None:
    """Start one send of `nbytes` to each peer, in order; return the slots.

    The data for peer i is at `at + i * apart`.
    """
    _start_each(s.schedule, ISEND, peers, nbytes, at, apart, tag)


def irecv_each(
    s: Builder, peers: Sequence[int], nbytes: int, at: int = UNNAMED, apart: int = 0, tag: int = 0
) -> None:
    """Start one receive of `nbytes` from each peer, in order; return the slots.

    The data of peer i goes to `at + i * apart`.
    """
    _start_each(s.schedule, IRECV, peers, nbytes, at, apart, tag)


def _start_each(
    s: Schedule, code: int, peers: Sequence[int], nbytes: int, at: int, apart: int, tag: int
) -> None:
    # Whole lists at a time: an alltoall of a thousand ranks has two million of these steps.
    n = len(peers)
    s.codes.extend(repeat(code, n))
    s.peers.extend(peers)
    s.sizes.extend(repeat(nbytes, n))
    s.tags.extend(repeat(tag, n))
    s.slots += n
    if s.places is not None:
        s.places.extend(_place(at, apart, peer) for peer in peers)


def _place(at: int, apart: int, peer: int) -> int:
    return at + peer * apart if at >= 0 else at


def isend_blocks(
    s: Builder, peers: Sequence[int], sizes: Sequence[int], places: Sequence[int]
) -> None:
    """Start a send to each peer, in order: to rank i, `sizes[i]` bytes at `places[i]`."""
    _start_blocks(s.schedule, ISEND, peers, sizes, places)


def irecv_blocks(
    s: Builder, peers: Sequence[int], sizes: Sequence[int], places: Sequence[int]
) -> None:
    """Start a receive from each peer, in order: from rank i, `sizes[i]` bytes to `places[i]`."""
    _start_blocks(s.schedule, IRECV, peers, sizes, places)


def _start_blocks(
    s: Schedule, code: int, peers: Sequence[int], sizes: Sequence[int], places: Sequence[int]
) -> None:
    n = len(peers)
    s.codes.extend(repeat(code, n))
    s.peers.extend(peers)
    s.sizes.extend([sizes[peer] for peer in peers])
    s.tags.extend(repeat(0, n))
    s.slots += n
    if s.places is not None:
        s.places.extend(places[peer] for peer in peers)


def trade_each(
    s: Builder, rank: int, peers: Sequence[int], sizes: Sequence[int], places: Sequence[int]
) -> None:
    """For each peer in turn, start a send of the own block and a receive of the peer's block.

    The block of rank i has `sizes[i]` bytes and is at `places[i]`; `rank` is the own rank.
    """
    steps = s.schedule
    n = len(peers)
    steps.codes.extend((ISEND, IRECV) * n)
    both = [0] * (2 * n)
    both[0::2] = both[1::2] = peers
    steps.peers.extend(both)
    bytes_of = [sizes[rank]] * (2 * n)
    bytes_of[1::2] = [sizes[peer] for peer in peers]
    steps.sizes.extend(bytes_of)
    steps.tags.extend(repeat(0, 2 * n))
    steps.slots += 2 * n
    if steps.places is not None:
        for peer in peers:
            steps.places.extend((places[rank], places[peer]))


def sendrecv_each(
    s: Builder,
    dests: Sequence[int],
    sources: Sequence[int],
    nbytes: int,
    send_at: int = UNNAMED,
    recv_at: int = UNNAMED,
) -> None:
    """One exchange after another: the i-th sends to `dests[i]` and receives from `sources[i]`.

    The block of rank r is `r * nbytes` behind both places.
    """
    steps = s.schedule
    n = len(dests)
    first = steps.slots
    steps.codes.extend((ISEND, IRECV, WAITALL) * n)
    peers = [0] * (3 * n)
    peers[0::3] = dests
    peers[1::3] = sources
    peers[2::3] = range(first, first + 2 * n, 2)
    steps.peers.extend(peers)
    sizes = [nbytes] * (3 * n)
    sizes[2::3] = range(first + 2, first + 2 * n + 2, 2)
    steps.sizes.extend(sizes)
    steps.tags.extend(repeat(0, 3 * n))
    steps.slots += 2 * n
    if steps.places is not None:
        for dest, source in zip(dests, sources, strict=True):
            places = (_place(send_at, nbytes, dest), _place(recv_at, nbytes, source), None)
            steps.places.extend(places)
