"""The positions of ranks, for a message about an interrupted run."""

from __future__ import annotations

from types import FrameType
from typing import TYPE_CHECKING

from greenlet import getcurrent

from pysmpi import text
from pysmpi.mpi.base.ranks import Fiber, fiber_of
from pysmpi.python.frames import CallSite, call_site
from pysmpi.reports.deadlock import WaitingGroup, group_waits, table
from pysmpi.reports.waiting import WaitFinder

if TYPE_CHECKING:
    from pysmpi.ranks.simulation import Simulation


def whereabouts(
    simulation: Simulation,
    frame: FrameType | None,
    held: tuple[int, CallSite | None] | None = None,
) -> str:
    """The position of every rank: a line for each place of the program.

    `frame` is the frame that the interpreter is executing. If another thread asks, `held` is the
    number of the rank that the main thread runs, and its line.
    """
    finder = WaitFinder(simulation)
    running = fiber_of(getcurrent())
    ranks = simulation.waiting()
    waits = [wait for rank in ranks for wait in finder.waits(rank)]
    groups = group_waits(waits)
    for group in groups:
        group.odd = False
    started = {wait.pid for wait in waits}
    if held is not None:
        started.add(held[0])
        groups = [group for group in groups if group.pids != [held[0]]]
        groups.insert(0, WaitingGroup([held[0]], "", held[1], verb="waits in C code"))
    elif isinstance(running, Fiber):
        started.add(running.rank.pid)
        groups.insert(0, WaitingGroup([running.rank.pid], "", call_site(frame), verb="runs"))
    unborn = [rank.pid for rank in ranks if rank.pid not in started]
    if unborn:
        groups.append(WaitingGroup(unborn, "", None, verb="not started yet"))
    alive = {rank.pid for rank in ranks}
    finished = [rank.pid for rank in simulation.universe.ranks if rank.pid not in alive]
    lines = [f"at t={text.seconds(simulation.engine.now)} (simulated)", *table(groups, finished)]
    return "\n".join(lines)
