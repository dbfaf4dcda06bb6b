"""Which operations of several requests are complete: tests, choices, and statuses (MPI 4.1, 3.7.5).

Operations come with the numbers of their requests, in lists of pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

from pysmpi.kernel.choices import NO, TEST
from pysmpi.kernel.requests import KernelRequest, Receive, Send
from pysmpi.mpi.base.constants import ANY_SOURCE, ANY_TAG, ERR_IN_STATUS, SUCCESS, UNDEFINED
from pysmpi.mpi.base.exceptions import fail, sequence
from pysmpi.mpi.base.handles import Handle
from pysmpi.mpi.base.ranks import Rank
from pysmpi.mpi.datatypes.status import Status, check_status
from pysmpi.mpi.point_to_point.operations import RequestOperation
from pysmpi.mpi.point_to_point.polling import charge, choose, poll

SUBSETS = 4  # complete requests up to which a strategy may choose any of their subsets


def active_operations(items: Sequence[Handle]) -> list[tuple[int, Any]]:
    return [
        (i, item._impl)
        for i, item in enumerate(items)
        if item._impl is not None and item._impl.request is not None
    ]


def test_complete(rank: Rank, operation: RequestOperation) -> bool:
    """Test an operation: let the time of a test pass, and return whether it is complete then."""
    if not poll(rank, operation.done, _messages([(0, operation)])):
        return False
    rank.polls = 0
    return True


def all_complete(rank: Rank, active: list[tuple[int, Any]]) -> bool:
    """Test whether all active operations are complete."""
    if active:
        if not poll(
            rank, lambda: all(operation.done() for _, operation in active), _messages(active)
        ):
            return False
        rank.polls = 0
    return True


def any_complete(rank: Rank, items: Sequence[Handle], status: Status | None) -> tuple[int, bool]:
    """Test whether one of the requests is complete.

    Returns its number and True, or UNDEFINED and whether no request is active.
    """
    active = active_operations(items)
    if not active:
        fill_empty(status)
        return UNDEFINED, True
    if rank.engine.control is None:
        charge(rank)
        i = first_complete(active)
    else:
        i = choose_one(rank, TEST, active)
    if i == UNDEFINED:
        fill_empty(status)
        return UNDEFINED, False
    rank.polls = 0
    return i, True


def complete_operations(
    rank: Rank, active: list[tuple[int, Any]], statuses: list[Status] | None
) -> tuple[list[tuple[int, Any]], list[Status] | None]:
    """The active operations that are complete, and as many statuses."""
    done = [(i, operation) for i, operation in active if operation.done()]
    entries = status_list(statuses, len(done))
    if done:
        rank.polls = 0
    return done, entries


def reportable(rank: Rank, active: list[tuple[int, Any]]) -> list[tuple[int, object]]:
    """The operations of which a test of several reports those that are complete."""
    if rank.engine.control is not None:
        return choose_some(rank, TEST, active)
    charge(rank)
    return active


def _messages(active: list[tuple[int, Any]]) -> dict[str, KernelRequest] | None:
    """The sends and receives of some operations; None if one is something else."""
    requests = {str(i): operation.request for i, operation in active}
    return requests if all(isinstance(one, (Send, Receive)) for one in requests.values()) else None


def choose_one(rank: Rank, kind: str, active: list[tuple[int, Any]]) -> int:
    """The number of the complete operation that a strategy chooses, or UNDEFINED."""

    def answers() -> list[str]:
        return [str(i) for i, operation in active if operation.done()]

    answer = _answer(rank, kind, answers, active)
    return UNDEFINED if answer == NO else int(answer)


def choose_some(rank: Rank, kind: str, active: list[tuple[int, Any]]) -> list[tuple[int, object]]:
    """The complete operations that a strategy chooses: all of them, or some."""

    def answers() -> list[str]:
        done = [str(i) for i, operation in active if operation.done()]
        sizes = range(len(done), 0, -1) if len(done) <= SUBSETS else (len(done), 1)
        return ["+".join(some) for size in sizes for some in combinations(done, size)]

    answer = _answer(rank, kind, answers, active)
    chosen = [] if answer == NO else answer.split("+")
    return [entry for entry in active if str(entry[0]) in chosen]


def _answer(
    rank: Rank, kind: str, answers: Callable[[], list[str]], active: list[tuple[int, Any]]
) -> str:
    if kind == TEST:
        return choose(rank, answers, _messages(active))
    control = rank.engine.control
    assert control is not None
    return control.ask(rank.process, kind, answers, _messages(active))


def first_complete(active: list[tuple[int, Any]]) -> int:
    """The number of the active operation that completed first, or UNDEFINED."""
    done = [entry for entry in active if entry[1].done()]
    return min(done, key=lambda entry: entry[1].request.time)[0] if done else UNDEFINED


def fill_empty(status: Status | None) -> None:
    """Describe an operation that does not exist (MPI 4.1, section 3.7.3)."""
    if status is not None:
        status._fill(ANY_SOURCE, ANY_TAG, 0)
        status.error = SUCCESS


def status_list(statuses: Sequence[Status] | None, count: int) -> list[Status] | None:
    """As many statuses as requests: as in mpi4py, a list of the program is extended."""
    if statuses is None:
        return None
    items = sequence(statuses)
    for status in items:
        check_status(status, "statuses")
    missing = [Status() for _ in range(count - len(items))]
    if isinstance(statuses, list):
        statuses += missing
        return statuses
    return items + missing


def check_errors(errors: list[int]) -> None:
    """Report the error classes of several requests, if there are any."""
    if any(errors):
        fail(ERR_IN_STATUS, f"requests ended with the error classes {errors}", None)
