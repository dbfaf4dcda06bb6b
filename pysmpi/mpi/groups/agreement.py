"""Internal collective calls of MPI: ranks of a communicator agree on a value.

Their messages are those of small collectives, run by the selected algorithms in the communicator's
collective context. Creating a communicator therefore takes time and waits for late ranks. As in MPI
libraries, a new context takes an allreduce. If ranks need the values of the others, the values are
gathered at rank 0 and broadcast: the number of messages grows linearly with the number of ranks,
and not with its square as in some allgathers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pysmpi.collectives.building import build
from pysmpi.collectives.cache import schedule_for
from pysmpi.collectives.call import Call
from pysmpi.kernel.process import Process
from pysmpi.kernel.requests import Context
from pysmpi.kernel.requests import Request as KernelRequest
from pysmpi.kernel.schedule import MOST_TAGS, Schedule
from pysmpi.mpi.base.ranks import Rank
from pysmpi.mpi.groups.between_groups import Sides, joint
from pysmpi.mpi.groups.communicator import CollectiveState, Communicator, check_revoked

# Tags of collective messages: the number of the call, its operation, and the algorithm's own tag.
_CALLS = 1 << 14
_OPERATIONS = 1 << 7
_STEPS = MOST_TAGS

_codes: dict[str, int] = {}


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
    core: Communicator,
    operation: str,
    value: Any,
    nbytes: int,
    make: Callable[..., Any],
    subject: Any = None,
    gathers: bool = False,
) -> Any:
    """Wait until every rank of `core` has contributed its `value`; return the result of `make`.

    `make` gets the values by rank and runs once for all; for an intercommunicator it gets those of
    the local group, then those of the remote one. Each rank contributes `nbytes`, which are
    combined, or all kept if the call `gathers`. `subject` is the handle for errors.
    """
    me = core.rank_of(rank.pid)
    number = core.next_call(me)
    board = core.enter(number, operation, me, value)
    schedule, context, place = _steps(rank, core, me, nbytes, gathers)
    rank.process.execute(schedule, context, place, tag_of(number, operation))
    if core.revoked and board.result is None:
        check_revoked(subject, core)
    return _leave(core, number, board, make)


def share_later(
    rank: Rank, core: Communicator, operation: str, nbytes: int, make: Callable[[], Any]
) -> tuple[Any, KernelRequest]:
    """What `make` returns, the same for all ranks, and a request that completes for each rank
    once all have asked.

    The first rank calls `make`, so `make` must not need the values of others.
    """
    me = core.rank_of(rank.pid)
    number = core.next_call(me)
    board = core.enter(number, operation, me, None)
    if board.result is None:
        _settle(board, make())
    made = board.result[0]
    request = later(rank, core, number, operation, nbytes, lambda: core.exit(number, board))
    return made, request


def agree_later(
    rank: Rank,
    core: Communicator,
    operation: str,
    value: Any,
    nbytes: int,
    make: Callable[..., Any],
    done: Callable[[Any], None],
) -> KernelRequest:
    """Agree in the background; `done` gets the result before the request completes."""
    me = core.rank_of(rank.pid)
    number = core.next_call(me)
    board = core.enter(number, operation, me, value)
    return later(
        rank, core, number, operation, nbytes, lambda: done(_leave(core, number, board, make))
    )


def later(
    rank: Rank,
    core: Communicator,
    number: int,
    operation: str,
    nbytes: int,
    finish: Callable[[], Any],
) -> KernelRequest:
    """Execute the messages of an agreement in the background, then call `finish`."""
    main = rank.process
    process = Process(rank.engine, rank.pid, main.slot, main.core)
    schedule, context, place = _steps(rank, core, core.rank_of(rank.pid), nbytes)
    process.prepare(schedule, context, place, tag_of(number, operation))
    request = process.purpose = KernelRequest()

    def resume() -> None:
        finish()
        request.complete(rank.engine.now)

    process.resume = resume
    process.launch()
    return request


def _steps(
    rank: Rank, core: Communicator, me: int, nbytes: int, gathers: bool = False
) -> tuple[Schedule, Context, int]:
    """The schedule of a rank, its context, and its rank in the context."""
    call = Call("allreduce", me, core.size, count=nbytes, selection=rank.universe.selection)
    if core.inter:
        # Each group agrees separately, the ranks 0 exchange the results, and broadcast them.
        context, first, _ = joint(core)
        sides = Sides(core, call)
        size = max(core.size, core.remote.size) if gathers else 1
        sides.among_us("gather" if gathers else "reduce")
        sides.swap(nbytes * size)
        sides.among_us("bcast", count=nbytes * size)
        return sides.schedule, context, first + me
    if not gathers:
        return schedule_for(call if nbytes else replace(call, op="barrier")), core.coll, me
    schedule = Schedule()
    build(schedule, replace(call, op="gather"))
    build(schedule, replace(call, op="bcast", count=nbytes * core.size))
    return schedule, core.coll, me


def _leave(
    core: Communicator, number: int, board: CollectiveState, make: Callable[..., Any]
) -> Any:
    if board.result is None:
        other = board.remote
        _settle(
            board, make(board.values) if other is None else make(board.values, other.values)
        )
    core.exit(number, board)
    return board.result[0]


def _settle(board: CollectiveState, made: Any) -> None:
    """Both groups of an intercommunicator share the result."""
    board.result = (made,)
    if board.remote is not None:
        board.remote.result = board.result
