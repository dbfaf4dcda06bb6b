"""The reactor: lets others go on while a thread of a rank waits outside MPI.

A wait is for descriptors to become ready, or for a condition that has to be asked for. Who could
end it decides how time passes:

- *inside*: only another thread of a rank can (the other end of the pipe is in this process). It
  ends at the virtual instant at which that happens, or at its virtual timeout;
- *outside*: another process can. Meanwhile virtual time runs no further than the real time that
  has passed since the wait began, and the wait takes as long as it really took;
- *unknown*: nobody can tell (a socket that listens). It is inside while anything else can happen
  in the simulation, and outside when nothing else can.
"""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Callable, Iterable
from time import monotonic, sleep
from typing import Any

from greenlet import getcurrent

from pysmpi.kernel.engine import Engine
from pysmpi.kernel.requests import Request
from pysmpi.mpi.base import ranks
from pysmpi.mpi.base.ranks import Fiber
from pysmpi.mpi.base.state import StateSlot
from pysmpi.runtime.collection import Collecting
from pysmpi.runtime.locks import give_way
from pysmpi.runtime.outside.peers import Side, has_children, is_pipe, leaves, side_of
from pysmpi.runtime.process.descriptors import duplicate

READ, WRITE, URGENT = select.POLLIN, select.POLLOUT, select.POLLPRI
_ALWAYS = select.POLLHUP | select.POLLERR | select.POLLNVAL
_INTERVAL = 1e-3  # (s) between two looks at a condition, while really waiting
_SYSTEM_CALL = 1e-6  # (s), the least that a look at the world outside takes
_BRIEF = 1e-3  # (s) of compute between two looks of a thread that does nothing else
_LONG = 5.0  # (s) after which a real wait is worth a word
_INFINITY = float("inf")

_real_poll = select.poll
_fstat, _close = os.fstat, os.close


class Wait:
    """One thread of a rank that waits. `fds` are pairs of a descriptor and what it should be."""

    __slots__ = (
        "fiber", "gate", "fds", "look", "side", "virtual", "real", "told", "known", "copies",
    )  # fmt: skip

    def __init__(
        self,
        fiber: Any,
        fds: list[tuple[int, int]],
        look: Callable[[], Any] | None,
        side: Side | None,
    ) -> None:
        self.fiber = fiber
        self.gate: Request | None = None
        self.fds = fds
        self.look = look
        self.known = side is not None
        self.side = Side.UNKNOWN if side is None else side
        self.virtual = 0.0  # when it began
        self.real = 0.0
        self.told = False
        # Descriptors 0 to 2 may be another rank's when the hub looks.
        self.copies: list[int] = []


class _Paced:
    """When a thread last found nothing, in virtual and in real time, and what it had done then."""

    __slots__ = ("virtual", "real", "communication", "compute")

    def __init__(self, process: Any, real: float) -> None:
        self.virtual = process.engine.now
        self.real = real
        self.communication = process.comm_seconds
        self.compute = process.compute_seconds

    def only_waited(self, process: Any) -> bool:
        """Whether the thread has done nothing since then but look again, or sleep."""
        computed = process.compute_seconds - self.compute
        return bool(process.comm_seconds == self.communication and computed < _BRIEF)


def _really_wait(fds: Iterable[int], seconds: float) -> None:
    """Let real time pass until a descriptor is readable."""
    poll = _real_poll()
    watched = list(fds)
    for fd in watched:
        poll.register(fd, READ)
    if watched:
        poll.poll(max(1, seconds * 1e3))
    else:
        sleep(min(seconds, _INTERVAL))


class Reactor:
    """The waits of one simulation. It hooks itself into the engine while there are any."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.waits: list[Wait] = []
        self.signals = False  # whether signals write to a descriptor (`signal.set_wakeup_fd`)
        self.generation = 0  # of what processes hold which descriptors
        self._sides: dict[tuple[int, int, int], tuple[int, Side]] = {}
        self._poll: Any = None  # of all waits; None when these have changed
        self._by_fd: dict[int, list[tuple[int, Wait]]] = {}
        self._idle_since = 0.0  # real time at which the hub last had nothing to do

    # What ranks call

    def wait(
        self,
        fds: Iterable[tuple[int, int]] = (),
        timeout: float | None = None,
        look: Callable[[], Any] | None = None,
        side: Side | None = None,
    ) -> bool:
        """Let others go on until a descriptor is ready or `look()` is true; whether that was so.

        At most `timeout` seconds, in virtual time. It may return True without reason: look again.
        """
        fiber: Any = getcurrent()
        if not isinstance(fiber, Fiber):
            raise RuntimeError("a simulated rank waits outside the simulation")
        rank = fiber.rank
        engine = self.engine
        process = rank.enter()
        process.settle()
        wait = Wait(fiber, list(fds), look, side)
        if not wait.known:
            wait.side = self.side([fd for fd, _ in wait.fds])
        gate = wait.gate = fiber.gate = Request()
        waits = [gate]
        date = 0.0
        if timeout is not None:
            date = engine.now + max(0.0, timeout)
            waits.append(engine.alarm(date))
        wait.virtual, wait.real = engine.now, monotonic()
        before = process.comm_seconds
        self._add(wait)
        try:
            if wait.side is Side.INSIDE:
                self._look_at_all()  # others may have had their turn since the caller looked
            process.wait_any(waits)
        finally:
            self._remove(wait)
            fiber.gate = None
            process.comm_seconds = before
            if timeout is not None and not waits[1].done:
                engine.call_off(date, waits[1])
        fiber.pace = None
        rank.leave()
        return gate.done

    def missed(self, fds: Iterable[int] = (), side: Side | None = None) -> None:
        """A thread has looked without waiting, and found nothing: let time pass.

        What happens outside takes real time, so virtual time must not run ahead of it between
        two looks; and a loop that does nothing but look takes as long as it really took.
        """
        fiber: Any = getcurrent()
        if side is None:
            side = self.side(fds)
        engine = self.engine
        if not isinstance(fiber, Fiber):
            return
        if side is Side.INSIDE or (side is Side.UNKNOWN and not engine.queue.empty()):
            give_way()
            return
        rank = fiber.rank
        process = rank.enter()
        process.settle()
        now = monotonic()
        pace = getattr(fiber, "pace", None)
        if pace is None:
            pace = _Paced(process, now)
        virtual, real = engine.now - pace.virtual, now - pace.real
        if virtual > real:
            _really_wait(fds, virtual - real)
        # What a rank does that only waits takes as long as it really takes.
        rest = real - virtual if pace.only_waited(process) else 0.0
        rest = max(_SYSTEM_CALL, rest)
        fiber.pace = pace = _Paced(process, monotonic())
        pace.virtual += rest
        process.sleep(rest)
        rank.leave()

    def now(self) -> float:
        """The clock of the rank that is running, its compute up to here included (s)."""
        rank = ranks.current()
        rank.enter().settle()
        rank.leave()
        return self.engine.now

    def changed(self) -> None:
        """Something was written or closed in this process: see whom it lets go on."""
        if self.waits:
            self._look_at_all()

    def before_change(self, rank: Any) -> None:
        """Bring the clock to the instant at which the rank that is running changes something."""
        if self.waits:
            process = rank.enter()
            process.settle()
            rank.leave()

    def side(self, fds: Iterable[int]) -> Side:
        """Where the other ends of some descriptors are held; one outside is enough."""
        return max(map(self._side, leaves(fds)), default=Side.INSIDE)

    def _side(self, fd: int) -> Side:
        try:
            status = _fstat(fd)
        except OSError:
            return Side.INSIDE
        key = (fd, status.st_dev, status.st_ino)
        known = self._sides.get(key)
        if known is not None and known[0] == self.generation:
            return known[1]
        if len(self._sides) > 1000:
            self._sides.clear()
        side = side_of(fd)
        self._sides[key] = self.generation, side
        return side

    # Keeping the waits

    def _add(self, wait: Wait) -> None:
        for i, (fd, events) in enumerate(wait.fds):
            if fd <= 2:
                try:
                    copy = duplicate(fd)
                except OSError:
                    continue
                wait.copies.append(copy)
                wait.fds[i] = copy, events
        self.waits.append(wait)
        self._waits_changed()

    def _remove(self, wait: Wait) -> None:
        if wait in self.waits:
            self.waits.remove(wait)
            self._waits_changed()
        for fd in wait.copies:
            _close(fd)
        wait.copies.clear()

    def _waits_changed(self) -> None:
        self._poll = None
        engine = self.engine
        engine.idle = self._idle if self.waits else None
        # Writers to sockets tell; those to pipes may be C code, and other processes do not.
        watched = self.signals or any(map(_must_be_watched, self.waits))
        engine.before = self._before if self.waits and watched else None

    def _ready(self, seconds: float) -> list[Wait]:
        """The waits whose descriptors are ready, after at most `seconds` of real time."""
        if self._poll is None:
            self._poll = _real_poll()
            self._by_fd = {}
            for wait in self.waits:
                for fd, events in wait.fds:
                    self._by_fd.setdefault(fd, []).append((events, wait))
            for fd, members in self._by_fd.items():
                wanted = 0
                for events, _ in members:
                    wanted |= events
                self._poll.register(fd, wanted)
        milliseconds = min(seconds, 3600.0) * 1e3
        if not self._by_fd:
            sleep(milliseconds * 1e-3)
            return []
        if 0.0 < milliseconds < 1.0:
            # The resolution of poll(2); shorter sleeps are exact enough.
            sleep(milliseconds * 1e-3)
            milliseconds = 0.0
        found = []
        for fd, events in self._poll.poll(milliseconds):
            for wanted, wait in self._by_fd[fd]:
                if events & (wanted | _ALWAYS) and wait not in found:
                    found.append(wait)
        return found

    def _look_at_all(self, seconds: float = 0.0, idle: bool = False) -> bool:
        """Let those go on whose wait is over, after at most `seconds`; whether there were any."""
        asked = [wait for wait in self.waits if wait.look is not None]
        if asked:
            seconds = min(seconds, _INTERVAL)
        ready = self._ready(seconds)
        for wait in asked:
            if wait not in ready and wait.look is not None and wait.look():
                ready.append(wait)
        for wait in ready:
            self._end(wait, idle)
        return bool(ready)

    def _end(self, wait: Wait, idle: bool) -> None:
        engine = self.engine
        self.waits.remove(wait)
        self._waits_changed()
        gate = wait.gate
        if gate is None or gate.done:
            return
        now = engine.now
        date = now
        if wait.side is Side.OUTSIDE:
            date = wait.virtual + (monotonic() - wait.real)
        elif idle:
            date = now + (monotonic() - self._idle_since)
        if date > now:
            engine.complete_at(date, gate)
        else:
            gate.complete(now)

    # What the engine calls

    def _before(self, date: float) -> bool:
        """The clock is to move to `date`: see whether somebody outside is earlier."""
        if self._look_at_all():
            return True
        since = monotonic()
        while True:
            limit = _INFINITY
            now = monotonic()
            for wait in self.waits:
                if wait.side is Side.OUTSIDE:
                    limit = min(limit, wait.virtual + (now - wait.real))
            if date <= limit:
                return False
            self._tell(now - since)
            if self._look_at_all(min(date - limit, 1.0)):
                return True

    def _idle(self) -> bool:
        """Nothing is to happen any more: wait really, if somebody outside can change that."""
        self._idle_since = since = monotonic()
        if self._look_at_all():
            return True
        self.generation += 1
        for wait in self.waits:
            if not wait.known:
                side = self.side([fd for fd, _ in wait.fds])
                if side is not wait.side:
                    wait.side, wait.virtual, wait.real = side, self.engine.now, since
        inside = all(wait.side is Side.INSIDE for wait in self.waits)
        if inside and not (self.signals and has_children()):
            # A process may have written and ended since the first look.
            return self._look_at_all()
        while not self._look_at_all(1.0, idle=True):
            self._tell(monotonic() - since)
        return True

    def _tell(self, seconds: float) -> None:
        """Say once of each wait that it takes long."""
        if seconds < _LONG:
            return
        from pysmpi.runtime.outside.notes import describe

        for wait in self.waits:
            if not wait.told and wait.side is not Side.INSIDE:
                wait.told = True
                print(describe(wait, seconds), file=sys.__stderr__, flush=True)


def _must_be_watched(wait: Wait) -> bool:
    """Whether nobody tells when a wait is over."""
    if wait.look is not None or wait.side is not Side.INSIDE:
        return True
    return any(map(is_pipe, leaves([fd for fd, _ in wait.fds])))


_REACTOR: StateSlot[ranks.Universe, Reactor] = StateSlot(ranks.Universe)


def reactor() -> Reactor | None:
    """The reactor of the simulation whose rank is running; None outside of ranks.

    None as well for finalizers that Python calls while it looks for cycles, which cannot wait.
    """
    rank: Any = ranks.current()
    if rank.program is None or type(rank) is Collecting:
        return None
    try:
        universe = rank.universe
    except AttributeError:
        return None
    found = _REACTOR.peek(universe)
    if found is None:
        found = Reactor(rank.engine)
        _REACTOR.put(universe, found)
    return found
