"""Message races: wildcard receives that could have taken another message."""

from __future__ import annotations

import math
from typing import Any

from pysmpi.checkers.clocks import Stamp
from pysmpi.checkers.describing import place
from pysmpi.checkers.registry import Checker, checker
from pysmpi.diagnostics import Diagnostic, register
from pysmpi.kernel.matching import ANY
from pysmpi.kernel.process import Process
from pysmpi.kernel.requests import KernelRequest, Receive, Send, Transfer
from pysmpi.mpi.base.constants import ANY_SOURCE, ANY_TAG
from pysmpi.mpi.base.ranks import Universe
from pysmpi.mpi.buffers.spellings import MessageRegion
from pysmpi.mpi.calls import CallKind, MpiCall, Role
from pysmpi.mpi.datatypes.status import Status
from pysmpi.mpi.point_to_point.matched import Message
from pysmpi.python.frames import shorten
from pysmpi.ranks.simulation import Simulation
from pysmpi.reports.findings import Finding, OtherMatch


@register
class MessageRace(Diagnostic):
    """A receive from any source could have taken another message, with another outcome.

    The report names the receive, the message that it took in this run, and the one that it could
    have taken: no synchronization lets one of them arrive first. It is an error if the other order
    leaves a later receive without a message, or if two different receives would exchange data. A
    loop that treats all messages alike is not reported. A trial shows whether the result differs:
    the program runs again with the other message, in a child process and with the time turned off.
    An exchange of data between two receives is reported only if the output, the return values or
    the end of the program then differ.

    ## Why it is bad

    The program works as long as the messages arrive in the usual order, and then hangs, or computes
    something else, once in many runs.

    ## Example

    ```python
    if comm.rank == 0:
        first = comm.recv(source=MPI.ANY_SOURCE)
        second = comm.recv(source=1)  # waits for ever if the first took rank 1's message
    else:
        comm.send(comm.rank, dest=0)
    ```

    ## What to do

    Name the source of each receive, or give messages of different purpose different tags. If the
    order does not matter, take the source from the `Status` of the receive.

    ## References

    MPI 4.1, sections 3.2.4 (wildcards) and 3.5 (order of messages).
    """

    code = "PSM121"
    title = "message race"


class Posted:
    """A receive of the program, in the order of its rank."""

    __slots__ = ("index", "call", "source", "tag", "send", "done", "nbytes", "request", "number")

    def __init__(self, index: int, call: MpiCall, source: int, tag: int) -> None:
        self.index = index
        self.call = call
        self.source = source
        self.tag = tag
        self.nbytes: float = math.inf
        self.send: Sent | None = None
        self.done: int | None = None  # the receiver's clock when it knows that it is complete
        # The receive and its number among those that were posted; None if Mprobe found the message.
        self.request: Receive | None = None
        self.number = 0

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
    """The messages to one rank of a communicator, and its receives."""

    __slots__ = ("pid", "sends", "receives", "wild", "posted")

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.sends: dict[int, list[Sent]] = {}
        self.receives: list[Posted] = []
        self.wild = False
        self.posted = 0  # receives that were posted


_MOST = 20_000  # receives of one rank that are compared


_MATCHING = frozenset("Mprobe mprobe Improbe improbe Probe Iprobe probe iprobe".split())


@checker("races", "receives from any source that could have taken another message")
class RaceChecks(Checker):
    """Remembers messages and receives, and looks for other possible messages of each wildcard."""

    needs_clocks = True

    def __init__(self) -> None:
        self.boxes: dict[tuple[int, int], Box] = {}
        self.sent: dict[KernelRequest, Sent] = {}
        self.posted: dict[KernelRequest, Posted] = {}
        self.probed: dict[KernelRequest, Posted] = {}  # by message, those of Mprobe
        self.starts: dict[int, list[Posted]] = {}
        self.awaited: dict[int, list[Any]] = {}
        self.universe: Universe

    def begin(self, simulation: Simulation) -> None:
        """Remember the communicators of the run."""
        self.universe = simulation.universe

    def _box(self, request: Send | Receive) -> Box | None:
        context = request.context
        communicator = self.universe.communicators.get(context.number)
        if communicator is None or communicator.kind == "window" or communicator.coll is context:
            return None
        key = context.number, request.destination
        box = self.boxes.get(key)
        if box is None:
            box = self.boxes[key] = Box(context.members[request.destination].pid)
        return box

    def request_started(self, request: KernelRequest, process: Process, now: float) -> None:
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
            if box is not None and len(box.receives) < _MOST:
                posted = Posted(len(box.receives), call, request.source, request.tag)
                posted.request, posted.number, posted.nbytes = request, box.posted, request.nbytes
                box.posted += 1
                box.receives.append(posted)
                box.wild = box.wild or request.source == ANY
                self.posted[request] = posted
                self.starts.setdefault(id(call), []).append(posted)

    def message_matched(self, send: Send, receive: Receive, now: float) -> None:
        """A receive has its message."""
        sent, posted = self.sent.pop(send, None), self.posted.pop(receive, None)
        if posted is None:
            posted = self.probed.pop(send, None)
        if sent is None or posted is None:
            return
        sent.receive, posted.send = posted, sent
        payload = send.payload
        if isinstance(payload, MessageRegion):
            if payload.nbytes <= 1 << 20:
                sent.content = hash(bytes(payload.pack()))
        elif payload is not None:
            sent.content = hash(bytes(payload))

    def _probe_returned(self, call: MpiCall, send: Send) -> None:
        """`Mprobe` takes a message; whenever its data is received, no other receive can have it."""
        box = self._box(send)
        if box is None or send not in self.sent or len(box.receives) >= _MOST:
            return
        arguments = call.arguments
        source = ANY if arguments["source"] == ANY_SOURCE else send.source
        tag = ANY if arguments["tag"] == ANY_TAG else send.tag
        posted = Posted(len(box.receives), call, source, tag)
        posted.done = self.session.clocks.now(box.pid).count
        box.wild = box.wild or source == ANY
        box.receives.append(posted)
        self.probed[send] = posted

    def call_made(self, call: MpiCall) -> None:
        """Note the receives that the call waits for."""
        operations = call.operations
        if operations:
            requests = [
                message for operation in operations if hasattr(operation, "messages")
                for message in operation.messages() if isinstance(message, Receive)
            ]  # fmt: skip
            if requests:
                self.awaited[id(call)] = requests

    def call_returned(self, call: MpiCall, result: object) -> None:
        """Note the complete receives: they happened before the next events of the rank."""
        pid = call.rank.pid
        clock = self.session.clocks.now(pid).count
        for posted in self.starts.pop(id(call), ()):
            if posted.request is not None and posted.request.done:
                # A call such as Sendrecv may send its message before its receive is complete.
                posted.done = clock + ("end" in call.name)
        if call.name in _MATCHING:
            send = getattr(getattr(result, "_impl", None), "send", None)
            if isinstance(send, Send):
                self._probe_returned(call, send)
        waited = self.awaited.pop(id(call), None)
        if waited:
            done = {id(request) for request in waited if request.done}
            for box in self.boxes.values():
                if box.pid == pid:
                    for posted in reversed(box.receives):
                        if id(posted.request) in done and posted.done is None:
                            posted.done = clock
                        elif posted.done is not None and len(done) == 1:
                            break

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
        if other.nbytes > posted.nbytes or received.nbytes > later.nbytes:
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
