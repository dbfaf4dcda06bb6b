"""A small simulation for tests of MPI: every rank calls a function, nothing is private to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pysmpi.collectives.selection import Selection
from pysmpi.kernel.plan import Plan, Transport
from pysmpi.mpi import MPI  # noqa: F401  all chapters, as programs see them
from pysmpi.mpi.base.ranks import Rank
from pysmpi.mpi.point_to_point import envelopes
from pysmpi.platform.model import Host
from pysmpi.platform.placement import Slot
from pysmpi.ranks.outcomes import RankState
from pysmpi.ranks.simulation import Simulation


class Wire(Transport):
    """A microsecond and a gigabyte a second between any two ranks; small messages detached."""

    def plan(self, source: int, destination: int, nbytes: int) -> Plan:
        """Nothing is shared."""
        small = nbytes < 4096
        return Plan(
            1e-6, nbytes, 1e9,
            send_cost=1e-7, isend_cost=1e-7, recv_cost=1e-7, eager=small, detached=small,
        )  # fmt: skip


class Deadlock(AssertionError):
    """Ranks wait for ever."""


class Calling:
    """The lifecycle of ranks that call `main(rank)`."""

    def __init__(self, main: Callable[[Rank], Any]) -> None:
        self.main = main

    def equip(self, rank: Rank) -> None:
        """Ranks need nothing."""

    def begin(self, rank: Rank) -> Callable[[], Any]:
        return lambda: self.main(rank)

    def end(self, rank: Rank, error: BaseException | None) -> None:
        """Nothing is left to be done."""


def simulate(
    size: int,
    main: Callable[[Rank], Any],
    selection: Selection | None = None,
    per_host: int = 2,
) -> list[Any]:
    """The return values of `main(rank)` in every rank; the first error is raised."""
    hosts = [Host(f"host{i}", i, (1e9,), per_host) for i in range(-(-size // per_host))]
    slots = [Slot(hosts[i // per_host], i % per_host) for i in range(size)]
    simulation = Simulation(Wire(), slots)
    simulation.universe.selection = selection or Selection()
    envelopes.install(simulation.engine)
    simulation.add_world(range(size), Calling(main))
    simulation.run()
    for outcome in simulation.outcomes:
        if outcome.error is not None:
            raise outcome.error
    stuck = [i for i, o in enumerate(simulation.outcomes) if o.state is not RankState.FINISHED]
    if stuck:
        raise Deadlock(f"ranks {stuck} wait for ever")
    return [outcome.value for outcome in simulation.outcomes]
