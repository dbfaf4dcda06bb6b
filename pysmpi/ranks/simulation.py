"""One simulation: worlds of ranks on the slots of a machine, run to their end.

Every rank is a greenlet that the engine resumes when its process is ready. The main greenlet is the
hub in which the engine runs; a rank that waits switches to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from greenlet import getcurrent

from pysmpi.isolation import collection
from pysmpi.isolation.loading.shared_state import SharedState
from pysmpi.kernel.engine import Engine
from pysmpi.kernel.listeners import EVENTS as KERNEL_EVENTS
from pysmpi.kernel.plan import Transport
from pysmpi.kernel.process import Process
from pysmpi.mpi.base.ranks import Fiber, fiber_of
from pysmpi.mpi.groups import agreement
from pysmpi.mpi.point_to_point.polling import WATCH, Watch
from pysmpi.platform.placement import Slot
from pysmpi.ranks import stopping
from pysmpi.ranks.births import RankBirths
from pysmpi.ranks.observed_calls import ObservedCalls
from pysmpi.ranks.switching import thrower


class Simulation(RankBirths):
    """The ranks of a job, run to their end."""

    def __init__(self, transport: Transport, slots: Sequence[Slot]) -> None:
        super().__init__(transport, slots)
        agreement.begin()
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
        self.shared_state: SharedState | None = None
        self.under_way = False  # whether a signal can end it at a safe point

    def listen(self, listener: object, calls: bool = True) -> None:
        """Notify a listener of the events for which it has methods, after the earlier listeners.

        An event of ranks whose method is None is as one without a method. With `calls` false, it
        does not hear of the calls of programs (`call_made` and so on).
        """
        for event, methods in self.methods.items():
            method = getattr(listener, event, None)
            if method is not None:
                methods.append(method)
        if any(hasattr(listener, event) for event in KERNEL_EVENTS):
            self.universe.listen(listener)
        if calls:
            self.calls.add(listener)

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
        greenlet: Any = running
        while greenlet is not None:
            if greenlet is self.hub or isinstance(greenlet, Fiber):
                return True
            greenlet = greenlet.parent
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

    def _hopeless(self, pids: frozenset[int]) -> None:
        """All running ranks only test, without success."""
        self.polling = pids
        self.engine.stop()

    def break_deadlock(self, deadlock: object) -> bool:
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
                    _forget_events(self.engine, process)
                process.resume = thrower(fiber, deadlock, process.resume)
                process.launch()
        return True


def _forget_events(engine: Engine, process: Process) -> None:
    """Remove the future events of a process."""
    for time, event in engine.queue.all():
        if event is process:
            engine.queue.remove(time, process)
