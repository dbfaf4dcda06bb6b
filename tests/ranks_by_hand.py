"""Ranks for tests without MPI: greenlets that take turns, with clocks of their own."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from greenlet import getcurrent, greenlet

from pysmpi.isolation import collection
from pysmpi.isolation.exchange import Door
from pysmpi.isolation.finalizers import Finalizers
from pysmpi.isolation.kinds.rank_environment import Invocation, RankEnvironment
from pysmpi.isolation.loading.loader import RankProgram
from pysmpi.job.interpreter import Interpreter
from pysmpi.mpi.base import ranks
from pysmpi.mpi.base.owners import Owner


class HandRank(Owner):
    """The part of a rank that isolation and time need."""

    def __init__(self, pid: int, environment: RankEnvironment | None) -> None:
        self.pid = pid
        self.program = environment
        self.state: list[Any] = []
        self.seconds = 0.0
        self.in_call = False
        self.result: Any = None
        self.error: BaseException | None = None

    def now(self) -> float:
        return self.seconds

    def poll(self, seconds: float) -> None:
        self.seconds += seconds

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds
        give_way()


class _Fiber(greenlet):
    rank: HandRank
    state: Any


_outside = HandRank(-1, None)
_hub = getcurrent()
_door = Door(getcurrent)


def current() -> HandRank:
    return getattr(getcurrent(), "rank", _outside)


def give_way() -> None:
    """Let all other ranks run until they give way, too."""
    try:
        _hub.switch()
    finally:
        _door.enter()


def fake_mpi() -> types.ModuleType:
    """A module to import as `mpi4py.MPI`."""
    module = types.ModuleType("mpi4py.MPI")
    module.give_way = give_way
    module.rank = lambda: current().pid
    module.arrivals = []
    return module


@contextmanager
def hand_made() -> Iterator[None]:
    """Replace the door to the running rank."""
    global _door, _hub
    before = ranks.current, ranks.outside
    ranks.current, ranks.outside = current, _outside
    _hub, _door = getcurrent(), Door(getcurrent)
    try:
        yield
    finally:
        ranks.current, ranks.outside = before


def run(
    program: RankProgram | Callable[[], Any],
    size: int = 2,
    mpi: types.ModuleType | None = None,
    hosts: Callable[[int], str] = lambda rank: f"node-{rank}",
    check: bool = True,
    **options: Any,
) -> list[HandRank]:
    """Run a program in `size` ranks, which take turns in the order of their numbers."""
    module = fake_mpi() if mpi is None else mpi
    with (
        hand_made(),
        Interpreter(
            program, mpi=module, arrive=lambda: module.arrivals.append(current().pid), **options
        ) as interpreter,
    ):
        _door.exchange = interpreter.exchange
        members = []
        for number in range(size):
            environment = RankEnvironment(
                number,
                Invocation(size, 0, program.arguments, program.path_entry),
                host=hosts(number),
            )
            members.append(HandRank(number, environment))
        fibers = []
        for member in members:
            fiber = _Fiber(lambda member=member: _live(interpreter, member))
            fiber.rank = member
            fiber.state = member.program.state
            fibers.append(fiber)
        with collection.announced(Finalizers(types.SimpleNamespace(ranks=[]))):
            while fibers:
                for fiber in fibers:
                    fiber.switch()
                fibers = [fiber for fiber in fibers if not fiber.dead]
    for member in members:
        if check and member.error is not None:
            raise member.error
    return members


def _live(interpreter: Interpreter, member: HandRank) -> None:
    _door.enter()
    try:
        try:
            result = interpreter.begin()()
        except BaseException as error:
            interpreter.end(member.program, error)
            raise
        interpreter.end(member.program, None)
        member.result = result
    except BaseException as error:
        member.error = error
