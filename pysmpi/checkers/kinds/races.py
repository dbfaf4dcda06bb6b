"""Message races: wildcard receives that could have taken another message."""

from __future__ import annotations

from typing import ClassVar

from pysmpi.checkers.base import Checker
from pysmpi.checkers.clocks import Stamp
from pysmpi.checkers.describing import place
from pysmpi.checkers.problems.races import MessageRace
from pysmpi.checkers.registry import checker
from pysmpi.kernel.matching import ANY
from pysmpi.kernel.requests import AbstractProcess, KernelRequest, Receive, Send, Transfer
from pysmpi.mpi.base.constants import ANY_SOURCE, ANY_TAG
from pysmpi.mpi.buffers.spellings import MessageRegion
from pysmpi.mpi.calls import CallKind, MpiCall, Procedure, Role
from pysmpi.mpi.datatypes.status import Status
from pysmpi.mpi.point_to_point.matched import Message
from pysmpi.python.frames import shorten
from pysmpi.ranks.simulation import Simulation
from pysmpi.reports.findings import Finding, OtherMatch


class Posted:
    """A receive of the program, in the order of its rank."""

    __slots__ = ("index", "call", "source", "tag", "send", "done", "nbytes", "request", "number",
                 "box")  # fmt: skip

    def __init__(self, index: int, call: MpiCall, source: int, tag: int) -> None:
        self.index = index
        self.call = call
        self.source = source
        self.tag = tag
        self.nbytes = -1  # of its buffer; -1 if Mprobe found the message
        self.send: Sent | None = None
        self.done: int | None = None  # the receiver's clock when it knows that it is complete
        # The receive and its number among those that were posted; None if Mprobe found the message.
        self.request: Receive | None = None
        self.number = 0
        self.box: Box | None = None

    def accepts(self, sent: Sent) -> bool:
        """Whether a message fits."""
        return self.source in (ANY, sent.source) and self.tag in (ANY, sent.tag)


class Sent:
    """A message of the program, in the order of its sender."""

    __slots__ = ("call", "source", "tag", "clock", "receive", "content", "nbytes")

    def __init__(self, call: MpiCall, send: Send, clock: Stamp) -> None:
        self.call = call
        self.source = send.source
        self.tag = send.tag
        self.clock = clock
        self.receive: Posted | None = None
        self.content: int | None = None
        self.nbytes = send.nbytes


class Box:
    """The messages to one rank of a communicator, and its receives.

    Until the first receive from any source, only those are kept that have not met.
    """

    __slots__ = ("pid", "sends", "receives", "wild", "count", "posted")

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.sends: dict[int, list[Sent]] = {}
        self.receives: list[Posted] = []
        self.wild = False
        self.count = 0  # receives, those by Mprobe included
        self.posted = 0  # receives that were posted


_MOST = 20_000  # receives of one rank that are compared


_MATCHING = frozenset("Mprobe mprobe Improbe improbe Probe Iprobe probe iprobe".split())


class RaceChecks(Checker):
    """Remembers messages and receives, and looks for other possible messages of each wildcard."""

    needs_clocks: ClassVar[bool] = True

    def __init__(self) -> None:
        self.boxes: dict[tuple[int, int], Box] = {}
        self.sent: dict[KernelRequest, Sent] = {}
        self.posted: dict[KernelRequest, Posted] = {}
        self.probed: dict[KernelRequest, Posted] = {}  # by message, those of Mprobe
        self.starts: dict[int, list[Posted]] = {}
        self.awaited: dict[int, list[Receive]] = {}  # by id of the call
        self.incomplete: dict[Receive, Posted] = {}  # those that no call is known to have completed

    def concerns(self, event: str, procedure: Procedure) -> bool:
        """Calls that complete requests, and those that receive."""
        if event == "call_made":
            return Role.REQUEST in procedure.places
        return procedure.kind is not CallKind.LOCAL or Role.REQUEST in procedure.places

    def _box(self, request: Send | Receive) -> Box | None:
        if not self.session.of_program(request):
            return None
        context = request.context
        key = context.number, request.destination
        box = self.boxes.get(key)
        if box is None:
            box = self.boxes[key] = Box(context.members[request.destination].pid)
        return box

    def request_started(self, request: KernelRequest, process: AbstractProcess, now: float) -> None:
        """A message or a receive begins."""
        call = self.session.call_on(process)
        if call is None or call.kind is not CallKind.POINT_TO_POINT:
            return
        if isinstance(request, Transfer):
            return
        if isinstance(request, Send):
            box = self._box(request)
            if box is not None:
                sent = Sent(call, request, self.session.clocks.stamp(call.rank.pid))
                box.sends.setdefault(request.source, []).append(sent)
                self.sent[request] = sent
        elif isinstance(request, Receive):
            if call.values and isinstance(call.values[0], Message):
                return  # the matched probe has taken the message
            box = self._box(request)
            if box is not None and box.count < _MOST:
                posted = Posted(box.count, call, request.source, request.tag)
                box.count += 1
                posted.request, posted.number, posted.nbytes = request, box.posted, request.nbytes
                posted.box = box
                box.posted += 1
                box.receives.append(posted)
                box.wild = box.wild or request.source == ANY
                self.posted[request] = self.incomplete[request] = posted
                self.starts.setdefault(id(call), []).append(posted)

    def message_matched(self, send: Send, receive: Receive, now: float) -> None:
        """A receive has its message."""
        sent, posted = self.sent.pop(send, None), self.posted.pop(receive, None)
        if posted is None:
            posted = self.probed.pop(send, None)
        if sent is None or posted is None:
            return
        sent.receive, posted.send = posted, sent
        box = posted.box
        if box is None:
            box = self._box(send)
        if box is None:
            return
        if not box.wild:  # no later receive from any source could take this message
            box.sends[send.source].remove(sent)
            box.receives.remove(posted)
            return
        payload = send.payload
        if isinstance(payload, MessageRegion):
            if payload.nbytes <= 1 << 20:
                sent.content = hash(bytes(payload.pack()))
        elif payload is not None:
            sent.content = hash(bytes(payload))

    def _probe_returned(self, call: MpiCall, send: Send) -> None:
        """`Mprobe` takes a message; whenever its data is received, no other receive can have it."""
        box = self._box(send)
        if box is None or send not in self.sent or box.count >= _MOST:
            return
        arguments = call.arguments
        source = ANY if arguments["source"] == ANY_SOURCE else send.source
        tag = ANY if arguments["tag"] == ANY_TAG else send.tag
        posted = Posted(box.count, call, source, tag)
        box.count += 1
        posted.done = self.session.clocks.now(box.pid).count
        box.wild = box.wild or source == ANY
        box.receives.append(posted)
        self.probed[send] = posted

    def call_made(self, call: MpiCall) -> None:
        """Note the receives that the call waits for."""
        requests = [
            message
            for _, messages in self.session.operations.messages(call)
            for message in messages
            if isinstance(message, Receive)
        ]
        if requests:
            self.awaited[id(call)] = requests

    def call_returned(self, call: MpiCall, result: object) -> None:
        """Note the complete receives: they happened before the next events of the rank."""
        pid = call.rank.pid
        clock = self.session.clocks.now(pid).count
        started = self.starts.pop(id(call), None)
        if started is not None:
            for posted in started:
                request = posted.request
                if request is not None and request.done:
                    # A call such as Sendrecv may send its message before its receive is complete.
                    posted.done = clock + ("end" in call.name)
                    self.incomplete.pop(request, None)
        if call.name in _MATCHING:
            send = getattr(getattr(result, "_impl", None), "send", None)
            if isinstance(send, Send):
                self._probe_returned(call, send)
        waited = self.awaited.pop(id(call), None)
        if waited:
            for request in waited:
                if request.done:
                    completed = self.incomplete.pop(request, None)
                    if completed is not None:
                        completed.done = clock

    def call_failed(self, call: MpiCall, error: BaseException) -> None:
        """Forget the call."""
        self.starts.pop(id(call), None)
        self.awaited.pop(id(call), None)

    def finish(self, simulation: Simulation) -> None:
        """Look for other matches."""
        reported: set[object] = set()
        for box in self.boxes.values():
            if box.wild:
                self._look(box, reported)

    def _look(self, box: Box, reported: set[object]) -> None:
        for posted in box.receives:
            received = posted.send
            if posted.source != ANY or received is None:
                continue
            for source, sends in box.sends.items():
                if source == received.source:
                    continue
                other = next(
                    (
                        sent for sent in sends
                        if posted.tag in (ANY, sent.tag)
                        and (sent.receive is None or sent.receive.index > posted.index)
                    ),
                    None,
                )  # fmt: skip
                if other is None:
                    continue
                if posted.done is not None and other.clock.get(box.pid) >= posted.done:
                    continue  # sent after the receive was complete
                reason, doubtful = self._outcome(box, posted, received, other)
                if reason is not None:
                    key = posted.call.site, received.call.site, other.call.site
                    if key not in reported:
                        reported.add(key)
                        self._report(posted, received, other, reason, doubtful)
                        break

    def _outcome(
        self, box: Box, posted: Posted, received: Sent, other: Sent
    ) -> tuple[str | None, bool]:
        """The difference that the other message makes, if any, and whether it may not matter."""
        later = other.receive
        if later is None:
            if self.session.clean:
                return None, False  # a message too many: reported as such
            waiting = next(
                (one for one in box.receives if one.send is None and one.accepts(received)
                 and not one.accepts(other)), None
            )  # fmt: skip
            if waiting is None:
                return None, False
            return f"{waiting.call.name} waits for the message that it took in this run", False
        if 0 <= posted.nbytes < other.nbytes or 0 <= later.nbytes < received.nbytes:
            return "the other message does not fit into the buffer", False
        if not later.accepts(received):
            return (
                f"the receive that took the other message, {_line(later)}, accepts no message "
                f"from rank {received.source} with tag {received.tag}: it then waits for ever, or "
                "takes a later message"
            ), False
        if later.call.site == posted.call.site or received.content == other.content:
            return None, False
        if received.content is None or other.content is None:
            return None, False
        if _takes_status(posted.call) or _takes_status(later.call):
            return None, False
        return f"the data of the two messages differ, and {_line(later)} takes the other one", True

    def _report(
        self, posted: Posted, received: Sent, other: Sent, reason: str, doubtful: bool
    ) -> None:
        later = other.receive
        receive = posted.request
        match = None
        if receive is not None:
            match = OtherMatch(
                receive.context.number, receive.destination, posted.number, received.source,
                other.source,
            )  # fmt: skip
        elif doubtful:
            return  # it cannot be tried
        places = [
            place(posted.call, "takes any of them"),
            place(received.call, "taken in this run"),
            place(other.call, "could be taken as well"),
        ]
        if later is not None and later.call.site != posted.call.site:
            places.insert(1, place(later.call, "took the other"))
        self.session.report(
            Finding(
                MessageRace,
                f"{posted.call.name} from any source took the message of rank "
                f"{received.call.rank.pid}; that of rank {other.call.rank.pid} can arrive first",
                places,
                "MPI 4.1, sections 3.2.4 and 3.5: a receive from any source takes any message "
                "that fits, and messages of different senders have no order",
                "name the source, use different tags, or take the source from a Status",
                more=[
                    "neither send happens before the other, and the receive does not happen "
                    "before them",
                    f"with the other message: {reason}",
                ],
                match=match,
                doubtful=doubtful,
            )
        )


def _line(posted: Posted) -> str:
    site = posted.call.site
    return (
        posted.call.name
        if site is None
        else (f"{posted.call.name} at {shorten(site.file)}:{site.line}")
    )


def _takes_status(call: MpiCall) -> bool:
    return any(isinstance(value, Status) for value in call.having(Role.STATUS).values())


checker("races", "receives from any source that could have taken another message")(RaceChecks)
