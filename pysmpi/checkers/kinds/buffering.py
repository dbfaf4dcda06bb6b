"""Deadlocks that only buffering prevents."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from pysmpi import text
from pysmpi.checkers.awaited import Operation
from pysmpi.checkers.base import Checker
from pysmpi.checkers.describing import place
from pysmpi.checkers.order import group_of, may_meet
from pysmpi.checkers.problems.buffering import PotentialDeadlock
from pysmpi.checkers.registry import checker
from pysmpi.kernel.matching import ANY
from pysmpi.kernel.process import Process
from pysmpi.kernel.requests import BUFFERED, AbstractProcess, KernelRequest, Receive, Send, Transfer
from pysmpi.mpi.calls import CallKind, MpiCall, Procedure
from pysmpi.mpi.point_to_point.requests import Request
from pysmpi.ranks.simulation import Simulation
from pysmpi.reports.findings import Finding, Place


class MessageEnd:
    """A message, or a receive: its place and its other end, in the run and when played again."""

    __slots__ = (
        "call", "sends", "context", "destination", "source", "tag", "mode", "nbytes", "request",
        "waits", "matched", "other", "partner", "started",
    )  # fmt: skip

    def __init__(self, call: MpiCall, request: Send | Receive) -> None:
        self.call = call  # that starts it
        self.sends = False
        self.mode = 0
        if isinstance(request, Send):
            self.sends = True
            self.mode = request.mode
        self.context = request.context.number
        self.destination = request.destination
        self.source = request.source
        self.tag = request.tag
        self.nbytes = request.nbytes
        self.request: Send | Receive | None = request  # while it may still be asked for
        self.waits = False  # whether the call that waits for it has returned
        self.matched = False
        self.other: MessageEnd | None = None
        self.partner: MessageEnd | None = None
        self.started = False


class BufferingStep:
    """One call of a rank: the messages that it starts, and the events that it waits for."""

    __slots__ = ("call", "starts", "needs", "meets", "entered", "leaves")

    def __init__(self, call: MpiCall) -> None:
        self.call = call
        self.starts: list[MessageEnd] | None = None
        # Ends of messages, or meetings of collective calls.
        self.needs: Sequence[object] | None = None
        self.meets: object = None  # the collective call that it enters
        self.entered = False
        self.leaves = False  # whether it does not wait for the others in it


_ALL = frozenset("Wait wait Waitall waitall Testall testall Test test".split())
_TESTS = frozenset("Testall testall Test test".split())
_STARTS = frozenset(("Start", "Startall"))
_MOST = 400_000  # calls that are remembered


class BufferingChecks(Checker):
    """Remembers the calls of all ranks, and plays them again without buffers."""

    def __init__(self) -> None:
        self.streams: dict[Process, list[BufferingStep]] = {}
        self.steps: dict[int, BufferingStep] = {}  # by id of the call
        self.awaited: dict[int, list[object]] = {}
        self.counts: dict[tuple[object, int], int] = {}
        self.sizes: dict[object, int] = {}
        self.meetings: dict[int, object] = {}  # collective calls by id of the operation
        self.ends: dict[KernelRequest, MessageEnd] = {}  # that may still be asked for
        self.count = 0

    def concerns(self, event: str, procedure: Procedure) -> bool:
        """Calls that communicate."""
        return procedure.kind is not CallKind.LOCAL

    def call_made(self, call: MpiCall) -> None:
        """Remember a call that communicates."""
        if self.count > _MOST:
            return
        step = self.steps[id(call)] = BufferingStep(call)
        process: Process = call.rank.process
        stream = self.streams.get(process)
        if stream is None:
            stream = self.streams[process] = []
        stream.append(step)
        self.count += 1
        group = group_of(call) if may_meet(call.procedure) else None
        if group is not None and not call.name.endswith("_init"):
            pid = call.rank.pid
            number = self.counts.get((group.key, pid), 0)
            self.counts[group.key, pid] = number + 1
            meets: object = (group.key, number)
            step.meets = meets
            self.sizes[meets] = len(group.pids)
        if call.name in _ALL:
            operations = self.session.operations.of(call)
            if operations:
                self.awaited[id(call)] = self._awaited(operations)

    def _awaited(self, operations: list[Operation]) -> list[object]:
        awaited: list[object] = []
        for operation in operations:
            meeting = self.meetings.get(id(operation))
            if meeting is not None:
                awaited.append(meeting)
            elif hasattr(operation, "messages"):
                for message in operation.messages():
                    end = self.ends.get(message)
                    if end is not None:
                        awaited.append(end)
        return awaited

    def request_started(self, request: KernelRequest, process: AbstractProcess, now: float) -> None:
        """A message belongs to the call that starts it."""
        if not isinstance(request, (Send, Receive)) or isinstance(request, Transfer):
            return
        call = self.session.call_on(process)
        step = None if call is None else self.steps.get(id(call))
        if call is None or step is None or call.kind is not CallKind.POINT_TO_POINT:
            return
        if self.session.of_program(request):
            self._begin(call, step, request)

    def _begin(self, call: MpiCall, step: BufferingStep, request: Send | Receive) -> MessageEnd:
        end = self.ends[request] = MessageEnd(call, request)
        if step.starts is None:
            step.starts = [end]
        else:
            step.starts.append(end)
        return end

    def message_matched(self, send: Send, receive: Receive, now: float) -> None:
        """A receive takes a message."""
        if self.count > _MOST:
            return
        sent, received = self.ends.get(send), self.ends.get(receive)
        if received is None and sent is not None:  # Mprobe has found it
            call = self.session.call_on(receive.context.members[receive.destination])
            step = None if call is None else self.steps.get(id(call))
            if call is not None and step is not None:
                received = self._begin(call, step, receive)
        if sent is not None:
            sent.other = received
            self._match(sent)
        if received is not None:
            received.other = sent
            self._match(received)

    def _match(self, end: MessageEnd) -> None:
        end.matched = True
        if end.waits:
            self._forget(end)

    def _wait(self, end: MessageEnd) -> None:
        end.waits = True
        if end.matched:
            self._forget(end)

    def _forget(self, end: MessageEnd) -> None:
        """Let the request of a message go, for which nothing asks any more."""
        if end.request is not None:
            self.ends.pop(end.request, None)
            end.request = None

    def call_returned(self, call: MpiCall, result: object) -> None:
        """The requests and meetings that the call has waited for."""
        step = self.steps.pop(id(call), None)
        awaited = self.awaited.pop(id(call), None)
        if step is None:
            return
        started: list[Request] = []
        if isinstance(result, Request):
            started = [result]
        elif isinstance(result, tuple):
            started = [one for one in result if isinstance(one, Request)]
        if step.meets is not None and started and call.name.startswith("I"):
            step.leaves = True
            for handle in started:
                if handle._impl is not None:
                    self.meetings[id(handle._impl)] = step.meets
        elif awaited is not None:
            if call.name in _TESTS:
                done = result[0] if isinstance(result, tuple) else result
                if not done:
                    return
                # A test that succeeded was repeated until then, and other work went on.
                step.needs = [
                    one for one in awaited if not isinstance(one, MessageEnd) or not one.sends
                ]
            else:
                step.needs = awaited
            for one in awaited:
                if isinstance(one, MessageEnd):
                    self._wait(one)
        elif not started and call.name not in _STARTS:
            step.needs = step.starts
            if step.starts is not None:
                for end in step.starts:
                    self._wait(end)

    def call_failed(self, call: MpiCall, error: BaseException) -> None:
        """Forget the call."""
        self.steps.pop(id(call), None)
        self.awaited.pop(id(call), None)

    def finish(self, simulation: Simulation) -> None:
        """Play the calls again."""
        if not self.session.clean or self.count > _MOST:
            return
        streams = [stream for stream in self.streams.values() if stream]
        stuck = Play(streams, self.sizes, exact=True).run()
        if stuck:
            stuck = Play(streams, self.sizes, exact=False).run()
        if stuck:
            self._report(stuck)

    def _report(self, stuck: list[BufferingStep]) -> None:
        sends = [end.nbytes for step in stuck for end in _ends(step) if end.sends]
        # A rank that waits for another waiting rank explains nothing: senders come first.
        shown = sorted(stuck, key=lambda step: not any(end.sends for end in _ends(step)))
        groups: dict[object, list[BufferingStep]] = {}
        for step in shown:
            groups.setdefault((step.call.site, step.call.name), []).append(step)
        places: list[Place] = []
        for steps in list(groups.values())[:6]:
            one = place(steps[0].call)
            one.ranks = sorted(step.call.rank.pid for step in steps)
            places.append(one)
            for end in _ends(steps[0]):
                owner = end.call
                if owner is not steps[0].call:
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


def _ends(step: BufferingStep) -> list[MessageEnd]:
    """The messages and receives that a call waits for."""
    return [need for need in step.needs or () if isinstance(need, MessageEnd)]


class Play:
    """The calls of a run under the strictest rules.

    In the `exact` form each receive takes the message of the run, otherwise the first that fits.
    """

    def __init__(
        self, streams: list[list[BufferingStep]], sizes: dict[object, int], exact: bool
    ) -> None:
        self.streams = streams
        self.at = [0] * len(streams)
        self.exact = exact
        self.sizes = sizes
        self.entered: dict[object, int] = {}
        self.waiting: dict[object, list[int]] = {}
        self.sends: dict[tuple[int, int], list[MessageEnd]] = {}
        self.receives: dict[tuple[int, int], list[MessageEnd]] = {}
        self.due = deque(range(len(streams)))

    def run(self) -> list[BufferingStep]:
        """Play; returns the calls that wait for ever."""
        for stream in self.streams:
            for step in stream:
                step.entered = False
                if step.starts is not None:
                    for end in step.starts:
                        end.partner = None
                        end.started = False
        while self.due:
            number: int = self.due.popleft()
            stream = self.streams[number]
            at = self.at[number]
            while at < len(stream):
                step = stream[at]
                if not step.entered:
                    self._enter(step)
                blocker = self._blocker(step)
                if blocker is not None:
                    self.waiting.setdefault(blocker, []).append(number)
                    break
                at += 1
            self.at[number] = at
        return [
            stream[at] for stream, at in zip(self.streams, self.at, strict=True) if at < len(stream)
        ]

    def _wake(self, key: object) -> None:
        waiting = self.waiting.pop(key, None)
        if waiting is not None:
            self.due.extend(waiting)

    def _enter(self, step: BufferingStep) -> None:
        step.entered = True
        if step.starts is not None:
            for end in step.starts:
                end.started = True
                self._posted(end)
        meets = step.meets
        if meets is not None:
            entered = self.entered[meets] = self.entered.get(meets, 0) + 1
            if entered >= self.sizes[meets]:
                self._wake(meets)

    def _posted(self, end: MessageEnd) -> None:
        """Match a message or a receive with the other side, or let it wait."""
        if self.exact:
            other = end.other
            if other is not None and other.started:
                self._match(end, other)
            return
        key = end.context, end.destination
        boxes = self.receives if end.sends else self.sends
        box = boxes.get(key)
        if box is not None:
            for waiting in box:
                send, receive = (end, waiting) if end.sends else (waiting, end)
                if receive.source in (ANY, send.source) and receive.tag in (ANY, send.tag):
                    box.remove(waiting)
                    self._match(end, waiting)
                    return
        boxes = self.sends if end.sends else self.receives
        boxes.setdefault(key, []).append(end)

    def _match(self, end: MessageEnd, other: MessageEnd) -> None:
        end.partner, other.partner = other, end
        self._wake(end)
        self._wake(other)

    def _blocker(self, step: BufferingStep) -> object:
        meets = step.meets
        if meets is not None and not step.leaves:
            if self.entered.get(meets, 0) < self.sizes[meets]:
                return meets
        if step.needs is None:
            return None
        for need in step.needs:
            if isinstance(need, MessageEnd):
                # What was never received is another finding.
                if need.partner is None and need.started and need.matched:
                    if not need.sends or need.mode != BUFFERED:
                        return need
            elif self.entered.get(need, 0) < self.sizes[need]:
                return need
        return None


checker("buffering", "deadlocks that only the buffering of messages prevents")(BufferingChecks)
