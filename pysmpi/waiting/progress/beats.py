"""Time that only passes: threads that sleep in loops, while nothing else in a run can happen.

A sleep or a timeout that ends is a *beat*. A stretch of beats is in vain if no message was sent and
no receive posted meanwhile, and the only events left are the ends of such waits, which have ended
like that before. It may still end: a thread may count its beats, look at the clock, or wait for
something outside of the run. So a stretch is only reported

- after `LEAST` beats, if the state of all these threads (see `states.py`) has not changed in the
  last of them, and their code has not read a clock;
- after more than `LONG` simulated seconds, if only clocks have changed (`LONGER` if the main
  thread of a rank is among those that beat);
- after `MANY` beats and `LONG` seconds, or `Watch.most` beats, if only threads beat that a rank has
  beside its main one. These may also compute, wake each other and start threads meanwhile.

`LONG_OF_DAEMONS` takes the place of `LONG` if only daemons beat and no main thread waits for them.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from pysmpi.kernel.activities import Bundle
from pysmpi.kernel.engine import Alarm
from pysmpi.kernel.process import Process
from pysmpi.kernel.steps import Execution
from pysmpi.python.frames import (
    activations,
    current_site,
    greenlet_site,
    is_library,
    is_ours,
    line_outside,
    shorten,
)
from pysmpi.python.installed import standard
from pysmpi.waiting.outside.peers import other_children
from pysmpi.waiting.outside.reactor import waits_for_outside
from pysmpi.waiting.progress.states import StateReader, names_in_loop

if TYPE_CHECKING:
    from pysmpi.mpi.base.ranks import Fiber, Rank, Universe
    from pysmpi.ranks.simulation import Simulation

FIRST = 10_000  # beats before the first look
BETWEEN = 2_000  # beats between two looks, at least
LEAST = 50_000  # beats that are reported
SAMPLES = 8  # looks in a row that have found no new state
MANY = 100_000  # beats
LONG = 1e5  # (s)
LONG_OF_DAEMONS = 1e4  # (s)
LONGER = 1e7  # (s)
_SHORT = 1e-3  # (s)
_BRIEF = 0.05  # of a sleep: computations between sleeps that do not count
_TELL = 5.0  # real seconds until a wait for something outside is told
# Functions that look at something that other processes can change.
_LOOKS = frozenset(
    "exists lexists isfile isdir is_file is_dir stat lstat access listdir scandir glob iglob rglob "
    "iterdir getsize getmtime getctime read readline readlines read_text read_bytes open urlopen "
    "load loadtxt pid_exists process_iter".split()
)

_FUNCTIONS = 200  # that are searched for them
# A thread by its place: the rank, whether it is the main thread, the functions and instructions.
Place = tuple[int, bool, tuple[tuple[int, int], ...]]


class Beats:
    """Looks at the beats of a simulation from time to time."""

    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation
        self.universe = simulation.universe
        self._mark: object = None
        self._paced: tuple[float, float] | None = None  # since these dates, simulated and real
        self._told = False
        self._reads = 0
        self.steady = self.changing = 0  # looks since the latest change
        self._latest = 0.0
        self._woken = 0, 0.0
        self._restart()
        self.universe.on_beat = self._beat

    @property
    def most(self) -> int:
        """The number of beats that are in vain whatever changes; 0 for no limit."""
        return self.simulation.watch.most

    def vain(self, process: Process) -> bool:
        """Whether a process is that of a thread which beats."""
        fiber = self._fibers().get(process)
        return fiber is not None and self._place(fiber) in self.fired

    # Called in a rank

    def _beat(self, rank: Rank) -> None:
        """The number of beats has reached the next look."""
        engine = self.simulation.engine
        if not self.most or engine.stopped:
            self.universe.beats_until = self.universe.beats + FIRST
            return
        if self._progress() != self._mark:
            self._restart()
            return
        if self._paced is not None:
            self._pace(rank)
        self.simulation.look = self._look
        engine.stop()

    def _pace(self, rank: Rank) -> None:
        """Let as much real time pass as simulated time."""
        assert self._paced is not None
        virtual, real = self._paced
        ahead = (self.simulation.engine.now - virtual) - (monotonic() - real)
        if ahead > 0.0:
            sleep(min(ahead, 1.0))
        if not self._told and monotonic() - real > _TELL:
            self._told = True
            fiber = self._looking
            site = greenlet_site(fiber.waiting or fiber) or current_site()
            who = fiber.rank.index
            place = "" if site is None else f" at {shorten(site.file)}:{site.line}"
            print(
                f"pysmpi: rank {who} looks again and again{place} for something outside of the "
                "run, such as a file, and nothing else can happen; simulated time now passes no "
                "faster than real time",
                file=sys.__stderr__, flush=True,
            )  # fmt: skip

    # Called in the hub

    def _look(self) -> bool:
        """Look at all threads; whether the stretch of beats is in vain."""
        universe, engine = self.universe, self.simulation.engine
        pending, computation = self._pending()
        between = min(BETWEEN, self.most // 16)
        universe.beats_until = universe.beats + max(between, 20 * len(pending))
        if self._paced is not None:
            universe.beats_until = universe.beats + 1
        if not pending:
            self._restart()
            return False
        now = engine.now
        latest = self._latest_wait()
        if latest > self._latest:
            self._latest = latest
            self._woken = universe.beats, now
        for (process, time), (place, lead) in list(self.awaited.items()):
            if time <= now:
                self.fired[place] = max(self.fired.get(place, 0.0), lead)
                del self.awaited[process, time]
        slept = max(self.fired.values(), default=0.0)
        certain = computation <= max(_SHORT, _BRIEF * slept)
        soon = True
        longest_of_all = 2.0 * slept + _SHORT
        states = set()
        for time, process, fiber in pending:
            place = self._place(fiber)
            longest = self.fired.get(place)
            if longest is None or time - now > 2.0 * longest + _SHORT:
                certain = False
                # Threads that wake each other, or start others, are met in places that are new.
                soon = soon and time - now <= longest_of_all
            self.awaited.setdefault((process, time), (place, time - now))
            states.add((place, _state(fiber, False)))
            timed = _state(fiber, True)
            if timed != self._timed.get(place):
                self._timed[place] = timed
                self.changing = 0
        if universe.clock_reads != self._reads:
            self._reads = universe.clock_reads
            self.changing = 0
        else:
            self.changing += 1
        self.steady = self.steady + 1 if states <= self.states else 0
        self.states |= states
        universe.noting_clocks = note_clock
        if not soon:
            return False
        fibers = [fiber for _, _, fiber in pending]
        reason = self._reason(fibers, certain)
        if not reason or self._outside(fibers):
            return False
        simulation = self.simulation
        simulation.vain = reason
        simulation.beating = frozenset(fiber.process for fiber in fibers)
        mains = [fiber.rank.pid for fiber in fibers if fiber is fiber.rank.fiber]
        simulation.polling = frozenset(mains)
        self._restart()
        return True

    def _reason(self, fibers: list[Fiber], certain: bool) -> str:
        """The sign that the beats are in vain, as a text; empty if there is none.

        With `certain`, all waits that are left have ended like that before.
        """
        now = self.simulation.engine.now
        beats = self.universe.beats - self.begun
        lasted = now - self.date
        aside = all(fiber is not fiber.rank.fiber for fiber in fibers)
        said = f"{beats:,} sleeps and timeouts in a row ended"
        if beats < min(LEAST, self.most):
            return ""
        if certain and self.steady >= SAMPLES:
            long = lasted >= (self._long(fibers) if aside else LONGER)
            if self.changing >= SAMPLES or long:
                return f"{said} and changed nothing"
        if not aside:
            return ""
        # A thread that wakes the main thread of its rank does not beat in vain.
        beats = self.universe.beats - self._woken[0]
        lasted = now - self._woken[1]
        if beats >= self.most or (beats >= MANY and lasted >= self._long(fibers)):
            return f"{said} and woke no rank"
        return ""

    def _long(self, fibers: list[Fiber]) -> float:
        """The time (s) for which threads may beat: the less, the less could come of it.

        If all are daemons, and no main thread waits for a thread of its rank, they can only send
        messages, or end the program.
        """
        mains = [rank.fiber for rank in self.simulation.waiting()]
        if all(map(_is_daemon, fibers)) and all(main and main.gate is None for main in mains):
            return LONG_OF_DAEMONS
        return LONG

    def _outside(self, fibers: list[Fiber]) -> bool:
        """Whether something outside of the run may end a stretch of beats."""
        daemons = [fiber for fiber in fibers if _is_daemon(fiber)]
        if other_children() or waits_for_outside(self.universe, daemons):
            self._restart()
            return True
        for fiber in fibers:
            if fiber not in daemons and looks_outside(fiber):
                self._looking = fiber
                if self._paced is None:
                    self._paced = self.simulation.engine.now, monotonic()
                    self.universe.beats_until = self.universe.beats + 1
                return True
        return False

    def _restart(self) -> None:
        """Something has happened: another stretch of beats begins."""
        universe, engine = self.universe, self.simulation.engine
        self.begun = universe.beats
        self.date = engine.now
        self._mark = self._progress()
        # The latest wait of a main thread, and the beats and the date when it was seen first.
        self._latest = self._latest_wait()
        self._woken = self.begun, self.date
        universe.beats_until = universe.beats + (min(FIRST, self.most // 4) or FIRST)
        universe.noting_clocks = None
        self._reads = universe.clock_reads
        # The waits of an earlier look, with their places and the time (s) that they had left then;
        # and by place the longest such time of those that have ended.
        self.awaited: dict[tuple[Process, float], tuple[Place, float]] = {}
        self.fired: dict[Place, float] = {}
        self.states: set[tuple[Place, int]] = set()
        self._timed: dict[Place, int] = {}
        self.steady = self.changing = 0
        self._paced = None
        self._told = False

    def _latest_wait(self) -> float:
        """The date at which a main thread has begun to wait last."""
        mains = [rank.fiber for rank in self.simulation.waiting()]
        return max((main.process.since for main in mains if main is not None), default=0.0)

    def _progress(self) -> object:
        """A value that changes when anything but beats happens."""
        simulation = self.simulation
        return simulation.engine.order, simulation.running, len(simulation.outcomes)

    def _fibers(self) -> dict[Any, Fiber]:
        result: dict[Any, Fiber] = {}
        for rank in self.simulation.waiting():
            for fiber in (rank.fiber, *self.simulation.threads.get(rank.pid, ())):
                if fiber is not None:
                    result[fiber.process] = fiber
        return result

    def _pending(self) -> tuple[list[tuple[float, Process, Fiber]], float]:
        """The waits of threads that end at a date, none if other events are left.

        Computations of threads that a rank has beside its main one are among them; the second
        value is the time (s) that the longest of them still takes.
        """
        fibers = self._fibers()
        pending: dict[tuple[Process, float], Fiber] = {}
        now, computation = self.simulation.engine.now, 0.0
        for date, process, computes in self._events():
            fiber = fibers.get(process)
            if fiber is None or (computes and fiber is fiber.rank.fiber):
                return [], 0.0
            if computes:
                computation = max(computation, date - now)
            pending[process, date] = fiber
        return [(date, process, fiber) for (process, date), fiber in pending.items()], computation

    def _events(self) -> Iterator[tuple[float, Any, bool]]:
        """The events left: the date, the process or other event, and whether it computes."""
        engine = self.simulation.engine
        for ready in engine.processes_ready():
            yield engine.now, ready, False
        events: list[tuple[float, object]] = list(engine.queue.all())
        events += [(engine.now, bundle) for bundle in engine.system.fresh]
        for time, event in events:
            if isinstance(event, Alarm):
                # Without a waiter it is the timeout of a wait that ended before it.
                if not event.request.done and event.request.waiter is not None:
                    yield time, event.request.waiter, False
            elif isinstance(event, Bundle):
                for member in event.members():
                    if isinstance(member, Execution):
                        yield time, member.process, True
                    else:
                        yield time, member, True
            elif isinstance(event, Execution):
                if not event.removed and event.bundle is None:
                    yield time, event.process, True
            else:
                yield time, event, False

    @staticmethod
    def _place(fiber: Fiber) -> Place:
        stack = tuple(
            (id(one.code), one.instruction) for one in activations(fiber.waiting or fiber)
        )
        return fiber.rank.pid, fiber is fiber.rank.fiber, stack


def _state(fiber: Fiber, clocks: bool) -> int:
    """The state of a thread, and that of the random numbers of its rank."""
    environment = fiber.rank.program
    chance = (getattr(environment.random, "getstate", None), environment.numpy_random)
    drawn = None if chance[0] is None else hash(chance[0]())
    if chance[1] is not None:
        drawn = hash((drawn, repr(chance[1].get_state())))
    return hash((drawn, StateReader(clocks).thread(fiber.waiting or fiber)))


def note_clock(universe: Universe) -> None:
    """A rank reads a clock: note it unless Python's own code does, for a timeout."""
    line = line_outside(is_ours)
    if line is None or not standard(line[0]):
        universe.clock_reads += 1


def _is_daemon(fiber: Fiber) -> bool:
    threads: dict[int, threading.Thread] = threading._active  # type: ignore[attr-defined]
    thread = threads.get(getattr(fiber, "thread_number", -1))
    return fiber is not fiber.rank.fiber and thread is not None and thread.daemon


def looks_outside(fiber: Fiber) -> bool:
    """Whether the loops of a thread, or functions that they call, look at files and the like."""
    pending: list[tuple[frozenset[str], dict[str, Any]]] = []
    inner: list[tuple[frozenset[str], dict[str, Any]]] = []
    for one in activations(fiber.waiting or fiber):
        if is_library(one.code.co_filename):
            continue
        names = names_in_loop(one.code, one.instruction)
        if names is None:
            inner.append((frozenset(one.code.co_names), one.globals))
        else:
            pending += [*inner, (names, one.globals)]
            inner = []
    seen: set[object] = set()
    while pending and len(seen) < _FUNCTIONS:
        names, space = pending.pop()
        if not _LOOKS.isdisjoint(names):
            return True
        for name in names:
            value: Any = space.get(name)
            code = getattr(value, "__code__", None)
            if code is not None and code not in seen and not is_library(code.co_filename):
                seen.add(code)
                pending.append((frozenset(code.co_names), value.__globals__))
    return False
