"""Processes in the background: the schedules of non-blocking calls."""

from typing import Final, Optional

from pysmpi.kernel.process import Process
from pysmpi.kernel.requests import KernelRequest

NEVER: Final = 1 << 60  # index of a step that no schedule has


class Lead(KernelRequest):
    """Completes when the first steps of a follower are paid for: see `Follower.led_by`."""


class Follower(Process):
    """Executes the schedule of a non-blocking call in the background, then completes `purpose`.

    The calling process pays the costs of the messages that the schedule receives last. It pays when
    it waits, as it does for receives of its own.
    """

    def __init__(self, main: Process, purpose: KernelRequest) -> None:
        super().__init__(main.engine, main.pid, main.slot, main.core)
        self.purpose = purpose
        self.last: int = NEVER  # index of the step from which on the caller pays for receives
        self.costs: list[tuple[float, float]] = []  # (time of arrival, seconds) of these

    def led_by(self, main: Process) -> Optional[Lead]:
        """Let `main` execute the first steps of the schedule, up to the first that waits.

        The follower then continues in the background. The messages of these steps belong to the
        running call of `main`, which also pays for them. Return a request that completes when it
        has paid; None if they cost nothing.
        """
        schedule = self.schedule
        slots = self.slots
        assert schedule is not None
        self.last = schedule.last_wait()
        count = schedule.count_starts()
        if count == 0:
            self.launch()
            return None
        self.schedule = schedule.first(count)
        resume = self.resume
        led = Lead()

        def go_on() -> None:
            self.schedule = schedule
            self.slots = slots
            self.resume = resume
            main.overhead_seconds += self.overhead_seconds
            self.launch()
            led.complete(main.engine.now)

        self.resume = go_on
        if self._advance():
            go_on()
            return None
        return led

    def run(self) -> None:
        """Continue; at the end of the schedule complete `purpose`, if nothing else follows."""
        if self.resume is not None:
            super().run()
        elif self._advance():
            self.engine.current = self
            self._end()

    def _end(self) -> None:
        purpose = self.purpose
        assert purpose is not None
        now = self.engine.now
        if len(self.costs) > 0:
            # The waiting process pays for each message while it waits for the next one.
            waiter = purpose.waiter
            busy = now
            if isinstance(waiter, Process) and waiter.all:
                busy = waiter.since
            for time, seconds in self.costs:
                busy = (busy if busy > time else time) + seconds
            if busy > now:
                purpose.finish_cost += busy - now
        purpose.complete(now)

    def _pay(self, request: KernelRequest) -> None:
        if self.step < self.last:
            super()._pay(request)
        elif request.finish_cost > 0.0:
            self.costs.append((self.engine.now, request.finish_cost))
            request.finish_cost = 0.0
