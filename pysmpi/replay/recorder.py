"""The recorder of a replay: its calls and events, in the form of the recorder of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pysmpi.kernel.matching import is_wild
from pysmpi.kernel.process import Process
from pysmpi.kernel.requests import Context, KernelRequest, Receive, Send, Transfer
from pysmpi.trace.event_recorder import EventRecorder
from pysmpi.trace.events import (
    BACKGROUND,
    COMPUTE,
    MAIN,
    THREAD,
    Operation,
    RankPlace,
    TracedCall,
    TracedCommunicator,
    TracedMatch,
)
from pysmpi.trace.messages import listener_of

if TYPE_CHECKING:
    from pysmpi.kernel.engine import Engine
    from pysmpi.trace.events import Format


class ReplayRecorder:
    """Listens to a replay, and passes calls and events on to a format.

    Players report their calls to it; while there is a recorder, a player gives the kernel the
    actions of one call at a time.
    """

    def __init__(self, format: Format) -> None:
        self.format = format
        self.started: dict[Process, list[KernelRequest]] = {}  # by the messages of each call
        self._sink = listener_of(format)
        self._events = EventRecorder(self._sink, self) if self._sink is not None else None
        self._match = getattr(format, "match", None)
        self._between = getattr(format, "between", None)
        self._engine: Engine | None = None
        self._mains: set[Process] = set()
        self._calls: dict[Process, int] = {}
        self._collectives: dict[Process, int] = {}
        self._background: dict[Process, int] = {}
        self._contexts: dict[int, int] = {}  # communicators by context
        self._internal: set[int] = set()  # contexts whose tags are not the program's
        self._senders: dict[KernelRequest, int] = {}  # that are no members of their contexts
        self._numbers: dict[tuple[object, ...], int] = {}  # of collective calls
        self._asleep: set[Process] = set()
        self._entered = 0
        self._number = 0
        self._begins: dict[Process, float] = {}

    def attach(self, engine: Engine, facts: Mapping[str, object], selection: object) -> None:
        """Listen to an engine that has not run yet."""
        describe = getattr(self.format, "describe", None)
        if describe is not None:
            describe(facts)
        choose = getattr(self.format, "choose", None)
        if choose is not None:
            choose(selection)
        self._engine = engine
        engine.listeners.add(self)
        if self._events is not None:
            engine.listeners.add(self._events)

    def begin(self, hosts: Sequence[str], cores: Sequence[int], processes: list[Process]) -> None:
        """The main processes of all ranks, and their places."""
        self._mains = set(processes)
        self.format.begin(
            [
                RankPlace(rank, host, core, process.core.speed)
                for rank, (host, core, process) in enumerate(zip(hosts, cores, processes))
            ]
        )

    def finish(self, processes: Sequence[Process], dates: Sequence[float]) -> None:
        """The replay is over."""
        if self._events is not None:
            self._events.finish([(process, date, 0) for process, date in zip(processes, dates)])
            finish = getattr(self._sink, "finish", None)
            if finish is not None:
                finish()
        self.format.end(list(dates))
        self.format.close()

    def describe_context(self, context: Context, communicator: int, name: str) -> None:
        """A context that messages may have, and its communicator."""
        self._contexts[context.number] = communicator
        if communicator != context.number or name.startswith(("window ", "context ")):
            self._internal.add(context.number)
        members = tuple(member.pid for member in context.members)
        tell = getattr(self.format, "communicator", None)
        if tell is not None:
            peer = context.peer
            sources = () if peer is None else tuple(member.pid for member in peer.members)
            tell(TracedCommunicator(context.number, communicator, name, members, sources))

    # Events of players.

    def call_number(self) -> int:
        """A new number of a call."""
        self._number += 1
        return self._number

    def collective_number(self, key: tuple[object, ...]) -> int:
        """The number of a collective call, the same for all its ranks."""
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = self.call_number()
        return found

    def call_begun(self, process: Process) -> int:
        """A call begins; its number."""
        number = self._calls[process] = self.call_number()
        self._begins[process] = process.engine.now
        self.started[process] = []
        if self._events is not None:
            self._events.begin(process)
        return number

    def call_ended(
        self, process: Process, call: TracedCall, number: int, operations: list[Operation]
    ) -> None:
        """It ends, having done some operations."""
        if self._events is not None:
            self._events.end(process)
        call.number = number
        call.start, call.end = self._begins[process], process.engine.now
        call.operations = operations
        self.format.call(call)

    def between(self, process: Process, thread: int, begun: float, some: list[Operation]) -> None:
        """Time has passed between calls, or computation at the end of a rank."""
        if self._between is not None and some:
            call = TracedCall("", process.pid, thread, "")
            call.number = self.call_number()
            passed = any(one[0] != COMPUTE for one in some)
            call.start = begun if passed else process.engine.now
            call.end = process.engine.now
            call.operations = some
            self._between(call)

    def posts(self, process: Process, number: int) -> None:
        """A process posts messages of a collective call; 0 is a call without a number."""
        self._collectives[process] = number

    def executed(self, process: Process) -> None:
        """A process has executed its steps."""
        self._collectives.pop(process, None)
        if process in self._asleep:
            self._asleep.discard(process)
            assert self._events is not None
            self._events.wake(process)

    def enter(self, process: Process, number: int, context: Context) -> None:
        """A process enters a collective call."""
        self._entered = number
        if self._events is not None:
            self._events.enter(process, number, context.number)

    def sleeps(self, process: Process) -> None:
        """A process sleeps until `executed`."""
        if self._events is not None:
            self._asleep.add(process)
            self._events.sleep(process)

    def follow(self, process: Process, number: int) -> None:
        """A process in the background executes a collective call."""
        self._background[process] = number

    # Events of the kernel.

    def request_started(self, request: KernelRequest, process: Process, now: float) -> None:
        """A process starts a message."""
        if isinstance(request, Send) and not isinstance(request, Transfer):
            members = request.context.members
            if request.source >= len(members) or members[request.source].pid != process.pid:
                self._senders[request] = process.pid
        if process in self.started and process not in self._collectives:
            self.started[process].append(request)

    def message_matched(self, send: Send, receive: Receive, now: float) -> None:
        """A receive has got its message."""
        if self._match is not None and is_wild(receive):
            self._match(TracedMatch(receive.order, send.source, send.tag, send.nbytes))

    # Questions of the recorder of events (`Stage`).

    def kind_of(self, process: Process) -> int:
        """Whether a process is the main thread of a rank, another, or in the background."""
        if process in self._mains:
            return MAIN
        return BACKGROUND if process in self._background else THREAD

    def call_of(self, process: Process) -> int:
        """The number of the call that a process has begun last; 0 for none."""
        return self._calls.get(process, 0)

    def collective_of(self, process: Process) -> int:
        """The collective call whose messages a process posts now; 0 for none."""
        return self._background.get(process, 0) or self._collectives.get(process, 0)

    def entered(self) -> int:
        """The collective call that was entered last."""
        return self._entered

    def communicator(self, context: Context) -> int:
        """The number of the communicator of a context."""
        return self._contexts.get(context.number, 0)

    def is_internal(self, context: Context) -> bool:
        """Whether the tags of messages in a context are not the program's."""
        return context.number in self._internal

    def source(self, send: Send) -> int:
        """The rank of the run that has sent a message; an intercommunicator has two sides."""
        if send in self._senders:
            return self._senders.pop(send)
        return send.context.members[send.source].pid
