"""Internal collective calls of MPI: ranks of a communicator agree on a value.

Their messages are those of small collectives, run by the selected algorithms in the communicator's
collective context. Creating a communicator therefore takes time and waits for late ranks. As in MPI
libraries, a new context takes an allreduce. If ranks need the values of the others, the values are
gathered at rank 0 and broadcast: the number of messages grows linearly with the number of ranks,
and not with its square as in some allgathers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from pysmpi.collectives.building import build
from pysmpi.collectives.cache import Columns, schedule_for
from pysmpi.collectives.call import Call
from pysmpi.kernel.process import Process
from pysmpi.kernel.requests import Context, KernelRequest
from pysmpi.kernel.schedule import MOST_TAGS, Schedule
from pysmpi.mpi.base.ranks import Rank
from pysmpi.mpi.groups.between_groups import Sides, joint
from pysmpi.mpi.groups.communicator import CollectiveState, Communicator, check_intact

T = TypeVar("T")

# Tags of collective messages: the number of the call, its operation, and the algorithm's own tag.
_CALLS: Final = 1 << 14
_OPERATIONS: Final = 1 << 7
_STEPS: Final = MOST_TAGS

# Ranks of a communicator up to which the schedules of its gatherings are cached. A schedule takes
# 300 bytes, and the gatherings of a large job are few.
CACHED: Final = 4096

_codes: Final[dict[str, int]] = {}


def begin() -> None:
    """A run begins: its tags do not depend on earlier runs in this process."""
    _codes.clear()


def tag_of(number: int, operation: str) -> int:
    """The tag of the messages of one collective call.

    Calls of different operations never match, for any numbers.
    """
    code = _codes.get(operation)
    if code is None:
        code = _codes[operation] = len(_codes)
    return ((number % _CALLS) * _OPERATIONS + code) * _STEPS


def agree(
    rank: Rank,
    communicator: Communicator,
    operation: str,
    value: object,
    nbytes: int,
    make: Callable[..., T],
    subject: object = None,
    gathers: bool = False,
    messages: Schedule | None = None,
) -> T:
    """Wait until every rank has contributed its `value`; return the result of `make`.

    `make` gets the values by rank and runs once for all; for an intercommunicator it gets those of
    the local group, then those of the remote one. Each rank contributes `nbytes`, which are
    combined, or all kept if the call `gathers`; or the ranks exchange the given `messages`.
    `subject` is the handle for errors.
    """
    shared = _prepared(rank, communicator, operation, value, nbytes, gathers, messages)
    rank.process.perform()
    if communicator.revoked and shared.result is None:
        check_intact(subject, communicator)
    return _leave(communicator, shared, make)


def _prepared(
    rank: Rank,
    communicator: Communicator,
    operation: str,
    value: object,
    nbytes: int,
    gathers: bool,
    messages: Schedule | None,
) -> CollectiveState:
    """The state of an agreement that a rank has entered; its process can perform the messages."""
    me = communicator.rank_of(rank.pid)
    number = communicator.next_call(me)
    shared = communicator.enter(number, operation, me, value)
    if messages is not None:
        rank.process.prepare(messages, communicator.coll, me, tag_of(number, operation))
        return shared
    schedule, context, place = _steps(rank, communicator, me, nbytes, gathers)
    if gathers and communicator.size > CACHED:
        if shared.columns is None:
            shared.columns = Columns()
        shared.columns.share(schedule)
    rank.process.prepare(schedule, context, place, tag_of(number, operation))
    return shared


def share_later(
    rank: Rank, communicator: Communicator, operation: str, nbytes: int, make: Callable[[], T]
) -> tuple[T, KernelRequest]:
    """The result of `make`, the same for all ranks, and a request that completes for each rank
    once all have asked.

    The first rank calls `make`, so `make` must not need the values of others.
    """
    me = communicator.rank_of(rank.pid)
    number = communicator.next_call(me)
    shared = communicator.enter(number, operation, me, None)
    if shared.result is None:
        _set_result(shared, make())
    result = shared.result[0]
    request = later(
        rank, communicator, number, operation, nbytes, lambda: communicator.exit(shared)
    )
    return result, request


def agree_later(
    rank: Rank,
    communicator: Communicator,
    operation: str,
    value: object,
    nbytes: int,
    make: Callable[..., T],
    done: Callable[[T], object],
) -> KernelRequest:
    """Agree in the background; `done` gets the result before the request completes."""
    me = communicator.rank_of(rank.pid)
    number = communicator.next_call(me)
    shared = communicator.enter(number, operation, me, value)
    return later(
        rank,
        communicator,
        number,
        operation,
        nbytes,
        lambda: done(_leave(communicator, shared, make)),
    )


def later(
    rank: Rank,
    communicator: Communicator,
    number: int,
    operation: str,
    nbytes: int,
    finish: Callable[[], object],
) -> KernelRequest:
    """Execute the messages of an agreement in the background, then call `finish`.

    The payload of the request is the process, for reports of waits, while it runs.
    """
    main = rank.process
    process = Process(rank.engine, rank.pid, main.slot, main.core)
    schedule, context, place = _steps(rank, communicator, communicator.rank_of(rank.pid), nbytes)
    process.prepare(schedule, context, place, tag_of(number, operation))
    request = process.purpose = KernelRequest()
    request.payload = process

    def resume() -> None:
        request.payload = None
        finish()
        request.complete(rank.engine.now)

    process.resume = resume
    process.launch()
    return request


def _steps(
    rank: Rank, communicator: Communicator, me: int, nbytes: int, gathers: bool = False
) -> tuple[Schedule, Context, int]:
    """The schedule of a rank, its context, and its rank in the context."""
    call = Call("allreduce", me, communicator.size, count=nbytes, selection=rank.universe.selection)
    if communicator.inter:
        # Each group agrees separately, the ranks 0 exchange the results, and broadcast them.
        context, first, _ = joint(communicator)
        sides = Sides(communicator, call)
        size = max(communicator.size, communicator.remote.size) if gathers else 1
        sides.among_us("gather" if gathers else "reduce")
        sides.swap(nbytes * size)
        sides.among_us("bcast", count=nbytes * size)
        return sides.schedule, context, first + me
    if not gathers:
        return schedule_for(call if nbytes else call._replace(op="barrier")), communicator.coll, me
    selection = call.selection
    if communicator.size <= CACHED and (selection is None or not selection.meets):
        # The same messages, from the cache.
        return schedule_for(call._replace(op="allgather"), "GB"), communicator.coll, me
    schedule = Schedule()
    ready = build(schedule, call._replace(op="gather"))
    build(schedule, call._replace(op="bcast", count=nbytes * communicator.size, ready=ready))
    return schedule, communicator.coll, me


def _leave(communicator: Communicator, shared: CollectiveState, make: Callable[..., T]) -> T:
    if shared.result is None:
        other = shared.remote
        _set_result(
            shared, make(shared.values) if other is None else make(shared.values, other.values)
        )
    communicator.exit(shared)
    result: T = shared.result[0]
    return result


def _set_result(shared: CollectiveState, made: object) -> None:
    """Both groups of an intercommunicator share the result."""
    shared.result = (made,)
    if shared.remote is not None:
        shared.remote.result = shared.result
