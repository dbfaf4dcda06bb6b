"""One simulation: worlds of ranks on the slots of a machine, run to their end.

Every rank is a greenlet that the engine resumes when its process is ready. The main greenlet is the
hub in which the engine runs; a rank that waits switches to it.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from enum import Enum
from functools import partial
from typing import Any, NoReturn

from greenlet import GreenletExit, getcurrent

from pysmpi.errors import UsageError
from pysmpi.isolation import collection
from pysmpi.isolation.exchange import Door
from pysmpi.isolation.finalizers import FINALIZERS, Finalizers
from pysmpi.isolation.kinds.exits import EXIT_HARD
from pysmpi.isolation.kinds.tools import Named, begin_fiber
from pysmpi.isolation.loading.opened_mpi import END_RUN
from pysmpi.isolation.loading.shared_state import SharedState
from pysmpi.isolation.program_errors import error_site, internal_error
from pysmpi.kernel.engine import Engine
from pysmpi.kernel.listeners import EVENTS as KERNEL_EVENTS
from pysmpi.kernel.numbers import shared
from pysmpi.kernel.plan import PlanBook, Transport
from pysmpi.kernel.process import Core, Pace, Process
from pysmpi.machine import UNKNOWN_SPEED
from pysmpi.mpi.base.options import ENVIRONMENT
from pysmpi.mpi.base.ranks import (
    AbortStop,
    Fiber,
    FreeTransport,
    Lifecycle,
    Rank,
    Universe,
    World,
    current,
    fiber_of,
)
from pysmpi.mpi.communicators import failures
from pysmpi.mpi.groups import agreement
from pysmpi.mpi.point_to_point.polling import WATCH, Watch
from pysmpi.platform.placement import Slot
from pysmpi.python import facts
from pysmpi.python.frames import CallSite, current_site
from pysmpi.ranks import address_space, stopping
from pysmpi.ranks.observed_calls import ObservedCalls
from pysmpi.time.cpu_time import OTHER_THREADS
from pysmpi.time.paced import PacedTimer

try:
    if not facts.holds("frame-stacks"):
        raise ImportError
    from pysmpi.isolation.frame_stacks import beginning, waiting
except ImportError:  # pysmpi was installed without a C compiler

    def waiting(function: Callable[..., Any], /) -> Callable[..., Any]:
        return function

    beginning = waiting


class RankState(Enum):
    """The final state of a rank."""

    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"
    STOPPED = "stopped"


class Outcome:
    """The end of one rank: its state, its return value or exception, its exit status."""

    __slots__ = ("state", "value", "error", "status", "date", "exit")

    def __init__(self) -> None:
        self.state = RankState.RUNNING
        self.value: Any = None
        self.error: BaseException | None = None
        self.status = 0
        self.date = 0.0  # (s) of its end
        # The argument and the line of `sys.exit`.
        self.exit: tuple[object, CallSite | None] | None = None


class _UnderWay(Outcome):
    """The outcome of all ranks that have not ended; `Simulation.outcome` gives a rank its own."""

    __slots__ = ()

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("this is the outcome of several ranks")


_UNDER_WAY = Outcome()
_UNDER_WAY.__class__ = _UnderWay


# Events of ranks; `instruments.py` describes them.
EVENTS = (
    "ranks_ready", "timer_for", "thread_begun", "rank_failed", "rank_ended", "deadlock_reached",
    "run_ended",
)  # fmt: skip


class Simulation:
    """The ranks of a job, and the means to start more of them."""

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
        agreement.begin()
        self.outcomes: list[Outcome] = []
        self.lost: list[str] = []  # ranks that failed while the others went on, and why
        self.cores: dict[Slot, Core] = {}
        self.paces: dict[str, Pace] = {}  # of hosts whose speed changes, by name
        self.threads: dict[int, list[Fiber]] = {}  # pid -> threads besides the main one
        self.polling: frozenset[int] = frozenset()  # ranks that only test, without success
        self.watch = Watch(hopeless=self._hopeless)
        # Looks for threads that only let time pass, if the engine was stopped for that (see
        # waiting/progress/beats.py). If nothing else is left, `beating` are their processes, and
        # `vain` says what shows it.
        self.look: Callable[[], bool] | None = None
        self.beating: frozenset[Process] = frozenset()
        self.vain = ""
        self.spinning: set[object] = set()  # fibers that wait for a change of memory they poll
        WATCH.put(self.universe, self.watch)
        self.command = ""  # the command of the run, for reports
        self.calls = ObservedCalls(self.universe)
        self.methods: dict[str, list[Callable[..., Any]]] = {event: [] for event in EVENTS}
        self.hub = getcurrent()
        self.shared_state: SharedState | None = None
        self.door = Door(getcurrent)
        self.engine.awake = self.door.enter
        self._wait = self.hub.switch
        self._first_wait = waiting(self._wait)
        self._to_begin = self._begin
        self._named = Named(self._live, beginning)
        self.running = 0
        self.space: address_space.AddressSpace | None = None  # if it is limited
        self._begun = 0  # ranks, then
        self.failed = False
        # Whether the user has interrupted the run; None if this is unknown.
        self.interrupted: bool | None = None
        self.under_way = False  # whether a signal can end it at a safe point
        self.aborted: AbortStop | None = None
        self.abort_rank: Rank | None = None
        self.abort_site: CallSite | None = None
        # The rank that ended in the middle while it used MPI, the status, where and how; this
        # ends the job.
        self.refused: UsageError | None = None  # ends the run
        self.hard_exit: tuple[Rank, int, CallSite | None, str] | None = None

    def listen(self, listener: object) -> None:
        """Notify a listener of the events for which it has methods, after the earlier listeners.

        An event of ranks whose method is None is as one without a method.
        """
        for event, methods in self.methods.items():
            method = getattr(listener, event, None)
            if method is not None:
                methods.append(method)
        if any(hasattr(listener, event) for event in KERNEL_EVENTS):
            self.universe.listen(listener)
        self.calls.add(listener)

    def limit_memory(self, space: address_space.AddressSpace | None) -> None:
        """Look at the memory that is left from time to time, and end the run before it ends."""
        self.space = space
        if space is not None:
            self.engine.listeners.add(self)

    def ticked(self) -> None:
        """Look at the memory that is left."""
        assert self.space is not None
        self.space.check(self._begun, len(self.universe.ranks))

    def add_world(self, slots: Sequence[int], lifecycle: Lifecycle) -> World:
        """Start a world with a rank on each of `slots`; `lifecycle` gives each its program.

        They begin when the engine continues. A rank that has not begun is little more than its
        kernel process.
        """
        universe = self.universe
        world = World(universe, len(universe.ranks), len(slots))
        world.lifecycle = lifecycle
        for slot in slots:
            self._add_rank(world, slot)
        for process in universe.processes[world.first :]:
            process.launch()
        return world

    def slots_for(self, places: Sequence[Slot]) -> list[int]:
        """The slot numbers of some places; new places get new numbers.

        The creator of the transport first extends the transport's list of hosts.
        """
        numbers = {slot: number for number, slot in enumerate(self.slots)}
        before = len(self.slots)
        for place in places:
            if place not in numbers:
                numbers[place] = len(self.slots)
                self.slots.append(place)
        if len(self.slots) > before:
            # The numbers of plans depend on the number of slots.
            self.engine.book = PlanBook(self.engine.book.transport, len(self.slots))
        return [numbers[place] for place in places]

    def _add_rank(self, world: World, slot: int) -> None:
        universe = self.universe
        pid = len(universe.ranks)
        place = self.slots[slot]
        process = Process(self.engine, pid, slot, self._core(place))
        process.core.residents += 1
        process.resume = self._to_begin
        process.suspend = self._wait
        rank = Rank(shared(pid), world, process)
        rank.host, rank.core_number = place.host, place.core
        universe.processes.append(process)
        universe.ranks.append(rank)
        self.outcomes.append(_UNDER_WAY)
        self.running += 1

    def _begin(self) -> Any:
        """Start the rank of a process that runs for the first time."""
        current = self.engine.current
        assert current is not None
        rank = self.universe.ranks[current.pid]
        if self.space is not None:
            if self._begun % address_space.EVERY == 0:
                self.space.check(self._begun, len(self.universe.ranks))
            self._begun += 1
        process = rank.process
        rank.world.lifecycle.equip(rank)
        if process.core.pace is not None and rank.timer is not None:
            rank.timer = PacedTimer(rank.timer, rank)
        # Calls from Python to Python take no C stack, which each switch of ranks copies.
        fiber = rank.fiber = self._fiber(rank, process, self._named.of(rank.pid))
        # A greenlet keeps the arguments of its function, so it has none.
        switch = process.resume = fiber.switch
        switched = switch()
        if process.suspend is self._first_wait:
            process.suspend = self._wait
        return switched

    def _core(self, place: Slot) -> Core:
        core = self.cores.get(place)
        if core is None:
            speed = place.host.speed or UNKNOWN_SPEED
            core = self.cores[place] = Core(speed, place.host.name, place.core)
            core.pace = self.paces.get(core.host)
        return core

    def _fiber(self, rank: Rank, process: Process, body: Callable[..., object]) -> Fiber:
        fiber = Fiber(body, self.hub)
        fiber.rank = rank
        fiber.process = process
        fiber.gate = fiber.record = None
        fiber.state = None if rank.program is None else rank.program.state
        process.suspend = self._first_wait
        return fiber

    def outcome(self, rank: Rank) -> Outcome:
        """The outcome of a rank, to be changed."""
        found = self.outcomes[rank.pid]
        if found is _UNDER_WAY:
            found = self.outcomes[rank.pid] = Outcome()
        return found

    def _live(self) -> None:
        rank = current()
        self.door.enter()
        try:
            begin_fiber()
            rank.leave()
            # Each rank that waits has this frame: few variables, and no function in between.
            try:
                value = rank.world.lifecycle.begin(rank)()
            except BaseException as error:
                rank.world.lifecycle.end(rank, error)
                raise
            rank.world.lifecycle.end(rank, None)
            self.outcome(rank).value = value
            self.outcome(rank).state = RankState.FINISHED
        except BaseException as error:
            self._failed(rank, error)
        finally:
            self._leave(rank)

    def _failed(self, rank: Rank, error: BaseException) -> None:
        """An exception has ended the program of a rank."""
        outcome = self.outcome(rank)
        if isinstance(error, AbortStop):
            outcome.state = RankState.STOPPED
            outcome.status = error.status
        elif isinstance(error, GreenletExit):
            outcome.state = RankState.STOPPED
        elif isinstance(error, SystemExit):
            outcome.state = RankState.FINISHED
            outcome.status = exit_status(error)
            outcome.exit = error.code, error_site(error)
            if not isinstance(error.code, int | None):
                outcome.error = SystemExit(exit_text(error))
        elif isinstance(error, KeyboardInterrupt) and self.interrupted is not False:
            outcome.state = RankState.STOPPED
            raise error
        else:
            for method in self.methods["rank_failed"]:
                method(rank, error)
            outcome.state = RankState.FAILED
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
        outcome.date = self.engine.now + process.debt
        process.compute_seconds += process.debt
        process.finished = True
        process.core.residents -= 1
        self.running -= 1
        rank.fiber = None
        process.resume = _nothing
        process.suspend = _refuse_ended
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
                outcome.state = RankState.STOPPED
                if self.universe.tolerant:
                    self.survive(rank, f"{how or f'os._exit({status & 0xFF})'} at {current_site()}")
                else:
                    if self.hard_exit is None:
                        self.hard_exit = rank, status & 0xFF, current_site(), how
                    self.engine.stop()
            else:
                outcome.state = RankState.FINISHED
            fibers = [] if rank.fiber is None else [rank.fiber]
            for other in [*fibers, *self.threads.get(rank.pid, ())]:
                other.process.reset()
                other.process.resume = _nothing
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
        outcome.state = RankState.STOPPED
        if rank.fiber is None:
            return  # it has not begun
        for fiber in [rank.fiber, *self.threads.pop(rank.pid, ())]:
            fiber.process.reset()
            fiber.process.resume = _nothing
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

    def _hopeless(self, pids: frozenset[int]) -> None:
        """All running ranks only test, without success."""
        self.polling = pids
        self.engine.stop()

    def break_deadlock(self, found: object) -> bool:
        """Raise the deadlock in every waiting rank, which may continue from there.

        In a rank with several threads, raise it in those that wait for other ranks; they will wake
        the threads that wait for threads of their own rank.
        """
        for rank in self.waiting():
            fibers = [rank.fiber] + [
                fiber
                for fiber in self.threads.get(rank.pid, ())
                if fiber.process not in self.beating
            ]
            for fiber in [fiber for fiber in fibers if fiber.gate is None] or fibers[:1]:
                process = fiber.process
                process.reset()
                if rank.pid in self.polling:
                    _forget(self.engine, process)
                process.resume = _thrower(fiber, found, process.resume)
                process.launch()
        return True

    def start_thread(
        self, rank: Rank, body: Callable[[], object], ended: Callable[[], object] | None = None
    ) -> Fiber:
        """Start a thread of `rank`: a separate fiber that shares the rank's core.

        `ended()` is called in the thread when the time of its compute has passed.
        """
        rank.settle()
        main = rank.fiber.process
        threads = self.threads.get(rank.pid)
        if threads is None:
            threads = self.threads[rank.pid] = []
            main.resume = _switcher(rank, main, rank.fiber)
            main.suspend = _keeper(rank, rank.fiber, main.suspend)
        process = Process(self.engine, rank.pid, main.slot, main.core)
        live = beginning(lambda: self._live_thread(rank, fiber, body, ended))
        fiber = self._fiber(rank, process, live)
        process.resume = _switcher(rank, process, fiber)
        process.suspend = _keeper(rank, fiber, process.suspend)
        process.core.residents += 1
        threads.append(fiber)
        OTHER_THREADS.of(rank).living.append(process)
        process.launch()
        return fiber

    def _live_thread(
        self,
        rank: Rank,
        fiber: Fiber,
        body: Callable[[], object],
        ended: Callable[[], object] | None,
    ) -> None:
        self.door.enter()
        rank.record = None
        try:
            rank.leave()
            body()
        except GreenletExit:
            pass
        finally:
            try:
                if not self.engine.stopped and type(rank) is Rank:
                    rank.enter().finish_compute()
            except GreenletExit:
                pass  # the rank ends before
            finally:
                if ended is not None:
                    ended()
                self._thread_ended(rank, fiber)

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
            process.resume = _nothing
            kind = type(rank)
            stopping.stop(rank)
            with stopping.silently():
                stopping.end(fiber, once=kind is Rank)
            rank.__class__ = kind
            if fiber in threads:  # it had not begun, or it was left
                self._thread_ended(rank, fiber)
        rank.in_call, rank.record = in_call, record
        rank.process = rank.fiber.process

    def run(self) -> None:
        """Run all ranks to their end, or until one of them fails or aborts the job.

        Raises KeyboardInterrupt if a signal has ended it.
        """
        self.under_way = True
        try:
            with self.silence, stopping.interruptible(self):
                self._run()
        finally:
            self.under_way = False
        if self.interrupted:
            raise KeyboardInterrupt

    def interrupt(self) -> None:
        """End the run: for handlers of signals, which any code may have called.

        In a rank it switches to the hub. There the rank ends as all others do, so that no exception
        is lost that code between the rank's program and the handler does not pass on.
        """
        self.interrupted = True
        self.engine.stop()
        running: Any = getcurrent()
        fiber = running
        while fiber is not None and not isinstance(fiber, Fiber):
            fiber = fiber.parent
        if fiber is None or running is self.hub or fiber.rank.fiber is None:
            return
        self.silence.begin()
        self._stop(fiber.rank)
        programs = running is not fiber and fiber_of(running) is fiber
        if programs:
            fiber.waiting, running.state = running, fiber.state
        try:
            self.hub.switch()
        finally:
            if self.engine.awake is not None:
                self.engine.awake()
            if programs:
                fiber.waiting = None

    def holds(self, running: object) -> bool:
        """Whether a greenlet is one of the simulation: the hub, or one that runs a rank's code."""
        found: Any = running
        while found is not None:
            if found is self.hub or isinstance(found, Fiber):
                return True
            found = found.parent
        return False

    def _run(self) -> None:
        engine = self.engine
        try:
            with collection.announced(self.finalizers):
                # A signal may come at any time: it is looked for after each `stopped = False`.
                while not self.interrupted:
                    engine.run()
                    if self.interrupted:
                        break
                    look, self.look = self.look, None
                    if look is not None and not look():
                        engine.stopped = False
                        continue
                    if (self.polling or self.beating) and self.running and not self.failed:
                        engine.stopped = False
                        if self._goes_on():
                            self.polling = frozenset()
                            self.beating = frozenset()
                            continue
                        break
                    if engine.stopped or self.running == 0 or self.failed:
                        break
                    self.door.leave()
                    if not self._goes_on():
                        break
        finally:
            self.close()

    def _goes_on(self) -> bool:
        """No rank can go on: whether a listener changes that."""
        for method in self.methods["deadlock_reached"]:
            answer: bool | None = method(self)
            if answer is not None:
                return answer
        return False

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

    def waiting(self) -> list[Rank]:
        """The ranks that have not ended."""
        return [
            rank
            for rank, outcome in zip(self.universe.ranks, self.outcomes)
            if outcome.state is RankState.RUNNING
        ]

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
                self.outcome(rank).state = RankState.STOPPED
                continue
            self._stop(rank)
            rank.process = rank.fiber.process
            stopping.end(rank.fiber)
            if rank.fiber is not None:  # it was left
                outcome = self.outcome(rank)
                outcome.state = RankState.STOPPED
                self._ended(rank, outcome)
        # The plans of many pairs take most of the memory: free them now, or Python looks for
        # cycles among them at its exit.
        self.engine.book = PlanBook(FreeTransport(), 0)


def _forget(engine: Engine, process: Process) -> None:
    """Remove the future events of a process."""
    for date, event in engine.queue.all():
        if event is process:
            engine.queue.remove(date, process)


def _compute_to_the_end(rank: Rank, outcome: Outcome) -> None:
    """Let the compute after the last call of a rank pass, if it shares its core."""
    process = rank.enter()
    if process.core.residents > 1:
        outcome.state = RankState.RUNNING
        try:
            process.finish_compute()
        except GreenletExit:
            pass  # the job ends before
        outcome.state = RankState.FINISHED


def exit_status(leave: SystemExit) -> int:
    """The exit status of a process of Python on `SystemExit`: eight bits of a C long."""
    code = leave.code
    if code is None:
        return 0
    if not isinstance(code, int):
        return 1
    return code & 0xFF if -(1 << 63) <= code < 1 << 63 else 0xFF


def exit_text(leave: SystemExit) -> str:
    """The text that Python shows of a `SystemExit` whose code is no integer."""
    try:
        return str(leave.code)
    except Exception:
        return ""


def _refuse_ended() -> None:
    """Refuse a call that would wait, from an object that outlives the program of its rank."""
    rank = current()
    rank.process.reset()
    raise RuntimeError(
        f"rank {rank.index} has ended: an object that it had left made an MPI call that waits for "
        "other ranks (from a __del__ for instance); make that call before MPI.Finalize"
    )


def _nothing() -> None:
    """Resume a thread or a rank that is no longer there."""


def _thrower(fiber: Fiber, found: Any, usual: Callable[[], object]) -> Callable[[], object]:
    """Resume a fiber with an exception, this once."""

    def resume() -> Any:
        fiber.process.resume = usual
        fiber.rank.process = fiber.process
        return (fiber.waiting or fiber).throw(found.exception())

    return resume


def _keeper(rank: Rank, fiber: Fiber, suspend: Callable[[], object]) -> Callable[[], Any]:
    """Suspend one thread of a rank with several threads; each has its own call."""

    def keep() -> Any:
        fiber.record, rank.record = rank.record, None
        try:
            return suspend()
        finally:
            fiber.record, rank.record = None, fiber.record

    return keep


def _switcher(rank: Rank, process: Process, fiber: Fiber) -> Callable[[], Any]:
    """Resume one thread of a rank that has several."""

    def resume() -> Any:
        rank.process = process
        return fiber.switch()

    return resume
