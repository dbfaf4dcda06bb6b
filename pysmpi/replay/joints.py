"""Requests that complete together, as those of a partitioned operation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pysmpi.kernel.process import Process
from pysmpi.kernel.requests import KernelRequest

if TYPE_CHECKING:
    from pysmpi.replay.recorder import ReplayRecorder


class JointRequests:
    """Requests that are started one by one; `whole` is complete after all of them.

    A process in the background, on the core of `main`, waits for them and pays their finish costs,
    each when the request completes.
    """

    def __init__(self, main: Process, recorder: ReplayRecorder | None) -> None:
        self.whole = whole = KernelRequest()
        engine = main.engine
        follower = self._follower = Process(engine, main.pid, main.slot, main.core)
        follower.purpose = whole
        follower.resume = lambda: whole.complete(engine.now)
        follower.waits = []
        follower.all = follower.waiting = True
        follower.outstanding = 1  # until all are started
        if recorder is not None:
            recorder.follow(follower, 0)

    def add(self, request: KernelRequest) -> None:
        """One more request has been started."""
        follower = self._follower
        follower.waits.append(request)
        if request.done:
            follower.busy = max(follower.busy, follower.engine.now)
            follower._pay(request)
        else:
            request.waiter = follower
            follower.outstanding += 1

    def close(self) -> None:
        """All requests are started."""
        follower = self._follower
        engine = follower.engine
        engine.listeners.notify("wait_begun", follower, follower.waits, True, engine.now)
        follower.outstanding -= 1
        if follower.outstanding == 0:
            if follower.busy > engine.now:
                engine.queue.push(follower.busy, follower)
            else:
                engine.ready.append(follower)
