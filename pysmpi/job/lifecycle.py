"""The steps of ranks before and after the program of a job."""

from __future__ import annotations

import os
import sys
from array import array
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate

from pysmpi.isolation.kinds.exits import HardExit
from pysmpi.isolation.kinds.rank_environment import Invocation, RankEnvironment
from pysmpi.isolation.loading.mpi4py_package import has_options
from pysmpi.job.interpreter import Interpreter
from pysmpi.job.spawning import ProgramPart
from pysmpi.mpi.base.attributes import PROGRAM
from pysmpi.mpi.base.options import ENVIRONMENT, RcOptions
from pysmpi.mpi.base.ranks import Rank, Universe, current
from pysmpi.mpi.base.state import StateSlot
from pysmpi.mpi.processes import environment
from pysmpi.ranks.simulation import Simulation
from pysmpi.time.timing import ComputeTiming

# The options of mpi4py in all ranks that have set none.
_COMMON_OPTIONS: StateSlot[Universe, RcOptions] = StateSlot(Universe)


class ProgramLifecycle:
    """Ranks that run the programs of a job, a part for each program.

    Each rank first calls `arrive`, which may wait.
    """

    def __init__(
        self,
        simulation: Simulation,
        interpreter: Interpreter,
        timing: ComputeTiming,
        seed: int,
        parts: Sequence[ProgramPart],
        arrive: Callable[[Rank], object] | None = None,
    ) -> None:
        self.simulation = simulation
        self.interpreter = interpreter
        self.timing = timing
        self.parts = parts
        self.arrive = arrive
        self.ends = list(accumulate(len(part.slots) for part in parts))
        self.totals: dict[str, int] = {}  # ranks of each host
        self.local = array("l")  # of each rank, its number among the ranks of its host
        for part in parts:
            for slot in part.slots:
                number = self.totals.get(slot.host.name, 0)
                self.totals[slot.host.name] = number + 1
                self.local.append(number)
        size = len(self.local)
        self.invocations = [
            Invocation(size, seed, part.program.arguments, part.program.path_entry,
                   part.variables or None)
            for part in parts
        ]  # fmt: skip

    def _part(self, rank: Rank) -> int:
        """The number of the part of a rank."""
        return bisect_right(self.ends, rank.index)

    def equip(self, rank: Rank) -> None:
        """Give a rank its environment and its timer."""
        index = rank.index
        number = self._part(rank)
        host = rank.host
        rank.program = RankEnvironment(
            index,
            self.invocations[number],
            number=rank.pid,
            local_rank=self.local[index],
            local_size=self.totals[host.name],
            host=host.name,
        )
        appnum = self.parts[number].appnum
        if appnum:
            PROGRAM.of(rank).appnum = appnum
        rank.timer = self.timing.timer(rank.pid, host.speed)
        for timer_for in self.simulation.methods["timer_for"]:
            rank.timer = timer_for(rank, rank.timer)

    def begin(self, rank: Rank) -> Callable[[], object]:
        """The program of a rank."""
        part = self.parts[self._part(rank)]
        if self.arrive is not None:
            self.arrive(rank)
        if part.directory is not None:
            os.chdir(part.directory)
        for thread_begun in self.simulation.methods["thread_begun"]:
            thread_begun(rank)
        return self.interpreter.begin(part.program)

    def end(self, rank: Rank, error: BaseException | None) -> None:
        """End the simulated process, finalize MPI, and end the threads that are left."""
        try:
            try:
                self.interpreter.end(rank.program, error, self.parts[self._part(rank)].program)
            except HardExit:
                raise
            except SystemExit as leave:
                _finalize(rank, leave)
                raise
            if error is None:
                _finalize(rank)
            elif isinstance(error, SystemExit) and not isinstance(error, HardExit):
                _finalize(rank, error)
        finally:
            self.simulation.end_threads(rank)


def import_mpi() -> None:
    """A rank imports `mpi4py.MPI`."""
    import mpi4py

    rank = current()
    rc = getattr(mpi4py, "rc", None)
    common = _has_common_options(rank, rc)
    options = _COMMON_OPTIONS.peek(rank.universe) if common else None
    started = environment.start(rc, os.environ, options)
    # Options from environment variables become the rank's own.
    if options is None and _has_common_options(rank, rc):
        _COMMON_OPTIONS.put(rank.universe, started.options)


def _has_common_options(rank: Rank, rc: object) -> bool:
    """Whether a rank has set no option and no environment variable: all such have the same."""
    program = rank.program
    if program.environ is not None or program.invocation.variables:
        return False
    return not has_options(rank, rc)


def _finalize(rank: Rank, leave: SystemExit | None = None) -> None:
    """The program of a rank has ended: finalize MPI if it has used it."""
    if ENVIRONMENT.peek(rank) is not None:
        status = environment.finish()
        if status:
            if leave is not None and not isinstance(leave.code, int | None):
                print(leave.code, file=sys.stderr)
            rank.abort(status)
