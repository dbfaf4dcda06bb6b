"""Calls that ended with an error, which a program has caught, as the cause of a deadlock."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from pysmpi.kernel.requests import Receive, Send
from pysmpi.mpi.base.failed_calls import FAILED, FailedCall
from pysmpi.mpi.calls import CallKind
from pysmpi.mpi.collective.background import CollectiveOperation
from pysmpi.mpi.groups.communicator import Communicator
from pysmpi.python.frames import shorten
from pysmpi.reports.history import called
from pysmpi.reports.wait_graph import WaitGraph
from pysmpi.reports.waiting import Wait

_RANKS = 4  # that are named
_PARTS = 3  # of one call of the program
# Weights of reasons. Only the failed call of a collective operation is known to be what is missing.
_CERTAIN, _LIKELY, _POSSIBLE = -1, 0, 4


class _Missing(NamedTuple):
    """A collective operation that not all ranks have entered.

    Persistent ones have negative numbers.
    `awaited` is false if ranks have left it and wait in later ones.
    """

    communicator: Communicator
    number: int
    names: frozenset[str]
    awaited: bool = True


def any_failed(causes: WaitGraph) -> bool:
    """Whether a call has ended with an error."""
    return FAILED.peek(causes.finder.universe) is not None


def failures(causes: WaitGraph, wait: Wait) -> list[tuple[int, str]]:
    """The failed calls of the ranks that a rank waits for, with the weights of these reasons."""
    failed = FAILED.peek(causes.finder.universe)
    if failed is None:
        return []
    reasons: dict[int, tuple[int, str]] = {}
    for missing in _operations(causes, wait):
        for side in (missing.communicator, missing.communicator.remote):
            for pid in failed.of.keys() & set(side.group):
                for call in failed.of[pid]:
                    waits_too = missing.awaited and causes.together(wait, pid)
                    if _is_part(call, missing, side) and not waits_too:
                        reasons[pid] = _CERTAIN, _described(pid, call, "and took no part in it")
    for pid in causes.awaited_in(wait) & failed.of.keys() - reasons.keys():
        calls = [call for call in failed.of[pid] if call.kind is not CallKind.LOCAL]
        fits = [call for call in failed.of[pid] if _is_other_side(call, wait)]
        if fits or calls:
            weight = _LIKELY if fits else _POSSIBLE
            reasons[pid] = weight, _described(pid, (fits or calls)[-1], "and went on")
    return [reasons[pid] for pid in sorted(reasons)][:_RANKS]


def _operations(causes: WaitGraph, wait: Wait) -> Iterator[_Missing]:
    """The collective operations that a rank waits for, and one that it has left before others."""
    if wait.collective is not None:
        difference = causes.difference(wait.collective.communicator)
        if difference is not None:
            labels = frozenset(_operation(one.call) for one in difference.made)
            yield _Missing(difference.communicator, difference.number, labels, False)
        names = frozenset(map(_operation, (wait.call, called(wait), wait.collective.operation)))
        yield _Missing(wait.collective.communicator, wait.collective.number, names)
        return
    for piece in wait.pieces:
        if isinstance(piece.operation, CollectiveOperation):
            contribution = piece.operation.contribution
            yield _Missing(
                contribution.communicator, contribution.number, frozenset({_operation(piece.name)})
            )


def _is_part(call: FailedCall, missing: _Missing, side: Communicator) -> bool:
    """Whether a call would have been the part of its rank in a collective operation."""
    if _operation(call.name) not in missing.names:
        return False
    begun = call.begun.get(side.p2p.number)
    if begun is None:
        # Without a right communicator nothing is known of the number.
        return not call.begun
    number = missing.number
    return number < 0 or number + 1 - _PARTS < begun <= number + 1


def _is_other_side(call: FailedCall, wait: Wait) -> bool:
    """Whether a call would have sent or received the message that a rank waits for."""
    for piece in wait.pieces:
        if isinstance(piece.request, Send | Receive) and piece.communicator is not None:
            verb = "recv" if isinstance(piece.request, Send) else "send"
            one = piece.communicator
            sides = (side for side in (one, one.remote) if wait.pid in side.group)
            if (
                verb in call.name.lower()
                and any(side.rank_of(wait.pid) in call.peers for side in sides)
                and not call.begun.keys().isdisjoint({one.p2p.number, one.remote.p2p.number})
            ):
                return True
    return False


def _operation(name: str) -> str:
    """The operation of a collective call: `allreduce` of `Allreduce_init`."""
    return name.lower().removesuffix("_init").removeprefix("i")


def _described(pid: int, call: FailedCall, effect: str) -> str:
    place = "" if call.site is None else f" at {shorten(call.site.file)}:{call.site.line}"
    return f"rank {pid} caught an error of its {call.name}{place} {effect}: {call.error}"
