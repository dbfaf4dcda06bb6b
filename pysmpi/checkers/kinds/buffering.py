"""Deadlocks that only buffering prevents."""

from __future__ import annotations

from collections import defaultdict, deque
from typing import Any

from pysmpi import text
from pysmpi.checkers.describing import place
from pysmpi.checkers.order import group_of
from pysmpi.checkers.registry import Checker, checker
from pysmpi.diagnostics import Diagnostic, register
from pysmpi.kernel.matching import ANY
from pysmpi.kernel.process import Process
from pysmpi.kernel.requests import BUFFERED, KernelRequest, Receive, Send, Transfer
from pysmpi.mpi.base.ranks import Universe
from pysmpi.mpi.calls import CallKind, MpiCall
from pysmpi.mpi.point_to_point.requests import Request
from pysmpi.ranks.simulation import Simulation
from pysmpi.reports.findings import Finding, Place


@register
class PotentialDeadlock(Diagnostic):
    """The program ended only because MPI buffered a message or let a rank leave a collective call.

    After the run the calls are played again under the strictest rules that MPI allows: a standard
    send waits for its receive, and a collective call for all ranks. The report has the calls that
    then wait for each other.

    ## Why it is bad

    MPI does not promise to buffer. The program hangs with a larger message, another library or
    another network.

    ## Example

    ```python
    other = 1 - comm.rank
    comm.Send(data, dest=other)  # both ranks send first
    comm.Recv(data, source=other)
    ```

    ## What to do

    Use `Sendrecv`, `Irecv` before `Send`, or `Isend` with a `Wait` after the receive; `Bsend` with
    an attached buffer asks for buffering explicitly. Make collective calls and messages in an order
    in which each rank can wait.

    ## References

    MPI 4.1, sections 3.5 (resource limitations) and 6.14 (correctness of collective calls).
    """

    code = "PSM122"
    title = "potential deadlock"


class BufferingStep:
    """One call of a rank: the messages that it starts, and the events that it waits for."""

    __slots__ = ("call", "starts", "needs", "meets", "entered", "leaves")

    def __init__(self, call: MpiCall) -> None:
        self.call = call
        self.starts: list[KernelRequest] = []
        self.needs: list[Any] = []  # requests of messages, or meetings of collective calls
        self.meets: object = None  # the collective call that it enters
        self.entered = False
        self.leaves = False  # whether it does not wait for the others in it


_ALL = frozenset("Wait wait Waitall waitall Testall testall Test test".split())
_MOST = 400_000  # calls that are remembered


@checker("buffering", "deadlocks that only the buffering of messages prevents")
class BufferingChecks(Checker):
    """Remembers the calls of all ranks, and plays them again without buffers."""

    def __init__(self) -> None:
        self.streams: dict[Process, list[BufferingStep]] = {}
        self.steps: dict[int, BufferingStep] = {}  # by id of the call
        self.awaited: dict[int, list[KernelRequest]] = {}
        self.counts: dict[tuple[object, int], int] = {}
        self.sizes: dict[object, int] = {}
        self.meetings: dict[int, object] = {}  # collective calls by the id of their operation
        self.owners: dict[KernelRequest, MpiCall] = {}  # the calls that started them
        self.matched: dict[KernelRequest, KernelRequest] = {}  # messages and receives, both ways
        self.count = 0
        self.universe: Universe

    def begin(self, simulation: Simulation) -> None:
        """Remember the communicators of the run."""
        self.universe = simulation.universe

    def call_made(self, call: MpiCall) -> None:
        """Remember a call that communicates."""
        if call.kind is CallKind.LOCAL or self.count > _MOST:
            return
        step = self.steps[id(call)] = BufferingStep(call)
        self.streams.setdefault(call.rank.process, []).append(step)
        self.count += 1
        group = group_of(call)
        if group is not None and not call.name.endswith("_init"):
            pid = call.rank.pid
            number = self.counts.get((group.key, pid), 0)
            self.counts[group.key, pid] = number + 1
            step.meets = group.key, number
            self.sizes[step.meets] = len(group.pids)
        operations = call.operations
        if operations and call.name in _ALL:
            requests: list[Any] = []
            for operation in operations:
                meeting = self.meetings.get(id(operation))
                if meeting is not None:
                    requests.append(meeting)
                elif hasattr(operation, "messages"):
                    requests += [
                        message for message in operation.messages()
                        if isinstance(message, Send | Receive)
                    ]  # fmt: skip
            self.awaited[id(call)] = requests

    def request_started(self, request: KernelRequest, process: Process, now: float) -> None:
        """A message belongs to the call that starts it."""
        call = self.session.call_on(process)
        step = None if call is None else self.steps.get(id(call))
        if call is None or step is None or step.call.kind is not CallKind.POINT_TO_POINT:
            return
        if isinstance(request, Send | Receive) and not isinstance(request, Transfer):
            communicator = self.universe.communicators.get(request.context.number)
            if (
                communicator is not None
                and communicator.kind != "window"
                and communicator.coll is not request.context
            ):
                self.owners[request] = call
                step.starts.append(request)

    def message_matched(self, send: Send, receive: Receive, now: float) -> None:
        """A receive takes a message."""
        if self.count <= _MOST:
            self.matched[send], self.matched[receive] = receive, send
            if receive not in self.owners and send in self.owners:  # Mprobe has found it
                call = self.session.call_on(receive.context.members[receive.destination])
                step = None if call is None else self.steps.get(id(call))
                if call is not None and step is not None:
                    self.owners[receive] = call
                    step.starts.append(receive)

    def call_returned(self, call: MpiCall, result: object) -> None:
        """The requests and meetings that the call has waited for."""
        step = self.steps.pop(id(call), None)
        awaited = self.awaited.pop(id(call), None)
        if step is None:
            return
        handles = result if isinstance(result, tuple) else (result,)
        started = [one for one in handles if isinstance(one, Request)]
        if step.meets is not None and started and call.name.startswith("I"):
            step.leaves = True
            for handle in started:
                if handle._impl is not None:
                    self.meetings[id(handle._impl)] = step.meets
        elif awaited is not None:
            if call.name in ("Test", "test", "Testall", "testall"):
                done = result[0] if isinstance(result, tuple) else result
                # A test that succeeded was repeated until then, and other work went on.
                awaited = [one for one in awaited if not isinstance(one, Send)] if done else []
            step.needs = awaited
        elif not started and call.name not in ("Start", "Startall"):
            step.needs = list(step.starts)

    def call_failed(self, call: MpiCall, error: BaseException) -> None:
        """Forget the call."""
        self.steps.pop(id(call), None)
        self.awaited.pop(id(call), None)

    def finish(self, simulation: Simulation) -> None:
        """Play the calls again."""
        if not self.session.clean or self.count > _MOST:
            return
        streams = [stream for stream in self.streams.values() if stream]
        stuck = Play(streams, self.sizes, self.matched, exact=True).run()
        if stuck:
            stuck = Play(streams, self.sizes, self.matched, exact=False).run()
        if stuck:
            self._report(stuck)

    def _report(self, stuck: list[BufferingStep]) -> None:
        sends = [send.nbytes for step in stuck for send in step.needs if isinstance(send, Send)]
        # A rank that waits for another waiting rank explains nothing: senders come first.
        shown = sorted(stuck, key=lambda step: not any(isinstance(n, Send) for n in step.needs))
        groups: dict[object, list[BufferingStep]] = {}
        for step in shown:
            groups.setdefault((step.call.site, step.call.name), []).append(step)
        places: list[Place] = []
        for steps in list(groups.values())[:6]:
            one = place(steps[0].call)
            one.ranks = sorted(step.call.rank.pid for step in steps)
            places.append(one)
            for need in steps[0].needs:
                owner = self.owners.get(need) if isinstance(need, KernelRequest) else None
                if owner is not None and owner is not steps[0].call:
                    started = place(owner, f"started, waits in {steps[0].call.name}")
                    if started.site not in [listed.site for listed in places]:
                        started.ranks = one.ranks
                        places.append(started)
        pids = sorted({step.call.rank.pid for step in stuck})
        verb = "waits" if len(pids) == 1 else "wait"
        waits = f"{text.ranks(pids)} {verb} for ever in these calls"
        unless = (
            f"unless MPI buffers messages of {text.count(max(sends), 'byte')}"
            if sends
            else "if collective calls wait for all ranks"
        )
        self.session.report(
            Finding(
                PotentialDeadlock,
                f"{waits}, {unless}",
                places,
                "MPI 4.1, sections 3.5 and 6.14: a standard send may wait for its receive, and a "
                "collective call for all ranks",
                "receive before or while sending: Sendrecv, or Irecv before Send",
            )
        )


class Play:
    """The calls of a run under the strictest rules.

    In the `exact` form each receive takes the message of the run, otherwise the first that fits.
    """

    def __init__(
        self,
        streams: list[list[BufferingStep]],
        sizes: dict[object, int],
        matched: dict[KernelRequest, KernelRequest],
        exact: bool,
    ) -> None:
        self.matched = matched
        self.streams = streams
        self.at = [0] * len(streams)
        self.exact = exact
        self.sizes = sizes
        self.started: set[KernelRequest] = set()
        self.partner: dict[KernelRequest, KernelRequest] = {}
        self.entered: dict[object, int] = defaultdict(int)
        self.waiting: dict[object, list[int]] = {}
        self.sends: dict[object, list[Send | Receive]] = defaultdict(list)
        self.receives: dict[object, list[Send | Receive]] = defaultdict(list)
        self.due = deque(range(len(streams)))

    def run(self) -> list[BufferingStep]:
        """Play; returns the calls that wait for ever."""
        for stream in self.streams:
            for step in stream:
                step.entered = False
        while self.due:
            number = self.due.popleft()
            stream = self.streams[number]
            while self.at[number] < len(stream):
                step = stream[self.at[number]]
                if not step.entered:
                    self._enter(step)
                blocker = self._blocker(step)
                if blocker is not None:
                    self.waiting.setdefault(blocker, []).append(number)
                    break
                self.at[number] += 1
        return [
            stream[at] for stream, at in zip(self.streams, self.at, strict=True) if at < len(stream)
        ]

    def _wake(self, key: object) -> None:
        self.due.extend(self.waiting.pop(key, ()))

    def _enter(self, step: BufferingStep) -> None:
        step.entered = True
        for request in step.starts:
            self.started.add(request)
            if isinstance(request, Send | Receive):
                self._posted(request)
        if step.meets is not None:
            self.entered[step.meets] += 1
            if self.entered[step.meets] >= self.sizes[step.meets]:
                self._wake(step.meets)

    def _posted(self, request: Send | Receive) -> None:
        """Match a message or a receive with the other side, or let it wait."""
        if self.exact:
            other = self.matched.get(request)
            if other is not None and other in self.started:
                self._match(request, other)
            return
        key = request.context.number, request.destination
        sending = isinstance(request, Send)
        box = (self.receives if sending else self.sends)[key]
        for waiting in box:
            send, receive = (request, waiting) if sending else (waiting, request)
            if receive.source in (ANY, send.source) and receive.tag in (ANY, send.tag):
                box.remove(waiting)
                self._match(request, waiting)
                return
        (self.sends if sending else self.receives)[key].append(request)

    def _match(self, request: KernelRequest, other: KernelRequest) -> None:
        self.partner[request], self.partner[other] = other, request
        self._wake(request)
        self._wake(other)

    def _blocker(self, step: BufferingStep) -> object:
        if step.meets is not None and not step.leaves:
            if self.entered[step.meets] < self.sizes[step.meets]:
                return step.meets
        for need in step.needs:
            if isinstance(need, tuple):
                if self.entered[need] < self.sizes[need]:
                    return need
            elif isinstance(need, Send):
                if need.mode != BUFFERED and need not in self.partner and need in self.started:
                    if need in self.matched:  # else it was never received: another finding
                        return need
            elif need not in self.partner and need in self.started and need in self.matched:
                return need
        return None
