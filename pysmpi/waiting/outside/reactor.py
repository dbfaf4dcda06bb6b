"""The reactor: other ranks continue while a thread of a rank waits outside MPI.

A wait ends when descriptors become ready, or when a condition holds that has to be polled. The
holder of the other end decides how time passes:

- *inside*: only another thread of a rank can end the wait (the other end of the pipe is in this
  process). The wait ends at the virtual instant of that event, or at its virtual timeout;
- *outside*: another process can end it. Meanwhile virtual time does not run ahead of the real time
  since the begin of the wait, and the wait takes its real time;
- *unknown*: the holder is unknown (a listening socket). The wait is inside while anything else can
  happen in the simulation, and outside otherwise.
"""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Callable, Iterable
from time import monotonic, sleep
from typing import Any

from greenlet import getcurrent

from pysmpi.isolation.collection import CollectingRank
from pysmpi.isolation.kinds.descriptors import duplicate
from pysmpi.isolation.threads.locks import give_way
from pysmpi.kernel.engine import Engine
from pysmpi.kernel.requests import KernelRequest
from pysmpi.mpi.base import ranks
from pysmpi.mpi.base.ranks import Fiber, fiber_of
from pysmpi.mpi.base.state import StateSlot
from pysmpi.time import alarms
from pysmpi.waiting.outside.notes import describe
from pysmpi.waiting.outside.peers import PeerSide, has_children, is_pipe, leaves, side_of

READ, WRITE, URGENT = select.POLLIN, select.POLLOUT, select.POLLPRI
_ALWAYS = select.POLLHUP | select.POLLERR | select.POLLNVAL
_INTERVAL = 1e-3  # (s) between two looks at a condition, while really waiting
_SYSTEM_CALL = 1e-6  # (s), the least time of a look at the world outside
_BRIEF = 1e-3  # (s) of compute between two polls of a thread that does nothing else
_SLICE = 0.1  # (s) of a real wait of the hub, after which it looks whether a signal ends the run
_LONG = 5.0  # (s) after which a real wait is reported
_INFINITY = float("inf")

_real_poll = select.poll
_fstat, _close = os.fstat, os.close


class OutsideWait:
    """One waiting thread of a rank. `fds` are pairs of a descriptor and the awaited event."""

    __slots__ = (
        "fiber", "gate", "fds", "look", "side", "virtual", "real", "told", "known", "copies",
    )  # fmt: skip

    def __init__(
        self,
        fiber: object,
        fds: list[tuple[int, int]],
        look: Callable[[], object] | None,
        side: PeerSide | None,
    ) -> None:
        self.fiber = fiber
        self.gate: KernelRequest | None = None
        self.fds = fds
        self.look = look
        self.known = side is not None
        self.side = PeerSide.UNKNOWN if side is None else side
        self.virtual = 0.0  # date of its begin
        self.real = 0.0
        self.told = False
        # Descriptors 0 to 2 may be another rank's when the hub looks.
        self.copies: list[int] = []


class _Paced:
    """The time of a thread's last poll without result, virtual and real, and its state then."""

    __slots__ = ("virtual", "real", "communication", "compute")

    def __init__(self, process: Any, real: float) -> None:
        self.virtual = process.engine.now
        self.real = real
        self.communication = process.comm_seconds
        self.compute = process.compute_seconds

    def only_waited(self, process: Any) -> bool:
        """Whether the thread has only polled or slept since then."""
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
    """The waits of one simulation. It is hooked into the engine while there are any."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.waits: list[OutsideWait] = []
        self.signals = False  # whether signals write to a descriptor (`signal.set_wakeup_fd`)
        self.generation = 0  # of the holders of descriptors
        self._sides: dict[tuple[int, int, int], tuple[int, PeerSide]] = {}
        self._poll: Any = None  # of all waits; None when these have changed
        self._by_fd: dict[int, list[tuple[int, OutsideWait]]] = {}
        self._idle_since = 0.0  # real time at which the hub was last idle

    # Called by ranks

    def wait(
        self,
        fds: Iterable[tuple[int, int]] = (),
        timeout: float | None = None,
        look: Callable[[], object] | None = None,
        side: PeerSide | None = None,
    ) -> bool:
        """Run other ranks until a descriptor is ready or `look()` is true; return whether it
        happened.

        At most `timeout` seconds, in virtual time. It may return True without reason: look again.
        """
        fiber: object = fiber_of(getcurrent())
        if not isinstance(fiber, Fiber):
            raise RuntimeError("a simulated rank waits outside the simulation")
        rank = fiber.rank
        engine = self.engine
        alarm = alarms.next_alarm()
        if alarm is not None:
            left = max(0.0, alarm - rank.now())
            if timeout is None or left < timeout:
                timeout = left
            else:
                alarm = None  # the wait is over before
        process = rank.enter()
        process.finish_compute()
        wait = OutsideWait(fiber, list(fds), look, side)
        if not wait.known:
            wait.side = self.side([fd for fd, _ in wait.fds])
        gate = wait.gate = fiber.gate = KernelRequest()
        waits = [gate]
        time = 0.0
        if timeout is not None:
            rank.beat()
            time = engine.now + max(0.0, timeout)
            waits.append(engine.alarm(time))
        wait.virtual, wait.real = engine.now, monotonic()
        before = process.comm_seconds
        self._add(wait)
        try:
            if wait.side is PeerSide.INSIDE:
                self._look_at_all()  # others may have had their turn since the caller looked
            process.wait_any(waits)
        finally:
            self._remove(wait)
            fiber.gate = None
            process.comm_seconds = before
            if timeout is not None and not waits[1].done:
                engine.call_off(time, waits[1])
        fiber.pace = None
        rank.leave()
        if alarm is not None and not gate.done:
            alarms.deliver()
            return True
        return gate.done

    def missed(self, fds: Iterable[int] = (), side: PeerSide | None = None) -> None:
        """A thread has polled without a result: let time pass.

        Events outside take real time, so virtual time must not run ahead of it between two polls. A
        loop that only polls takes its real time.
        """
        fiber: object = fiber_of(getcurrent())
        if side is None:
            side = self.side(fds)
        engine = self.engine
        if not isinstance(fiber, Fiber):
            return
        if side is PeerSide.INSIDE or (side is PeerSide.UNKNOWN and not engine.queue.empty()):
            give_way()
            return
        rank = fiber.rank
        process = rank.enter()
        process.finish_compute()
        now = monotonic()
        pace = getattr(fiber, "pace", None)
        if pace is None:
            pace = _Paced(process, now)
        virtual, real = engine.now - pace.virtual, now - pace.real
        if virtual > real:
            _really_wait(fds, virtual - real)
        # Actions of a rank that only waits take their real time.
        rest = real - virtual if pace.only_waited(process) else 0.0
        rest = max(_SYSTEM_CALL, rest)
        fiber.pace = pace = _Paced(process, monotonic())
        pace.virtual += rest
        process.sleep(rest)
        rank.leave()

    def now(self) -> float:
        """The clock of the rank that is running, its compute up to here included (s)."""
        rank = ranks.current()
        rank.enter().finish_compute()
        rank.leave()
        return self.engine.now

    def changed(self) -> None:
        """Data was written or a descriptor closed here: resume the waits that this ends."""
        if self.waits:
            self._look_at_all()

    def before_change(self, rank: Any) -> None:
        """Bring the clock to the instant at which the rank that is running changes something.

        Not during the import of a shared module: no other rank should see a part of it.
        """
        if self.waits and not rank.program.importing:
            process = rank.enter()
            process.finish_compute()
            rank.leave()

    def side(self, fds: Iterable[int]) -> PeerSide:
        """The holder of the other ends of some descriptors; one outside is enough."""
        return max(map(self._side, leaves(fds)), default=PeerSide.INSIDE)

    def _side(self, fd: int) -> PeerSide:
        try:
            status = _fstat(fd)
        except OSError:
            return PeerSide.INSIDE
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

    def _add(self, wait: OutsideWait) -> None:
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

    def _remove(self, wait: OutsideWait) -> None:
        if wait in self.waits:
            self.waits.remove(wait)
            self._waits_changed()
        for fd in wait.copies:
            _close(fd)
        wait.copies.clear()

    def _waits_changed(self) -> None:
        self._poll = None
        self._by_fd.clear()  # a rank that has ended goes with its waits
        engine = self.engine
        engine.idle = self._idle if self.waits else None
        # Writers to sockets report it; writers to pipes may be C code or other processes.
        watched = self.signals or any(map(_must_be_watched, self.waits))
        engine.before = self._before if self.waits and watched else None

    def _ready(self, seconds: float) -> list[OutsideWait]:
        """The waits with ready descriptors, after at most `seconds` of real time."""
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
        result = []
        for fd, events in self._poll.poll(milliseconds):
            for wanted, wait in self._by_fd[fd]:
                if events & (wanted | _ALWAYS) and wait not in result:
                    result.append(wait)
        return result

    def _look_at_all(self, seconds: float = 0.0, idle: bool = False) -> bool:
        """Resume finished waits, after at most `seconds`; return whether there were any."""
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

    def _end(self, wait: OutsideWait, idle: bool) -> None:
        engine = self.engine
        self.waits.remove(wait)
        self._waits_changed()
        gate = wait.gate
        if gate is None or gate.done:
            return
        now = engine.now
        time = now
        if wait.side is PeerSide.OUTSIDE:
            time = wait.virtual + (monotonic() - wait.real)
        elif idle:
            time = now + (monotonic() - self._idle_since)
        if time > now:
            engine.complete_at(time, gate)
        else:
            gate.complete(now)

    # Called by the engine

    def _before(self, date: float) -> bool:
        """The clock will move to `date`: check whether an event outside is earlier."""
        if self._look_at_all():
            return True
        since = monotonic()
        while True:
            limit = _INFINITY
            now = monotonic()
            for wait in self.waits:
                if wait.side is PeerSide.OUTSIDE:
                    limit = min(limit, wait.virtual + (now - wait.real))
            if date <= limit:
                return False
            if self.engine.stopped:
                return True
            self._tell(now - since)
            if self._look_at_all(min(date - limit, _SLICE)):
                return True

    def _idle(self) -> bool:
        """No event is left: wait in real time, if a process outside can change that."""
        self._idle_since = since = monotonic()
        if self._look_at_all():
            return True
        self.generation += 1
        for wait in self.waits:
            if not wait.known:
                side = self.side([fd for fd, _ in wait.fds])
                if side is not wait.side:
                    wait.side, wait.virtual, wait.real = side, self.engine.now, since
        inside = all(wait.side is PeerSide.INSIDE for wait in self.waits)
        if inside and not (self.signals and has_children()):
            # A process may have written and ended since the first look.
            return self._look_at_all()
        while not self.engine.stopped and not self._look_at_all(_SLICE, idle=True):
            self._tell(monotonic() - since)
        return True

    def _tell(self, seconds: float) -> None:
        """Report each long wait once."""
        if seconds < _LONG:
            return

        for wait in self.waits:
            if not wait.told and wait.side is not PeerSide.INSIDE:
                wait.told = True
                print(describe(wait, seconds), file=sys.__stderr__, flush=True)


def _must_be_watched(wait: OutsideWait) -> bool:
    """Whether the end of a wait must be polled."""
    if wait.look is not None or wait.side is not PeerSide.INSIDE:
        return True
    return any(map(is_pipe, leaves([fd for fd, _ in wait.fds])))


_REACTOR: StateSlot[ranks.Universe, Reactor] = StateSlot(ranks.Universe)


def reactor() -> Reactor | None:
    """The reactor of the simulation of the running rank; None outside of ranks.

    Also None for finalizers during the collection of cycles, which cannot wait.
    """
    rank: Any = ranks.current()
    if rank.program is None or type(rank) is CollectingRank:
        return None
    try:
        universe = rank.universe
    except AttributeError:
        return None
    result = _REACTOR.peek(universe)
    if result is None:
        result = Reactor(rank.engine)
        _REACTOR.put(universe, result)
    return result


def waits_for_outside(universe: ranks.Universe, aside: Iterable[object] = ()) -> bool:
    """Whether another process could end the wait of a thread that is not among those `aside`."""
    current = _REACTOR.peek(universe)
    if current is None:
        return False
    return any(
        wait.side is PeerSide.OUTSIDE
        or (wait.side is PeerSide.UNKNOWN and wait.fiber not in set(aside))
        for wait in current.waits
    )
