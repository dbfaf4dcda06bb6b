"""Notification of the listeners of a run about the calls of its ranks.

Compiled, because in a run with a listener of calls each request passes through it.
"""

from __future__ import annotations

from typing import Any

from pysmpi.kernel.process import Process
from pysmpi.kernel.requests import KernelRequest


class CallTeller:
    """Watches ranks, and reports their calls to the listeners of a run.

    It also notes the requests that a call starts.
    """

    def __init__(self) -> None:
        self.calls: dict[Process, list[Any]] = {}  # those that have begun, innermost last

    def request_started(self, request: KernelRequest, process: Process, now: float) -> None:
        """A process has started a request."""
        calls = self.calls.get(process)
        if calls is not None:
            calls[-1].started.append(request)

    def begun(self, rank: Any) -> None:
        """A call has begun, or a wait that is no call of MPI."""
        call = rank.call
        if call is None:
            return
        process: Process = rank.process
        calls = self.calls.get(process)
        if calls is None:
            self.calls[process] = [call]
        else:
            calls.append(call)
        methods = process.engine.listeners.call_begun
        if methods is not None:
            for method in methods:
                method(call)

    def ended(self, rank: Any) -> None:
        """A call ends."""
        call = rank.call
        if call is None:
            return
        process: Process = rank.process
        calls = self.calls.get(process)
        if calls is not None:
            calls.pop()
            if len(calls) == 0:
                del self.calls[process]
        methods = process.engine.listeners.call_ended
        if methods is not None:
            for method in methods:
                method(call)
