"""The recorder of events: hears of processes, messages and waits, and passes rows on in blocks.

Compiled, because each message has about ten events.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, Final, Protocol

import numpy as np
from greenlet import getcurrent

from pysmpi.kernel.plan import Plan
from pysmpi.kernel.process import Process
from pysmpi.kernel.requests import Context, Envelope, KernelRequest, Receive, Send, Transfer
from pysmpi.mpi.base.ranks import Fiber
from pysmpi.network.flows import Path
from pysmpi.trace import events
from pysmpi.trace.events import EventRows, MessageRows, TracedRoute

ROWS: Final = 1024  # of a block, unless a wait has more requests
PLANS: Final = 100_000  # whose routes are known
_MESSAGE_COLUMNS: Final = len(MessageRows._fields)


# np.array takes twice the time, because it looks at the type of each number.
def _whole(numbers: list[int]) -> Any:
    return np.frombuffer(struct.pack(f"{len(numbers)}q", *numbers), np.int64)


def _real(numbers: list[float]) -> Any:
    return np.frombuffer(struct.pack(f"{len(numbers)}d", *numbers))


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

    def is_internal(self, context: Context) -> bool:
        """Whether the tags of messages in a context, which is known, are not the program's."""

    def source(self, send: Send) -> int:
        """The rank of the run that has sent a message."""


class EventRecorder:
    """Listens to a run, and passes on blocks of rows: to `sink`."""

    def __init__(self, sink: object, stage: Stage) -> None:
        self.sink: Any = sink
        self.stage: Any = stage
        self._rows: int = 0
        self._kinds: list[int] = []
        self._numbers: list[int] = []  # of processes
        self._dates: list[float] = []
        self._a: list[int] = []
        self._b: list[float] = []
        self._x: list[float] = []
        self._messages: list[int] = []  # all columns of a message follow each other
        self._processes: dict[Process, int] = {}
        self._purposes: dict[KernelRequest, int] = {}  # requests of processes in the background
        self._routes: dict[tuple[int, ...], int] = {}
        self._resources: list[object] = []  # of routes: their identities have to stay theirs
        self._plans: dict[Plan, tuple[int, float]] = {}  # route, seconds without contention
        self._collectives: dict[Send, int] = {}  # of messages that have not left
        self._open: dict[Process, int] = {}
        self._arrived: int = 0  # the latest message that has arrived
        self._arrival: float = -1.0  # when (s)

    def finish(self, ends: Sequence[tuple[Process, float, int]]) -> None:
        """The run is over: main process, date and exit status of each rank."""
        for process, date, status in ends:
            self._add(events.END, self._number(process, 0.0), date, 0, 0.0, float(status))
        self.flush()

    def flush(self) -> None:
        """Pass the collected rows on."""
        if self._messages:
            table = _whole(self._messages).reshape(-1, _MESSAGE_COLUMNS)
            self._messages = []
            self.sink.add_messages(MessageRows(*np.ascontiguousarray(table.T)))
        if self._rows > 0:
            rows = EventRows(
                _whole(self._kinds),
                _whole(self._numbers),
                _real(self._dates),
                _whole(self._a),
                _real(self._b),
                _real(self._x),
            )
            self._rows = 0
            self._kinds, self._numbers, self._dates = [], [], []
            self._a, self._b, self._x = [], [], []
            self.sink.add_events(rows)

    def _add(self, kind: int, process: int, date: float, a: int, b: float, x: float) -> None:
        if self._rows >= ROWS:
            self.flush()
        self._rows += 1
        self._kinds.append(kind)
        self._numbers.append(process)
        self._dates.append(date)
        self._a.append(a)
        self._b.append(b)
        self._x.append(x)

    def _number(self, process: Process, now: float) -> int:
        """The number of a process; a new process gets the next number."""
        known = self._processes.get(process)
        if known is not None:
            return known
        kind: int = self.stage.kind_of(process)
        number = len(self._processes) + 1
        self._processes[process] = number
        collective: int = 0
        if kind == events.BACKGROUND:
            collective = self.stage.collective_of(process)
        if process.purpose is not None:
            self._purposes[process.purpose] = number
        begun = 0.0 if kind == events.MAIN else now
        self._add(events.PROCESS, number, begun, process.pid, float(kind), float(collective))
        return number

    # Events of the boundary of calls.

    def call_begun(self, call: Any) -> None:
        """A call (`MpiCall`) has begun; its compute is billed."""
        self.begin(call.rank.process)

    def call_ended(self, call: Any) -> None:
        """A call is over."""
        self.end(call.rank.process)

    def begin(self, process: Process) -> None:
        """A process begins a call; its compute is billed."""
        number: int = self.stage.call_of(process)
        self._open[process] = number
        now = process.engine.now
        self._add(events.CALL, self._number(process, now), now + process.debt, number, 0.0, 0.0)

    def end(self, process: Process) -> None:
        """A process ends its call."""
        number = self._open.pop(process, None)
        if number is not None:
            date = process.engine.now + process.debt
            self._add(events.RETURN, self._processes[process], date, number, 0.0, 0.0)

    def collective_entered(self, contribution: Any, rank: Any) -> None:
        """A rank enters a collective operation."""
        communicator = contribution.communicator
        context = min(communicator.coll.number, communicator.remote.coll.number)
        self.enter(rank.process, self.stage.entered(), context)

    def sleep(self, process: Process) -> None:
        """A process begins to sleep."""
        now = process.engine.now
        self._add(events.START_WAIT, self._number(process, now), now, 1, 0.0, 0.0)

    def wake(self, process: Process) -> None:
        """The process wakes up."""
        now = process.engine.now
        self._add(events.RESUME, self._number(process, now), now, 0, -1.0, 0.0)

    def enter(self, process: Process, number: int, context: int) -> None:
        """A process enters collective call `number` of a context."""
        now = process.engine.now
        date = now + process.debt
        self._add(events.ENTER, self._number(process, now), date, number, float(context), 0.0)

    # Events of the kernel.

    def request_started(self, request: KernelRequest, process: Process, now: float) -> None:
        """A process starts a message; its number is that of its posting, which follows."""
        number = self._number(process, now)
        order = process.engine.order + 1
        if isinstance(request, Send):
            collective: int = self.stage.collective_of(process)
            if collective != 0:
                self._collectives[request] = collective
            self._add(
                events.START_SEND, number, now, order, float(request.nbytes), request.start_cost
            )
        elif isinstance(request, Receive):
            self._add(events.START_RECEIVE, number, now, order, float(request.nbytes), 0.0)

    def message_matched(self, send: Send, receive: Receive, now: float) -> None:
        """A message and a receive match."""
        self._add(events.MATCH, 0, now, send.order, float(receive.order), 0.0)

    def flow_started(self, send: Send, now: float) -> None:
        """The bytes of a message leave."""
        plan = send.plan
        assert plan is not None
        known = self._plans.get(plan)
        if known is None:
            known = self._learn(plan)
        route, alone = known
        source: int = self.stage.source(send)
        communicator: int = self.stage.communicator(send.context)
        mode = (events.EAGER if send.eager else 0) | (events.DETACHED if send.detached else 0)
        if isinstance(send, Transfer):
            mode |= events.ONE_SIDED
        collective = self._collectives.get(send)
        if collective is None:
            collective = 0
            internal: bool = self.stage.is_internal(send.context)
            if internal:
                mode |= events.INTERNAL
        else:
            del self._collectives[send]
        columns = self._messages
        columns.append(send.order)
        columns.append(source)
        columns.append(send.context.members[send.destination].pid)
        columns.append(send.tag)
        columns.append(send.nbytes)
        columns.append(route)
        columns.append(mode)
        columns.append(communicator)
        columns.append(collective)
        self._add(events.DEPART, 0, now, send.order, plan.latency, alone)

    def _learn(self, plan: Plan) -> tuple[int, float]:
        """The number of the route of a plan, and the seconds of its transfer if it is alone."""
        constraints = plan.constraints
        key = tuple([id(one) for one in constraints])
        route = self._routes.get(key)
        if route is None:
            route = len(self._routes)
            self._routes[key] = route
            self._resources.append(constraints)
            self.sink.add_route(TracedRoute(route, *_crossed(plan)))
        gap = plan.gap
        if gap is not None:
            alone = gap.last
        else:
            rate = plan.bound
            for i in range(len(constraints)):
                shared = constraints[i].capacity / plan.weights[i]
                if shared < rate:
                    rate = shared
            alone = plan.volume / plan.factor / rate
        if len(self._plans) >= PLANS:
            self._plans.clear()
        found = (route, alone)
        self._plans[plan] = found
        return found

    def flow_ended(self, send: Send, now: float) -> None:
        """The last byte of a message has arrived."""
        self._arrived, self._arrival = send.order, now
        self._add(events.ARRIVE, 0, now, send.order, 0.0, 0.0)

    def request_completed(self, request: KernelRequest, now: float) -> None:
        """A message or a receive is complete."""
        if isinstance(request, Envelope):
            self._add(events.COMPLETE, 0, now, request.order, 0.0, 0.0)

    def wait_begun(
        self, process: Process, requests: list[KernelRequest], all: bool, now: float
    ) -> None:
        """A process waits."""
        number = self._number(process, now)
        awaited: list[int] = []
        for request in requests:
            if isinstance(request, Envelope):
                awaited.append(request.order)
            else:
                purpose = self._purposes.get(request)
                if purpose is not None:
                    awaited.append(-1 - purpose)
        if self._rows + len(awaited) >= ROWS:
            self.flush()  # these rows are not separated
        self._add(events.START_WAIT, number, now, 1 if all else 0, float(len(awaited)), 0.0)
        for one in awaited:
            self._add(events.AWAITED, number, now, one, 0.0, 0.0)

    def wait_ended(self, process: Process, request: KernelRequest, now: float) -> None:
        """A process may continue."""
        number = self._number(process, now)
        cause, by, message = 0, -1, 0
        if isinstance(request, Receive):
            cause = request.order
            if request.message is not None:
                message = request.message.order
        elif isinstance(request, Envelope):
            cause = message = request.order
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
                    if self._arrival == now:
                        cause = self._arrived
        self._add(events.RESUME, number, now, cause, float(by), float(message))


def _crossed(plan: Plan) -> tuple[tuple[tuple[str, float], ...], tuple[float, ...]]:
    """The links that bytes of a plan cross, and the shares of a split message on them.

    Acknowledgements take a part of the links of the way back: no bytes cross these.
    """
    kind = plan.kind
    shares = kind.shares if isinstance(kind, Path) else None
    links: list[tuple[str, float]] = []
    parts: list[float] = []
    for i, one in enumerate(plan.constraints):
        if (plan.weights[i] >= 1.0) if shares is None else (shares[i] > 0.0):
            links.append((one.name, float(one.capacity)))
            if shares is not None:
                parts.append(shares[i])
    return tuple(links), tuple(parts)
