"""Ranks: the state of MPI for each process, and the running rank.

All ranks are in one interpreter, so a handle such as `COMM_WORLD` is one object for all ranks and
uses `current()` to find the calling rank. State that differs between ranks, from error handlers to
names, is in slots that its chapter declares (`base/state.py`).
"""

from __future__ import annotations

import platform
import time
from _thread import get_ident
from collections.abc import Callable
from types import CodeType
from typing import Any, NoReturn, Protocol
from weakref import WeakValueDictionary

from greenlet import GreenletExit, getcurrent, greenlet

from pysmpi.kernel.core import Core
from pysmpi.kernel.engine import Engine
from pysmpi.kernel.plan import Plan, Transport
from pysmpi.kernel.process import Process
from pysmpi.kernel.requests import KernelRequest
from pysmpi.mpi.base.owners import NO_STATE, Owner
from pysmpi.mpi.base.procedures import CallKind, Procedure, Role
from pysmpi.mpi.base.settings import CallSettings
from pysmpi.mpi.base.state import forget
from pysmpi.mpi.base.telling import CallTeller
from pysmpi.python.frames import (
    BOUNDARY,
    CallSite,
    calling_code,
    current_site,
    current_sites,
    greenlet_site,
)

_NEVER = 1 << 62  # beats
_READINGS = 1024  # of clocks, between two looks whether anything else happens


class Universe(Owner):
    """The shared state of all ranks of one simulation: the engine, and every process by its pid."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.processes: list[Process] = []
        self.ranks: list[Rank] = []
        self.contexts = 0  # number of communication contexts
        # Communicators by the numbers of their contexts.
        self.communicators: WeakValueDictionary[int, Any] = WeakValueDictionary()
        # Those of contexts that only one operation or one purpose has.
        self.purposes: WeakValueDictionary[int, Any] = WeakValueDictionary()
        self.state = NO_STATE
        self.watchers: tuple[Watcher, ...] | None = None  # of ranks that begin
        self.selection: Any = None  # of collective algorithms
        self.settings = CallSettings()
        self.tolerant = False  # whether the others go on if a rank fails
        self.aborted: tuple[Rank, AbortStop] | None = None  # the rank that called Abort
        self.on_abort: Callable[[Rank], object] | None = None  # called after that
        # Beats: sleeps and timeouts so far, the number at which `on_beat` is called; and readings
        # of clocks by the program, while these are noted.
        self.beats = 0
        self.beats_until = _NEVER
        self.on_beat: Callable[[Rank], object] | None = None
        self.noting_clocks: Callable[[Universe], object] | None = None
        self.clock_reads = 0
        # All readings of clocks that take time; the state of the engine after some of them; and the
        # function to call if the running rank has only read clocks for long.
        self.readings = 0
        self.read_at: object = None
        self.on_readings: Callable[[Rank], object] | None = None

    def communicator_of(self, context: int) -> Any:
        """The communicator that has a context, also one for a single purpose; None for no one."""
        result = self.communicators.get(context)
        return self.purposes.get(context) if result is None else result

    def listen(self, listener: object) -> None:
        """Notify a listener of the events for which it has methods (kernel/listeners.py).

        It hears of the calls of all ranks, also of ranks that begin later.
        """
        listeners = self.engine.listeners
        listeners.add(listener)
        calls = listeners.call_begun is not None or listeners.call_ended is not None
        if calls and self.watchers is None:
            watcher = CallTeller()
            listeners.add(watcher)
            self.watchers = (watcher,)
            for rank in self.ranks:
                rank.watch(watcher)

    def ignore(self, listener: object) -> None:
        """Stop notifying a listener."""
        listeners = self.engine.listeners
        listeners.remove(listener)
        if listeners.call_begun is None and listeners.call_ended is None:
            for watcher in self.watchers or ():
                listeners.remove(watcher)
                for rank in self.ranks:
                    rank.unwatch(watcher)
            self.watchers = None

    def next_context(self) -> int:
        """A number for a new communication context."""
        self.contexts += 1
        return self.contexts


class World(Owner):
    """The ranks that were started together: their `COMM_WORLD`."""

    __slots__ = ("universe", "first", "size", "begin", "communicator", "lifecycle")

    lifecycle: Lifecycle  # of its ranks, if a simulation runs them

    def __init__(self, universe: Universe, first: int, size: int) -> None:
        self.universe = universe
        self.first = first  # pid of rank 0; the others follow
        self.size = size
        self.begin = 0.0  # (s) of its ranks
        self.communicator: Any = None  # of COMM_WORLD, after its first use
        self.state = NO_STATE


class Lifecycle(Protocol):
    """The steps of the ranks of a world before and after their program.

    Its methods have returned when the program runs, so a rank that waits has few frames.
    """

    def equip(self, rank: Rank) -> None:
        """Give a rank what belongs to it, just before it begins."""

    def begin(self, rank: Rank) -> Callable[[], object]:
        """The program of a rank, which it calls next; called in the rank."""

    def end(self, rank: Rank, error: BaseException | None) -> None:
        """The program has returned, or `error` has ended it or `begin`; called in the rank.

        An exception takes the place of `error`.
        """


class Stop(GreenletExit, KeyboardInterrupt):
    """Ends a rank that is stopped.

    Frameworks that catch every exception of user code do not catch `KeyboardInterrupt`.
    """


class AbortStop(Stop):
    """Ends the rank that calls `MPI.Abort`, and with it the job.

    `how` describes another reason for which a rank aborts the job.
    """

    def __init__(self, status: int, how: str = "") -> None:
        super().__init__(status)
        self.status = status
        self.how = how


class Watcher(Protocol):
    """Notified of the calls of a rank that take part in the simulation.

    A call of MPI is `rank.call`. It is None when the rank sleeps, or waits for one of its threads
    or for the rooms above.
    """

    def begun(self, rank: Rank) -> None:
        """A call has begun; an exception ends it."""

    def ended(self, rank: Rank) -> None:
        """The call ends."""


class Rank(Owner):
    """One MPI process: its identity, its kernel process and its private MPI state.

    `process` is the kernel process of the thread that runs now. `program` belongs to
    `isolation`.
    """

    __slots__ = (
        "pid", "world", "universe", "engine", "process", "timer", "host", "program",
        "fiber", "self_communicator", "polls", "core_number", "in_call", "record", "watchers",
        "__weakref__",
    )  # fmt: skip

    def __init__(self, pid: int, world: World, process: Process) -> None:
        self.pid = pid
        self.world = world
        self.universe = world.universe
        self.engine = world.universe.engine
        self.process = process
        self.state = NO_STATE
        self.timer: Any = None  # native timing of compute: `stop() -> seconds`, `start()`
        self.host: Any = None  # the platform's host that it runs on
        self.core_number = 0  # of its processor core on the host
        self.program: Any = None  # its private environment
        self.fiber: Any = None  # of its main thread
        self.self_communicator: Any = None  # of COMM_SELF, after its first use
        self.polls = 0  # number of failed tests in a row
        self.in_call = True  # whether its timer stands; it runs while the program does
        # The MPI call of its running thread: a `MpiCall`, or the procedure and the arguments, from
        # which `call` makes one.
        self.record: Any = None
        # Notified of the begin and the end of each call that takes part in the simulation.
        self.watchers: tuple[Watcher, ...] | None = world.universe.watchers

    def forget(self) -> None:
        """Release the state of the rank, at its end."""
        forget(self, Rank)
        self.program = self.timer = self.self_communicator = None

    def __repr__(self) -> str:
        return f"<rank {self.index} of {self.world.size}, pid {self.pid}>"

    @property
    def index(self) -> int:
        """The rank in `COMM_WORLD`."""
        first = self.world.first
        return self.pid - first if first else self.pid  # the same object if it can be

    @property
    def call(self) -> MpiCall | None:
        """The call of MPI that the rank is in, or its running thread."""
        record = self.record
        if record.__class__ is tuple:
            record = self.record = MpiCall(record[0], self, record[1:])
        return record  # type: ignore[no-any-return]

    def watch(self, watcher: Watcher) -> None:
        """Notify `watcher` of calls, after earlier watchers."""
        self.watchers = (*(self.watchers or ()), watcher)

    def unwatch(self, watcher: Watcher) -> None:
        """Stop notifying `watcher`."""
        self.watchers = tuple(w for w in self.watchers or () if w is not watcher) or None

    def now(self) -> float:
        """The rank's own clock (s): simulated time, with the compute that it still owes.

        On a core that others use too, this compute passes first: their compute decides its end.
        """
        if not self.in_call:
            if self.process.core.shares():
                self.settle()
            elif self.timer is not None:
                self.process.debt += self.timer.stop()
                self.timer.start()
        return self.engine.now + self.process.debt

    def settle(self) -> None:
        """Let the compute that the program still owes pass; others may run meanwhile.

        It is no call of the program, so watchers do not hear of it. It does nothing inside a call,
        in a run whose choices are not the clock's, after the end of the simulation, and while the
        rank imports a module that others share: they should not see a part of it.
        """
        if not self.in_call:
            self.pass_compute(0.0 if self.timer is None else self.timer.stop())

    def pass_compute(self, seconds: float) -> None:
        """As `settle`, with the seconds of the block of compute up to here; it goes on after."""
        process = self.process
        process.debt += seconds
        try:
            engine = self.engine
            program = self.program
            if (
                process.debt > 0.0
                and not engine.controlled
                and not engine.stopped
                and not (program is not None and program.importing)
            ):
                self.in_call = True
                process.finish_compute()
        finally:
            self.in_call = False
            if self.timer is not None:
                self.timer.start()

    def clock(self) -> float:
        """The value of `Wtime`: each reading costs a little, so that polling loops progress."""
        if self is outside:
            return time.perf_counter()
        now = self.now()
        self.poll(self.universe.settings.wtime)
        return now

    def thread(self) -> int:
        """The identity of the running thread of this rank."""
        fiber = fiber_of(getcurrent())
        return id(fiber) if isinstance(fiber, Fiber) else get_ident()

    def host_name(self) -> str:
        """Name of the host on which the rank runs."""
        return self.host.name if self.host is not None else platform.node()

    def abort(self, status: int, how: str = "") -> NoReturn:
        """End the program of all ranks with an exit status; `how` as for `AbortStop`."""
        if self is outside:
            raise SystemExit(status)
        error = AbortStop(status, how)
        # The program may catch it, as thread pools do; even then no more events happen.
        if self.universe.aborted is None:
            self.universe.aborted = self, error
        self.engine.stop()
        if self.universe.on_abort is not None:
            self.universe.on_abort(self)
        raise error

    def enter(self) -> Process:
        """Begin a call that takes part in the simulation: bill the compute since the last one.

        Within a call there is no compute to bill, so calls may be nested.
        """
        if not self.in_call:
            if self.timer is not None:
                self.process.debt += self.timer.stop()
            self.in_call = True
            if self.watchers is not None:
                self._begun(self.watchers)
        return self.process

    def _begun(self, watchers: tuple[Watcher, ...]) -> None:
        try:
            for watcher in watchers:
                watcher.begun(self)
        except BaseException:
            self.leave()
            raise

    def leave(self) -> None:
        """Return to the program, also by an exception: now its compute is measured."""
        if self.watchers is not None and self.in_call and self.record is None:
            for watcher in self.watchers:
                watcher.ended(self)
        self.in_call = False
        if self.timer is not None:
            self.timer.start()

    def poll(self, seconds: float) -> None:
        """Charge a little time for a look at the clock.

        It does not give way to others, unless the rank has only read clocks for long: it may wait
        for a change of memory, and stop after some time. Nothing is charged while it imports a
        module that others share: only the first rank of the first run of a process does.
        """
        if self.program is not None and self.program.importing:
            return
        self.process.debt += seconds
        universe = self.universe
        if seconds > 0.0 or self.timer is not None:
            universe.readings += 1
            if not universe.readings % _READINGS:
                self._read_often()
        if universe.noting_clocks is not None:
            universe.noting_clocks(universe)

    def _read_often(self) -> None:
        engine, universe, process = self.engine, self.universe, self.process
        callbacks = universe.on_readings
        mark = process, engine.now, engine.events, engine.order, universe.beats
        if callbacks is not None and universe.read_at == mark:
            callbacks(self)
        universe.read_at = process, engine.now, engine.events, engine.order, universe.beats

    def beat(self) -> None:
        """Count a sleep or a timeout that begins."""
        universe = self.universe
        universe.beats += 1
        if universe.beats >= universe.beats_until and universe.on_beat is not None:
            universe.on_beat(self)

    def sleep(self, seconds: float) -> None:
        """Let `seconds` of simulated time pass; at least run the events that are due now."""
        process = self.enter()
        try:
            self.beat()
            process.sleep(seconds)
        finally:
            self.leave()


class Fiber(greenlet):
    """A greenlet that runs the code of a rank: its main program, or one of its threads."""

    # Of each fiber; a greenlet has a dictionary for others, which takes memory once it is used.
    __slots__ = ("rank", "process", "gate", "record", "state")

    rank: Rank
    process: Process
    gate: KernelRequest | None
    pace: object  # the pace of its looks at the outside, see waiting/outside/reactor.py
    record: Any  # the call it is in, while another thread of its rank runs
    state: Any  # the rank's own state of the interpreter, see isolation/kinds/
    waiting: Any = None  # a greenlet of the program's, run by this fiber, that waits in its place

    def block(self, timeout: float | None = None) -> bool:
        """Wait for `wake`, at most `timeout` (simulated s); return whether it was called."""
        rank = self.rank
        process = rank.enter()
        before = process.comm_seconds
        gate = self.gate = KernelRequest()
        try:
            waits = [gate]
            if timeout is not None:
                if process.core.shares():
                    process.finish_compute()
                rank.beat()
                date = rank.engine.now + process.debt + max(0.0, timeout)
                waits.append(rank.engine.alarm(date))
            process.wait_any(waits)
            if timeout is not None and gate.done and not waits[1].done:
                rank.engine.ignore(waits[1])
        finally:
            self.gate = None
            process.comm_seconds = before
            rank.leave()
        return gate.done

    def wake(self) -> None:
        """Resume a blocked fiber, at the current time of the calling rank."""
        gate = self.gate
        if gate is None or gate.done:
            return
        waker = current()
        if waker is self.rank and not waker.in_call:
            waker.enter().finish_compute()
            waker.leave()
        if not gate.done:
            gate.complete(self.rank.engine.now)


class MpiCall:
    """A call of a procedure of MPI, from its begin to its end.

    `values` are the arguments in the order of `procedure.parameters`; `fiber` is the thread of the
    rank that made the call, None outside a simulation.
    """

    __slots__ = (
        "procedure", "name", "kind", "rank", "values", "fiber", "handles", "started", "library",
        "_site",
        "__weakref__",
    )  # fmt: skip

    def __init__(self, procedure: Procedure, rank: Rank, values: tuple[Any, ...]) -> None:
        self.procedure = procedure
        self.name: str = procedure.name
        self.kind: CallKind = procedure.kind
        self.rank = rank
        self.values = values
        fiber: Any = getcurrent()
        if fiber is not rank.fiber:
            fiber = fiber_of(fiber)
            if not isinstance(fiber, Fiber) or fiber.rank is not rank:
                fiber = rank.fiber
        self.fiber: Fiber | None = fiber
        # Handles that the call took out of an iterator, which `values` no longer gives.
        self.handles: list[Any] | None = None
        # The sends, receives and other requests of the kernel that it has started, in this order.
        # They are noted only in runs with a listener of calls.
        self.started: list[KernelRequest] = []
        # The place in a library that made the call, noted only in runs with checkers.
        self.library: CallSite | None = None
        self._site: CallSite | None = None

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments by the names of their parameters."""
        return dict(zip(self.procedure.parameters, self.values))

    def having(self, role: Role) -> dict[str, object]:
        """The arguments of a role, by the names of their parameters."""
        values = self.values
        places = self.procedure.places.get(role, ())
        return {name: values[i] for i, name in places if i < len(values)}

    @property
    def operations(self) -> list[Any]:
        """The operations (see `point_to_point.operations`) of the requests among the arguments.

        For a call that waits these are the operations that it waits for.
        """
        handles = self.handles
        if handles is None:
            handles = []
            for value in self.having(Role.REQUEST).values():
                if isinstance(value, list | tuple):
                    handles += value
                else:
                    handles.append(value)
        if not handles:
            return []
        found = (getattr(handle, "_impl", None) for handle in handles)
        return [operation for operation in found if operation is not None]

    @property
    def pending(self) -> list[Any]:
        """The messages and other requests of the kernel that the call waits for now."""
        process = self.rank.process if self.fiber is None else self.fiber.process
        return list(process.pending())

    @property
    def site(self) -> CallSite | None:
        """The place of the call in the program; None if unknown."""
        if self._site is None:
            fiber = self.fiber
            if fiber is None or fiber is fiber_of(getcurrent()):
                # The frames inside the boundary may be those of a listener.
                self._site = current_site(BOUNDARY)
            else:
                self._site = greenlet_site(fiber.waiting or fiber)
        return self._site

    def locate(self) -> None:
        """Note the places of the call while its frame is there."""
        fiber = self.fiber
        if fiber is None or fiber is fiber_of(getcurrent()):
            self._site, self.library = current_sites(BOUNDARY)

    @property
    def caller(self) -> CodeType | None:
        """The code that made the call, which may be pysmpi's own; only while the call runs."""
        return calling_code(BOUNDARY)

    def __repr__(self) -> str:
        return f"<call of {self.name} by {self.rank!r}>"


class FreeTransport(Transport):
    """Messages without cost: the transport outside a simulation."""

    def plan(self, source: int, destination: int, nbytes: int) -> Plan:
        return Plan(eager=True)


def _alone() -> Rank:
    """The rank of a program outside a simulation: alone in its world.

    Its waits run the engine directly.
    """
    engine = Engine(FreeTransport(), 1)
    universe = Universe(engine)
    process = Process(engine, 0, 0, Core(1e9))
    world = World(universe, 0, 1)
    rank = Rank(0, world, process)
    universe.processes.append(process)
    universe.ranks.append(rank)

    def suspend() -> None:
        engine.stopped = False
        engine.run()
        if not engine.stopped:
            raise RuntimeError("this call waits for a message that no rank can send any more")
        engine.stopped = False

    process.suspend = suspend
    process.resume = engine.stop
    rank.in_call = False
    return rank


# Used outside of simulations.
outside = _alone()


def current() -> Rank:
    """The running rank; outside a simulation, a rank that is alone."""
    try:
        return getcurrent().rank  # type: ignore[attr-defined, no-any-return]
    except AttributeError:
        running = fiber_of(getcurrent())
        return running.rank if isinstance(running, Fiber) else outside
    except RuntimeError:  # at the exit of Python
        return outside


def fiber_of(running: Any) -> object:
    """The fiber that runs a greenlet which the program has made; other greenlets themselves.

    Those of pysmpi have a `rank` of their own.
    """
    if isinstance(running, Fiber):
        return running
    result = running
    while result is not None and not isinstance(result, Fiber):
        if hasattr(result, "rank"):
            return running
        result = result.parent
    if result is None:
        return running
    process = result.process
    if getattr(process.suspend, "fiber", None) is not result:
        process.suspend = WaitOfGreenlets(result, process.suspend)
    return result


class WaitOfGreenlets:
    """Waits of a fiber whose program has greenlets of its own: the one that waits continues."""

    __slots__ = ("fiber", "suspend")

    def __init__(self, fiber: Fiber, suspend: Callable[[], object]) -> None:
        self.fiber = fiber
        self.suspend = suspend

    @property
    def plain(self) -> object:
        """The wait of the fiber while no event loop runs, see waiting/outside/event_loops.py."""
        return getattr(self.suspend, "plain", None)

    def __call__(self) -> object:
        fiber = self.fiber
        running: Any = getcurrent()
        if running is fiber:
            return self.suspend()
        rank, process, resume = fiber.rank, fiber.process, fiber.process.resume

        def proceed() -> object:
            rank.process = process
            return running.switch()

        record, rank.record = rank.record, None
        process.resume, fiber.waiting = proceed, running
        # `awake` expects the state of this rank with the running greenlet.
        had = "state" in vars(running), vars(running).get("state")
        running.state = fiber.state
        try:
            return self.suspend()
        finally:
            awake = rank.engine.awake
            if awake is not None:
                awake()
            if had[0]:
                running.state = had[1]
            else:
                del running.state
            process.resume, fiber.waiting, rank.record = resume, None, record
