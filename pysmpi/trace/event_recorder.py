"""The recorder of events: hears of processes, messages and waits, and passes rows on in blocks."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np
from greenlet import getcurrent

from pysmpi.kernel.process import Process
from pysmpi.kernel.requests import Context, Envelope, KernelRequest, Receive, Send, Transfer
from pysmpi.mpi.base.ranks import Fiber
from pysmpi.trace import events
from pysmpi.trace.events import EventRows, MessageRows, TracedRoute

if TYPE_CHECKING:
    from pysmpi.mpi.calls import MpiCall

ROWS: Final = 1024  # of a block
_COLUMNS: Final = len(EventRows._fields)
_MESSAGE_COLUMNS: Final = len(MessageRows._fields)


class Stage(Protocol):
    """The questions of the recorder of events about the run."""

    def kind_of(self, process: Process) -> int:
        """MAIN, THREAD or BACKGROUND."""

    def call_of(self, process: Process) -> int:
        """The number of the call that a process has begun last."""

    def collective_of(self, process: Process) -> int:
        """The collective call whose messages a process posts now; 0 for none."""

    def entered(self) -> int:
        """The collective call that was entered last."""

    def communicator(self, context: Context) -> int:
        """The number of the communicator of a context."""

    def source(self, send: Send) -> int:
        """The rank of the run that has sent a message."""


class EventRecorder:
    """Listens to a run, and passes on blocks of rows: to `sink`."""

    def __init__(self, sink: Any, stage: Stage) -> None:
        self.sink = sink
        self.stage = stage
        self._rows = array("d")
        self._messages = array("q")
        self._processes: dict[Process, int] = {}
        self._purposes: dict[KernelRequest, int] = {}  # requests of processes in the background
        self._routes: dict[tuple[int, ...], int] = {}
        self._resources: list[Any] = []  # of routes: their identities have to stay theirs
        self._collectives: dict[Send, int] = {}  # of messages that have not left
        self._open: dict[Process, int] = {}
        self._arrived = (0, -1.0)  # the latest arrival: message, date

    def finish(self, ends: Sequence[tuple[Process, float, int]]) -> None:
        """The run is over: main process, date and exit status of each rank."""
        for process, date, status in ends:
            number = self._processes.get(process) or self._meet(process, 0.0)
            self._add(events.END, number, date, 0, 0, status)
        self.flush()

    def flush(self) -> None:
        """Pass the collected rows on."""
        if self._messages:
            table = np.frombuffer(self._messages, np.int64).reshape(-1, _MESSAGE_COLUMNS)
            self._messages = array("q")
            self.sink.add_messages(MessageRows(*np.ascontiguousarray(table.T)))
        if self._rows:
            rows = np.frombuffer(self._rows, np.float64).reshape(-1, _COLUMNS)
            self._rows = array("d")
            kind, process, date, a, b, x = np.ascontiguousarray(rows.T)
            self.sink.add_events(
                EventRows(
                    kind.astype(np.int64), process.astype(np.int64), date, a.astype(np.int64), b, x
                )
            )

    def _add(
        self, kind: int, process: int, date: float, a: float, b: float, x: float
    ) -> None:
        rows = self._rows
        rows.extend((kind, process, date, a, b, x))
        if len(rows) >= ROWS * _COLUMNS:
            self.flush()

    def _number(self, process: Process, now: float) -> int:
        """The number of a process, which is new if it has not been heard of."""
        return self._processes.get(process) or self._meet(process, now)

    def _meet(self, process: Process, now: float) -> int:
        kind = self.stage.kind_of(process)
        number = self._processes[process] = len(self._processes) + 1
        collective = 0
        if kind == events.BACKGROUND:
            collective = self.stage.collective_of(process)
        if process.purpose is not None:
            self._purposes[process.purpose] = number
        begun = 0.0 if kind == events.MAIN else now
        self._add(events.PROCESS, number, begun, process.pid, kind, collective)
        return number

    # Events of the boundary of calls.

    def call_begun(self, call: MpiCall) -> None:
        """A call has begun; its compute is billed."""
        self.begin(call.rank.process)

    def call_ended(self, call: MpiCall) -> None:
        """A call is over."""
        self.end(call.rank.process)

    def begin(self, process: Process) -> None:
        """A process begins a call; its compute is billed."""
        number = self._open[process] = self.stage.call_of(process)
        now = process.engine.now
        self._add(events.CALL, self._number(process, now), now + process.debt, number, 0, 0)

    def end(self, process: Process) -> None:
        """A process ends its call."""
        number = self._open.pop(process, None)
        if number is not None:
            date = process.engine.now + process.debt
            self._add(events.RETURN, self._processes[process], date, number, 0, 0)

    def collective_entered(self, contribution: Any, rank: Any) -> None:
        """A rank enters a collective operation."""
        communicator = contribution.communicator
        context = min(communicator.coll.number, communicator.remote.coll.number)
        self.enter(rank.process, self.stage.entered(), context)

    def sleep(self, process: Process) -> None:
        """A process sleeps from now on."""
        now = process.engine.now
        self._add(events.START_WAIT, self._number(process, now), now, 1, 0, 0)

    def wake(self, process: Process) -> None:
        """It sleeps no more."""
        now = process.engine.now
        self._add(events.RESUME, self._number(process, now), now, 0, -1, 0)

    def enter(self, process: Process, number: int, context: int) -> None:
        """A process enters collective call `number` of a context."""
        now = process.engine.now
        self._add(events.ENTER, self._number(process, now), now + process.debt, number, context, 0)

    # Events of the kernel.

    def request_started(self, request: KernelRequest, process: Process, now: float) -> None:
        """A process starts a message; its number is that of its posting, which follows."""
        number = self._processes.get(process) or self._meet(process, now)
        order = process.engine.order + 1
        if isinstance(request, Send):
            collective = self.stage.collective_of(process)
            if collective:
                self._collectives[request] = collective
            self._add(events.START_SEND, number, now, order, request.nbytes, request.start_cost)
        elif isinstance(request, Receive):
            self._add(events.START_RECEIVE, number, now, order, request.nbytes, 0)

    def message_matched(self, send: Send, receive: Receive, now: float) -> None:
        """A message and a receive match."""
        self._add(events.MATCH, 0, now, send.order, receive.order, 0)

    def flow_started(self, send: Send, now: float) -> None:
        """The bytes of a message leave."""
        stage = self.stage
        communicator = stage.communicator(send.context)
        plan = send.plan
        assert plan is not None
        constraints = plan.constraints
        key = tuple(map(id, constraints))
        route = self._routes.get(key)
        if route is None:
            route = self._routes[key] = len(self._routes)
            self._resources.append(constraints)
            links = tuple((one.name, float(one.capacity)) for one in constraints)
            self.sink.add_route(TracedRoute(route, links))
        if plan.gap is not None:
            alone = plan.gap.last
        else:
            rate = plan.bound
            for one, weight in zip(constraints, plan.weights):
                rate = min(rate, one.capacity / weight)
            alone = plan.volume / plan.factor / rate
        destination = send.context.members[send.destination].pid
        mode = (events.EAGER if send.eager else 0) | (events.DETACHED if send.detached else 0)
        if isinstance(send, Transfer):
            mode |= events.ONE_SIDED
        self._messages.extend(
            (send.order, stage.source(send), destination, send.tag, send.nbytes, route, mode,
             communicator, self._collectives.pop(send, 0))
        )  # fmt: skip
        self._add(events.DEPART, 0, now, send.order, plan.latency, alone)

    def flow_ended(self, send: Send, now: float) -> None:
        """The last byte of a message has arrived."""
        self._arrived = send.order, now
        self._add(events.ARRIVE, 0, now, send.order, 0, 0)

    def request_completed(self, request: KernelRequest, now: float) -> None:
        """A message or a receive is complete."""
        if isinstance(request, Envelope):
            self._add(events.COMPLETE, 0, now, request.order, 0, 0)

    def wait_begun(
        self, process: Process, requests: list[KernelRequest], all: bool, now: float
    ) -> None:
        """A process waits."""
        number = self._processes.get(process) or self._meet(process, now)
        awaited = []
        for request in requests:
            if isinstance(request, Envelope):
                awaited.append(request.order)
            else:
                purpose = self._purposes.get(request)
                if purpose is not None:
                    awaited.append(-1 - purpose)
        rows = self._rows
        rows.extend((events.START_WAIT, number, now, 1 if all else 0, len(awaited), 0))
        for one in awaited:
            rows.extend((events.AWAITED, number, now, one, 0, 0))
        if len(rows) >= ROWS * _COLUMNS:
            self.flush()

    def wait_ended(self, process: Process, request: KernelRequest, now: float) -> None:
        """A process may continue."""
        number = self._processes.get(process) or self._meet(process, now)
        cause, by, message = 0, -1, 0
        if isinstance(request, Envelope):
            cause = message = request.order
            if isinstance(request, Receive):
                message = 0 if request.message is None else request.message.order
        else:
            purpose = self._purposes.get(request)
            if purpose is not None:
                cause = -1 - purpose
            else:
                fiber = getcurrent()
                if isinstance(fiber, Fiber):
                    by = self._processes.get(fiber.process, -1)
                if by < 0 or by == number:
                    by = -1
                    order, date = self._arrived
                    if date == now:
                        cause = order
        self._add(events.RESUME, number, now, cause, by, message)


