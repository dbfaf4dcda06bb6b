"""The calls of a replayed recording, recorded again with the numbers and dates of the replay."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pysmpi.kernel.process import Process
from pysmpi.kernel.requests import KernelRequest, Receive
from pysmpi.trace.events import (
    COLLECTIVE,
    COMPUTE,
    JOIN,
    LATE,
    PASS,
    POST,
    RECEIVE,
    SEND,
    TRANSFER,
    WAIT,
    Operation,
)
from pysmpi.trace.recorded_lines import made_call

if TYPE_CHECKING:
    from pysmpi.replay.recorder import ReplayRecorder


class ReplayedCalls:
    """Passes the calls of one thread on to the recorder of the replay.

    `speeds` are those of the cores of the recording by rank, `sites` its lines by number.
    """

    def __init__(
        self,
        recorder: ReplayRecorder,
        process: Process,
        rank: int,
        thread: int,
        speeds: list[float],
        sites: dict[int, str],
    ) -> None:
        self.recorder = recorder
        self.process = process
        self.rank = rank
        self.thread = thread
        self.speeds = speeds
        self.sites = sites
        self._record: list[Any] | None = None  # of the current call, in the recording
        self._number = 0  # of the call in the replay, once it has begun
        self._began = 0.0
        self._requests: dict[int, KernelRequest] = {}  # by their numbers in the recording
        # Of these, those that others post: by number, all, and operations until they are posted.
        # And those that this thread posts for others.
        self._late: dict[int, KernelRequest] = {}
        self._foreign: set[KernelRequest] = set()
        self._pending: list[Any] = []
        self._favours: dict[int, KernelRequest] = {}

    def read(self, record: list[Any]) -> bool:
        """The thread has read the record of a call; False if it is time between two calls."""
        self._record = record
        self._began = self.process.engine.now
        if record[4]:
            return True
        if all(operation[0] == PASS for operation in record[13]):
            self.recorder.sleeps(self.process)
        return False

    def begin(self) -> None:
        """The call begins, after the compute before it; nothing if it has begun."""
        if not self._number and self._record is not None and self._record[4]:
            self._number = self.recorder.call_begun(self.process)

    def end(self) -> None:
        """The call has been executed: record it."""
        record = self._record
        if record is None:
            return
        recorder, process = self.recorder, self.process
        if not record[4]:
            self._record = None
            recorder.between(process, self.thread, self._began, self._translated(record[13]))
            return
        self.begin()
        self._record = None
        operations = self._translated(record[13])
        recorder.call_ended(process, made_call(record, self.sites), self._number, operations)
        self._number = 0

    def wait_for_post(self, number: int, request: KernelRequest) -> None:
        """Another thread will post a request of this one."""
        self._late[number] = request
        self._foreign.add(request)

    def post(self, number: int, request: KernelRequest) -> None:
        """This thread posts a request of another one."""
        self._favours[number] = request

    def _translated(self, recorded: list[Any]) -> list[Operation]:
        """The operations of a call, with the numbers of the replay."""
        recorder = self.recorder
        own = self.process.core.speed
        speed = self.speeds[self.rank] or own
        posted = recorder.started.get(self.process, ())
        started = iter([request for request in posted if request not in self._foreign])
        found: list[Operation] = []
        operations, self._pending = self._pending + recorded, []
        pending: set[int] = set()  # late requests that are still to be posted
        for one in operations:
            kind = one[0]
            if kind == LATE:
                request = self._late.get(one[1])
                if request is not None and request.order == 0:
                    pending.add(one[1])
                elif request is not None:
                    found.append((LATE, request.order))
            if pending and (
                kind in (LATE, SEND, RECEIVE) and one[1] in pending
                or kind == JOIN and not pending.isdisjoint(one[1:3])
            ):  # fmt: skip
                self._pending.append(one)
                continue
            if kind == COMPUTE:
                found.append((kind, one[1] * speed / own))
            elif kind in (SEND, RECEIVE, TRANSFER):
                request = self._late.pop(one[1], None) or next(started, None)
                if request is None:
                    continue
                self._requests[one[1]] = request
                if isinstance(request, Receive):
                    found.append((kind, request.order, one[2], request.source, one[4], request.tag,
                                  one[6]))  # fmt: skip
                else:
                    found.append((kind, request.order, *one[2:]))
            elif kind == COLLECTIVE:
                found.append((kind, recorder.collective_number((one[1],)), *one[2:]))
            elif kind == POST:
                request = self._favours.pop(one[1], None)
                if request is not None:
                    found.append((kind, request.order))
            elif kind == JOIN:
                request, first = (self._requests.get(number) for number in one[1:3])
                if request is not None and first is not None:
                    found.append((kind, request.order, first.order, one[3]))
            elif kind == WAIT:
                found.append((kind, [self._renumbered(number) for number in one[1]], one[2]))
            elif kind != LATE:
                found.append(tuple(one))
        recorder.started[self.process] = []
        return found

    def _renumbered(self, number: int) -> int:
        if number < 0:
            return -self.recorder.collective_number((-number,))
        request = self._requests.pop(number, None)
        return 0 if request is None else request.order
