"""The ends of ranks: by their program, an exception, a signal, a fault, or the end of the run."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NoReturn

from greenlet import GreenletExit, getcurrent

from pysmpi.errors import UsageError
from pysmpi.isolation.exchange import Door
from pysmpi.isolation.finalizers import FINALIZERS, Finalizers
from pysmpi.isolation.kinds.exits import EXIT_HARD
from pysmpi.isolation.loading.opened_mpi import END_RUN
from pysmpi.isolation.program_errors import error_site, internal_error
from pysmpi.kernel.engine import Engine
from pysmpi.kernel.plan import PlanBook, Transport
from pysmpi.kernel.process import Process
from pysmpi.mpi.base.options import ENVIRONMENT
from pysmpi.mpi.base.ranks import (
    AbortStop,
    Fiber,
    FreeTransport,
    Rank,
    Universe,
    current,
    fiber_of,
)
from pysmpi.mpi.communicators import failures
from pysmpi.platform.placement import Slot
from pysmpi.python.frames import CallSite, current_site
from pysmpi.ranks import stopping
from pysmpi.ranks.outcomes import (
    UNDER_WAY,
    Outcome,
    RankEvent,
    RankState,
    exit_status,
    exit_text,
)
from pysmpi.ranks.switching import beginning, nothing, refuse_ended
from pysmpi.time.cpu_time import OTHER_THREADS

# Events of ranks; `instruments.py` describes them.
EVENTS = (
    "ranks_ready", "timer_for", "thread_begun", "rank_failed", "rank_ended", "deadlock_reached",
    "run_ended",
)  # fmt: skip


class RankEnds:
    """The ranks of a job with their outcomes, and all that ends them."""

    def __init__(self, transport: Transport, slots: Sequence[Slot]) -> None:
        self.slots = list(slots)
        self.engine = Engine(transport, len(self.slots))
        self.universe = Universe(self.engine)
        EXIT_HARD.put(self.universe, self.exit_hard)
        END_RUN.put(self.universe, self.refuse)
        stopping.END_RANK.put(self.universe, self.end_elsewhere)
        self.universe.on_abort = self._aborted
        self.finalizers = Finalizers(self.universe)
        FINALIZERS.put(self.universe, self.finalizers)
        self.silence = stopping.Silence()
        self.door = Door(getcurrent)
        self.engine.awake = self.door.enter
        self.outcomes: list[Outcome] = []  # by rank
        self.threads: dict[int, list[Fiber]] = {}  # pid -> threads besides the main one
        self.methods: dict[str, list[Callable[..., Any]]] = {event: [] for event in EVENTS}
        self.running = 0  # ranks that have not ended
        self.lost: list[str] = []  # ranks that failed while the others went on, and why
        self.failed = False
        # Whether the user has interrupted the run; None if this is unknown.
        self.interrupted: bool | None = None
        self.aborted: AbortStop | None = None
        self.abort_rank: Rank | None = None
        self.abort_site: CallSite | None = None
        self.refused: UsageError | None = None  # ends the run
        # The rank that ended in the middle while it used MPI, the status, where and how; this
        # ends the job.
        self.hard_exit: tuple[Rank, int, CallSite | None, str] | None = None

    def outcome(self, rank: Rank) -> Outcome:
        """The outcome of a rank, to be changed."""
        outcome = self.outcomes[rank.pid]
        if outcome is UNDER_WAY:
            outcome = self.outcomes[rank.pid] = Outcome()
        return outcome

    def waiting(self) -> list[Rank]:
        """The ranks that have not ended."""
        return [
            rank
            for rank, outcome in zip(self.universe.ranks, self.outcomes)
            if outcome.state is RankState.RUNNING
        ]

    def _failed(self, rank: Rank, error: BaseException) -> None:
        """An exception has ended the program of a rank."""
        outcome = self.outcome(rank)
        if isinstance(error, AbortStop):
            outcome.undergo(RankEvent.ABORTS)
            outcome.status = error.status
        elif isinstance(error, GreenletExit):
            outcome.undergo(RankEvent.UNWINDS)
        elif isinstance(error, SystemExit):
            outcome.undergo(RankEvent.RETURNS)
            outcome.status = exit_status(error)
            outcome.exit = error.code, error_site(error)
            if not isinstance(error.code, int | None):
                outcome.error = SystemExit(exit_text(error))
        elif isinstance(error, KeyboardInterrupt) and self.interrupted is not False:
            outcome.undergo(RankEvent.UNWINDS)
            raise error
        else:
            for method in self.methods["rank_failed"]:
                method(rank, error)
            outcome.undergo(RankEvent.FAILS)
            outcome.error = error
            outcome.status = 1
            if self.universe.tolerant and internal_error(error) is None:
                self.survive(rank, "".join(traceback.format_exception_only(error)).strip())
            else:
                self._fail(rank)

    def _leave(self, rank: Rank) -> None:
        outcome = self.outcome(rank)
        if outcome.state is RankState.FINISHED and not self.engine.stopped:
            _compute_to_the_end(rank, outcome)
        self._ended(rank, outcome)

    def _ended(self, rank: Rank, outcome: Outcome) -> None:
        """The program of a rank has ended."""
        process = rank.fiber.process
        if not self.engine.stopped:
            rank.enter()
        self._end_threads(rank)
        outcome.time = self.engine.now + process.debt
        process.compute_seconds += process.debt
        process.finished = True
        process.core.residents -= 1
        self.running -= 1
        rank.fiber = None
        process.resume = nothing
        process.suspend = refuse_ended
        for method in self.methods["rank_ended"]:
            method(rank)
        rank.forget()

    def _aborted(self, rank: Rank) -> None:
        """A rank has called `MPI.Abort`: no other will run, and this one stops soon."""
        self._silence()
        self._stop(rank)

    def _silence(self) -> None:
        """Hide output and finalizers of stopped ranks until the end of the run."""
        self.silence.begin()
        self.finalizers.disarm()
        self.silence.at_end(self.finalizers.rearm)

    def exit_hard(self, rank: Rank, status: int, how: str = "") -> None:
        """End a rank as `os._exit` ends a process: none of its code runs any more.

        `how` describes another end, such as a signal.
        As with a launcher, this ends the whole job, unless the rank has not used MPI or has
        finalized it. Does not return if the rank is the one that is running.
        """
        fiber: Any = fiber_of(getcurrent())
        outcome = self.outcome(rank)
        if outcome.state is RankState.RUNNING and type(rank) is Rank:
            environment = ENVIRONMENT.peek(rank)
            outcome.status = status & 0xFF
            if environment is not None and environment.initialized and not environment.finalized:
                outcome.undergo(RankEvent.EXITS_IN_MPI)
                if self.universe.tolerant:
                    self.survive(rank, f"{how or f'os._exit({status & 0xFF})'} at {current_site()}")
                else:
                    if self.hard_exit is None:
                        self.hard_exit = rank, status & 0xFF, current_site(), how
                    self.engine.stop()
            else:
                outcome.undergo(RankEvent.EXITS)
            fibers = [] if rank.fiber is None else [rank.fiber]
            for other in [*fibers, *self.threads.get(rank.pid, ())]:
                other.process.reset()
                other.process.resume = nothing
                if other is not fiber:
                    stopping.leave(other)
            self.threads.pop(rank.pid, None)
            self._ended(rank, outcome)
        if rank is current():
            stopping.leave_for_good(fiber)

    def end_elsewhere(self, error: BaseException) -> NoReturn:
        """End the running rank with an exception, on a stack of its own.

        The functions that wait below are never resumed: functions of C cannot pass an exception on.
        """
        running: Any = getcurrent()
        fiber: Any = fiber_of(running)
        rank = fiber.rank
        if rank.fiber is fiber:
            successor: Any = Fiber(beginning(lambda: self._end_with(rank, error)), fiber.parent)
            for name in ("rank", "process", "gate", "record", "state"):
                setattr(successor, name, getattr(fiber, name))
            rank.fiber = successor
            fiber.process.resume = successor.switch
            stopping.leave(fiber)
            if running is not fiber:
                stopping.leave(running)
            successor.switch()
        stopping.leave_for_good(fiber)

    def _end_with(self, rank: Rank, error: BaseException) -> None:
        self.door.enter()
        try:
            try:
                raise error
            except BaseException as shown:
                rank.world.lifecycle.end(rank, shown)
                raise
        except BaseException as last:
            self._failed(rank, last)
        finally:
            self._leave(rank)

    def refuse(self, error: UsageError) -> None:
        """End the run: what a rank does cannot be simulated."""
        if self.refused is None:
            self.refused = error
            self.engine.stop()

    def survive(self, rank: Rank, cause: str) -> None:
        """A rank fails, and the others go on: they learn of it at the date of the failure."""
        self.lost.append(f"rank {rank.pid}: {cause}")
        main = rank.fiber.process if rank.fiber is not None else rank.process
        notice = Process(self.engine, rank.pid, main.slot, main.core)
        notice.resume = partial(failures.spread, self.universe, [rank.pid])
        self.engine.queue.push(self.engine.now + main.debt, notice)

    def kill(self, rank: Rank) -> None:
        """End a rank from outside, as a signal ends a process: none of its code runs any more."""
        outcome = self.outcome(rank)
        outcome.undergo(RankEvent.IS_KILLED)
        if rank.fiber is None:
            return  # it has not begun
        for fiber in [rank.fiber, *self.threads.pop(rank.pid, ())]:
            fiber.process.reset()
            fiber.process.resume = nothing
            stopping.leave(fiber)
        rank.process = rank.fiber.process
        self._ended(rank, outcome)

    def _fail(self, rank: Rank) -> None:
        """End the job after all ranks that are due at this instant have run.

        An error in one rank often occurs in all: the report can then name all of them.
        """
        if not self.failed:
            self.failed = True
            main = rank.fiber.process
            last = Process(self.engine, rank.pid, main.slot, main.core)
            last.resume = self.engine.stop
            last.launch()

    def _thread_ended(self, rank: Rank, fiber: Fiber) -> None:
        fiber.process.finished = True
        fiber.process.core.residents -= 1
        self.threads[rank.pid].remove(fiber)
        OTHER_THREADS.of(rank).ended(fiber.process)

    def end_threads(self, rank: Rank) -> None:
        """End the threads that are still alive after the program of the running rank.

        The end of a process does the same; the threads need the state of the rank.
        """
        if self.threads.get(rank.pid) and type(rank) is Rank and not self.engine.stopped:
            rank.enter()
        self._end_threads(rank)

    def _end_threads(self, rank: Rank) -> None:
        threads = self.threads.get(rank.pid)
        in_call, record = rank.in_call, rank.record
        while threads:
            fiber = threads[-1]
            process = rank.process = fiber.process
            process.suspend = stopping.refuse
            process.reset()
            process.resume = nothing
            kind = type(rank)
            stopping.stop(rank)
            with stopping.silently():
                stopping.end(fiber, once=kind is Rank)
            rank.__class__ = kind
            if fiber in threads:  # it had not begun, or it was left
                self._thread_ended(rank, fiber)
        rank.in_call, rank.record = in_call, record
        rank.process = rank.fiber.process

    def _stop(self, rank: Rank) -> None:
        """Let all further calls of a rank raise `Stop`."""
        stopping.stop(rank)
        for fiber in [rank.fiber, *self.threads.get(rank.pid, ())]:
            fiber.process.suspend = stopping.refuse

    def close(self) -> None:
        """End the remaining ranks; their `finally` clauses run."""
        self.engine.stop()
        if self.universe.aborted is not None:
            self.abort_rank, self.aborted = self.universe.aborted
            self.abort_site = error_site(self.aborted)
        stopping.begin()
        if any(rank.fiber is not None for rank in self.waiting()):
            self._silence()
        for rank in self.waiting():
            if rank.fiber is None:  # it had not begun
                self.outcome(rank).undergo(RankEvent.IS_LEFT)
                continue
            self._stop(rank)
            rank.process = rank.fiber.process
            stopping.end(rank.fiber)
            if rank.fiber is not None:  # it was left
                outcome = self.outcome(rank)
                outcome.undergo(RankEvent.IS_LEFT)
                self._ended(rank, outcome)
        # The plans of many pairs take most of the memory: free them now, or Python looks for
        # cycles among them at its exit.
        self.engine.book = PlanBook(FreeTransport(), 0)

    def let_go(self) -> None:
        """Clear the frames in which the program failed; their lines are lost, too."""
        errors: list[BaseException | None] = [outcome.error for outcome in self.outcomes]
        errors.append(self.aborted)
        seen: set[int] = set()
        while errors:
            error = errors.pop()
            if error is not None and id(error) not in seen:
                seen.add(id(error))
                traceback.clear_frames(error.__traceback__)
                error.__traceback__ = None
                errors += [error.__cause__, error.__context__]


def _compute_to_the_end(rank: Rank, outcome: Outcome) -> None:
    """Let the compute after the last call of a rank pass, if others can delay it."""
    process = rank.enter()
    if process.core.shares():
        outcome.undergo(RankEvent.COMPUTES)
        try:
            process.finish_compute()
        except GreenletExit:
            pass  # the job ends before
        outcome.undergo(RankEvent.RETURNS)
