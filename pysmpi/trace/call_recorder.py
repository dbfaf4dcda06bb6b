"""The recorder of calls: the kernel operations of each call of a program.

Compiled, because it hears of each call and of each message.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from greenlet import getcurrent

from pysmpi.collectives.call import arguments_of
from pysmpi.kernel.follower import Lead
from pysmpi.kernel.process import Process
from pysmpi.kernel.requests import Context, KernelRequest, Receive, Send, Transfer
from pysmpi.kernel.schedule import IRECV, RECV
from pysmpi.mpi.base.ranks import Fiber
from pysmpi.mpi.calls import MpiCall
from pysmpi.mpi.collective.schedules import of_rank
from pysmpi.mpi.groups.agreement import tag_of
from pysmpi.python.frames import shorten
from pysmpi.trace.call_arguments import ArgumentForm
from pysmpi.trace.collective_calls import CollectiveCalls
from pysmpi.trace.events import (
    BACKGROUND,
    COLLECTIVE,
    COMPUTE,
    LATE,
    MAIN,
    PASS,
    POST,
    PROBE,
    STEPS,
    THREAD,
    WAIT,
    Format,
    TracedCall,
)
from pysmpi.trace.recorded_world import RecordedWorld
from pysmpi.trace.started_requests import UNLIMITED, StartedRequests
from pysmpi.trace.thread_notes import ThreadNotes

if TYPE_CHECKING:
    from pysmpi.mpi.base.ranks import Rank
    from pysmpi.mpi.collective.contribution import Contribution
    from pysmpi.ranks.simulation import Simulation

# Times that differ by less than this (s) are equal, because dates are sums of floats.
_NOTHING = 1e-13


class CallRecorder:
    """Listens to a simulation, and passes on ranks, communicators and calls to `format`.

    Bytes belong to the call that moves them: those of a send to the call that starts it, those of
    a receive to the call that completes it. The messages of a non-blocking collective belong to
    the call that completes the operation.
    """

    def __init__(self, format: Format, simulation: Simulation) -> None:
        self.format: Any = format
        self.simulation: Any = simulation
        self._places: dict[Any, str] = {}  # lines of the program, as the format calls them
        self._forms: dict[Any, ArgumentForm] = {}  # of procedures
        self._threads: dict[Process, ThreadNotes] = {}
        self._counts: dict[int, int] = {}  # threads of each rank
        self._calls: int = 0
        self._owed: dict[KernelRequest, list[int]] = {}  # bytes, until it is complete
        self._counting: dict[KernelRequest, TracedCall | KernelRequest] = {}  # of posted receives
        self._senders: dict[KernelRequest, int] = {}  # that are no members of their contexts
        self._world: RecordedWorld = RecordedWorld(format, simulation)
        self._requests: StartedRequests = StartedRequests(format, self._world)
        self._collectives: CollectiveCalls = CollectiveCalls()
        self._entered: int = 0  # the collective call that was entered last
        self._background: dict[KernelRequest, tuple[int, int]] = {}  # collective call, MPI call
        self._contributions: dict[Any, tuple[KernelRequest, int]] = {}  # by Contribution
        self._between: Any = getattr(format, "between", None)

    def finish(self) -> None:
        """The simulation is over: pass on its last times."""
        self._world.meet_ranks()
        self._last_times(self.simulation)

    def _last_times(self, simulation: Simulation) -> None:
        """The time of each rank after its last call."""
        if self._between is None:
            return
        for rank, outcome in enumerate(simulation.outcomes):
            process = simulation.universe.processes[rank]
            thread = self._threads.get(process)
            last = 0.0 if thread is None else thread.last
            if outcome.time > last + _NOTHING:
                record = TracedCall("", rank, 0, "")
                self._calls += 1
                record.number = self._calls
                # The last compute of a rank is not billed before its end.
                compute = min(process.debt, outcome.time - last)
                if outcome.time - compute > last + _NOTHING:
                    record.operations.append((PASS, outcome.time - compute - last))
                if compute > 0.0:
                    record.operations.append((COMPUTE, compute))
                record.start = record.end = outcome.time
                self._between(record)

    def _thread(self, process: Process) -> ThreadNotes:
        """The notes on the thread of a process: 0 for the main one, others as they appear."""
        thread = self._threads.get(process)
        if thread is None:
            number = 0
            if process is not self.simulation.universe.processes[process.pid]:
                number = self._counts[process.pid] = self._counts.get(process.pid, 0) + 1
            thread = self._threads[process] = ThreadNotes(process.pid, number)
        return thread

    # Events of the boundary of calls.

    def call_begun(self, call: MpiCall) -> None:
        """A call has begun; its compute is billed."""
        rank = call.rank
        site = call.site
        place = self._places.get(site)
        if place is None:
            place = "" if site is None else f"{shorten(site.file)}:{site.line}"
            self._places[site] = place
        procedure = call.procedure
        form = self._forms.get(procedure)
        if form is None:
            form = self._forms[procedure] = ArgumentForm(procedure)
        process: Process = rank.process
        thread = self._thread(process)
        now = process.engine.now
        if now > thread.last + _NOTHING and thread.call is None:
            self._blank(thread, now)
        record = TracedCall(form.name, process.pid, thread.number, place)
        self._calls += 1
        record.number = self._calls
        record.start = now + process.debt
        values: tuple[Any, ...] = call.values
        if form.peers:
            record.peers = form.ranks(values)
        for value in values:
            if value.__class__ is list or value.__class__ is tuple:
                datatypes = form.datatypes(values)
                if datatypes:
                    record.details["datatypes"] = datatypes
                break
        outer = thread.call
        if outer is not None:
            if outer.name:
                thread.outer.append(outer)  # a function of the program runs inside a call
            else:
                record.operations = outer.operations
        thread.call = record
        thread.entered = None
        if form.requests or call.handles is not None:
            handles = self._handles(call)
            if handles:
                thread.awaited = handles

    def _blank(self, thread: ThreadNotes, now: float) -> None:
        """Time has passed between two calls of a thread: a sleep."""
        self._calls += 1
        if self._between is not None:
            if thread.rank >= self._world.known:
                self._world.meet_ranks()
            record = TracedCall("", thread.rank, thread.number, "")
            record.number = self._calls
            record.start, record.end = thread.last, now
            record.operations.append((PASS, now - thread.last))
            self._between(record)
        thread.last = now

    def _handles(self, call: MpiCall) -> list[tuple[Any, list[Any], int, Any]]:
        """The active requests among the arguments of a call."""
        found = []
        for operation in call.operations:
            request = operation.request
            if request is not None:
                contribution = getattr(operation, "contribution", None)
                number = 0
                if contribution is not None and contribution in self._contributions:
                    number = -self._contributions[contribution][1]
                found.append((request, list(operation.messages()), number, operation))
        return found

    def call_ended(self, call: MpiCall) -> None:
        """A call is over."""
        rank = call.rank
        process = rank.process
        thread = self._threads.get(process)
        if thread is None:
            return
        record = thread.call
        if record is None:
            return
        thread.call = thread.outer.pop() if thread.outer else None
        if thread.late or thread.favours:
            thread.call, outer = record, thread.call
            self._posted(thread, record.operations)
            thread.call = outer
        if thread.awaited:
            self._complete(thread, record, call)
        now = rank.engine.now
        record.end = now + process.debt
        if now > thread.last + _NOTHING:
            record.operations.append((PASS, now - thread.last))
            thread.last = now
        if record.rank >= self._world.known:
            self._world.meet_ranks()
        self.format.call(record)

    def _complete(self, thread: ThreadNotes, record: TracedCall, call: MpiCall) -> None:
        """The requests that a call has completed: their bytes, and waits that took no time."""
        awaited, thread.awaited = thread.awaited, []
        waited: set[int] = set()
        for one in record.operations:
            if one[0] == WAIT and one[2]:
                waited.update(one[1])
        active = None
        rest: list[int] = []
        for request, messages, number, operation in awaited:
            if not request.done:
                continue
            for message in messages:
                sent, received = self._owed.pop(message, (0, 0))
                record.sent += sent
                record.received += received
            if active is None:
                active = {
                    id(other) for other in call.operations if not getattr(other, "persistent", 0)
                }
            if id(operation) in active:
                continue  # Waitany has reported another one
            if number:
                self._contributions.pop(operation.contribution, None)
                self._background.pop(request, None)
                numbers = [number]
            else:
                numbers = [message.order for message in messages if message.order]
            rest += [number for number in numbers if number not in waited]
        if rest:
            record.operations.append((WAIT, rest, True))

    # Events of the kernel about programs.

    def program_begun(self, process: Process, now: float) -> None:
        """A thread of a rank begins operations of the kernel."""
        thread = self._thread(process)
        record = thread.call
        if record is None:
            record = thread.call = TracedCall("", process.pid, thread.number, "")
            self._calls += 1
            record.number = self._calls
            record.start = now + process.debt
        operations = record.operations
        if now > thread.last + _NOTHING:
            operations.append((PASS, now - thread.last))
        thread.begun = now
        thread.debt = process.debt
        if process.debt > 0.0:
            operations.append((COMPUTE, process.debt))
        thread.starts = process.starts
        thread.waits = process.waits
        thread.all = process.all
        schedule = process.schedule
        if schedule is not None:
            context = process.context
            assert context is not None
            self._world.enter(record, context)
            entered = thread.entered
            if entered is not None:
                thread.entered = None
                number, arguments = entered
                thread.posts = number
                operations.append(
                    (COLLECTIVE, number, context.number, process.tag, False, arguments)
                )
            else:
                sizes = schedule.sizes
                if sizes and max(sizes) >= UNLIMITED:
                    thread.received = []
                    sizes = list(sizes)
                operations.append(
                    (STEPS, context.number, process.rank, process.tag, schedule.codes,
                     schedule.peers, sizes, schedule.tags, schedule.amounts)
                )  # fmt: skip

    def program_ended(self, process: Process, now: float) -> None:
        """The operations of a thread have ended."""
        thread = self._threads.get(process)
        if thread is None or thread.call is None:
            return
        record = thread.call
        operations = record.operations
        if thread.received is not None:
            _learn_sizes(operations[-1], thread.received)
            thread.received = None
        if thread.late or thread.favours:
            self._posted(thread, operations)
        for request in thread.starts:
            self._requests.start(record, request, operations)
        if thread.waits:
            self._waited(thread, process, now, operations)
        thread.starts = thread.waits = []
        thread.posts = 0
        thread.last = now
        if not record.name:
            thread.call = None
            record.end = now
            if record.start > now or len(operations) == 1 and operations[0][0] == COMPUTE:
                record.start = now
            if self._between is not None:
                if record.rank >= self._world.known:
                    self._world.meet_ranks()
                self._between(record)

    def _posted(self, thread: ThreadNotes, operations: list[Any]) -> None:
        """The requests posted in the name of a thread, and those that it has posted for others."""
        if thread.favours:
            operations += [(POST, request.order) for request in thread.favours]
            thread.favours = []
        late, thread.late = thread.late, []
        record = thread.call
        assert record is not None
        for request in late:
            if request in thread.foreign:
                thread.foreign.discard(request)
                operations.append((LATE, request.order))
            self._requests.start(record, request, operations)
            if isinstance(request, Send):
                record.sent += request.nbytes

    def _waited(
        self, thread: ThreadNotes, process: Process, now: float, operations: list[Any]
    ) -> None:
        """The waits of a program."""
        numbers: list[int] = []
        for request in thread.waits:
            if isinstance(request, Lead):
                return  # the operation in the background begins with it
            if isinstance(request, Receive):
                message = request.message
                if message is not None and message.unexpected:
                    assert thread.call is not None
                    self._world.enter(thread.call, request.context)
                    operations.append(
                        (PROBE, request.context.number, message.source, request.destination,
                         message.tag)
                    )  # fmt: skip
                    return
                if thread.all and request in self._owed:
                    assert thread.call is not None
                    thread.call.received += self._owed.pop(request)[1]
            if request.order:
                numbers.append(request.order)
                continue
            for joint, messages, number, operation in thread.awaited:
                if joint is request:
                    if not messages and not number:
                        # Messages of a partitioned operation whose other side came later.
                        messages += operation.messages()
                    numbers += [number] if number else [m.order for m in messages if m.order]
                    break
        if numbers:
            operations.append((WAIT, numbers, thread.all))
        else:
            seconds = now - thread.begun - thread.debt
            if seconds > _NOTHING:
                operations.append((PASS, seconds))

    # Events of collective calls.

    def collective_entered(self, contribution: Contribution, rank: Rank) -> None:
        """A rank enters a collective operation."""
        communicator, call = contribution.communicator, of_rank(contribution.call, contribution.me)
        thread = self._thread(rank.process)
        record = thread.call
        context = contribution.context or communicator.coll
        number = self._collectives.number(contribution, context, self._calls + 1)
        self._calls = max(self._calls, number)
        self._entered = number
        if communicator.remote is not communicator:
            return  # recorded by its steps
        if self._collectives.decides(call):
            return
        arguments = arguments_of(call)
        background = contribution.request is not None
        number_of = self._world.communicator(context)
        if record is None:
            return
        record.communicator = record.communicator or number_of
        record.algorithm = self._collectives.algorithm(
            call, context, self.simulation.universe.selection
        )
        if not background:
            if communicator.size > 1 or call.op.startswith("neighbor"):
                thread.entered = number, arguments
            return
        assert contribution.request is not None
        self._background[contribution.request] = number, record.number
        self._contributions[contribution] = contribution.request, number
        tag = tag_of(abs(contribution.number), contribution.label)
        record.operations.append((COLLECTIVE, number, context.number, tag, True, arguments))

    def collective_left(self, contribution: Contribution, rank: Rank) -> None:
        """The rank has its result."""
        if contribution.request is not None:
            known = self._contributions.get(contribution)
            if known is not None:
                self._background.pop(known[0], None)

    # Events of windows and files.

    def epoch_opened(self, window: object, rank: Rank, kind: str, peers: tuple[int, ...]) -> None:
        """An epoch begins."""
        self._note(rank, "epochs", ["open", kind, list(peers)])

    def epoch_closed(self, window: object, rank: Rank, kind: str, peers: tuple[int, ...]) -> None:
        """An epoch ends."""
        self._note(rank, "epochs", ["close", kind, list(peers)])

    def file_accessed(self, file: Any, rank: Rank, kind: str, offset: int, nbytes: int) -> None:
        """Bytes of a file were read or written."""
        self._note(rank, "files", [os.fspath(file.storage.path), kind, offset, nbytes])

    def _note(self, rank: Rank, name: str, value: object) -> None:
        """Keep a detail of the call that the rank is in."""
        thread = self._threads.get(rank.process)
        if thread is not None and thread.call is not None:
            thread.call.details.setdefault(name, []).append(value)

    # Events of the kernel about messages.

    def requests_joined(self, request: KernelRequest, parts: list[KernelRequest]) -> None:
        """A request consists of parts, which are started one by one."""
        self._requests.join(parts)

    def request_started(self, request: KernelRequest, process: Process, now: float) -> None:
        """A call, or an operation in the background, starts a message."""
        owner = process.purpose
        call: TracedCall | None = None
        if owner is None:
            thread = self._threads.get(process)
            if thread is not None:
                call = thread.call
                if thread.received is not None and isinstance(request, Receive):
                    thread.received.append(request)
                if call is not None and not call.name:
                    call = None
        if isinstance(request, Send) and not isinstance(request, Transfer):
            members = request.context.members
            source = request.source
            if source >= len(members) or members[source].pid != process.pid:
                self._senders[request] = process.pid
        if isinstance(request, Transfer):
            other = request.context.members[request.source].pid != process.pid
            if call is not None and other:
                call.received += request.nbytes
            elif call is not None:
                call.sent += request.nbytes
        elif owner is None and self._is_late(process, request):
            thread = self._thread(process)
            thread.late.append(request)
            fiber = getcurrent()
            if isinstance(fiber, Fiber) and fiber.process is not process:
                thread.foreign.add(request)
                self._thread(fiber.process).favours.append(request)
        elif isinstance(request, Send):
            if call is not None:
                call.sent += request.nbytes
            elif owner is not None:
                self._owed.setdefault(owner, [0, 0])[0] += request.nbytes
        elif isinstance(request, Receive):
            if owner is not None:
                self._counting[request] = owner
            elif call is not None:
                if process.schedule is not None or request in process.waits:
                    self._counting[request] = call

    def _is_late(self, process: Process, request: KernelRequest) -> bool:
        """Whether a request does not belong to the program of its process."""
        if process.schedule is not None:
            return False
        last = process.next_start - 1
        return last < 0 or process.starts[last] is not request

    def request_completed(self, request: KernelRequest, now: float) -> None:
        """A send or receive is complete, perhaps without a message."""
        self._counting.pop(request, None)
        self._requests.forget(request)

    def message_matched(self, send: Send, receive: Receive, now: float) -> None:
        """A receive has got its message."""
        nbytes = min(send.nbytes, receive.nbytes)
        owner = self._counting.pop(receive, receive)
        self._requests.match(send, receive)
        if isinstance(owner, TracedCall):
            owner.received += nbytes
        else:
            self._owed.setdefault(owner, [0, 0])[1] += nbytes

    # Questions of the recorder of events (`Stage`).

    def communicator(self, context: Context) -> int:
        """The communicator of a context; the format has heard of it."""
        return self._world.communicator(context)

    def is_internal(self, context: Context) -> bool:
        """Whether the tags of messages in a context are not the program's."""
        return self._world.is_internal(context)

    def kind_of(self, process: Process) -> int:
        """Whether a process is the main thread of a rank, another, or in the background."""
        simulation = self.simulation
        if simulation.universe.processes[process.pid] is process:
            return MAIN
        threads = simulation.threads.get(process.pid, ())
        if process.purpose is None and any(fiber.process is process for fiber in threads):
            return THREAD
        return BACKGROUND

    def call_of(self, process: Process) -> int:
        """The number of the call that a process has begun last; 0 for none."""
        thread = self._threads.get(process)
        return thread.call.number if thread is not None and thread.call is not None else 0

    def collective_of(self, process: Process) -> int:
        """The collective call whose messages a process posts now; 0 for none."""
        if process.purpose is not None:
            return self._background.get(process.purpose, (0, 0))[0]
        thread = self._threads.get(process)
        return 0 if thread is None else thread.posts

    def entered(self) -> int:
        """The collective call that was entered last."""
        return self._entered

    def source(self, send: Send) -> int:
        """The process that has sent a message; an intercommunicator has two sides."""
        sender = self._senders.pop(send, -1) if self._senders else -1
        return sender if sender >= 0 else send.context.members[send.source].pid


def _learn_sizes(operation: tuple[Any, ...], receives: list[Receive]) -> None:
    """Give the receives of recorded steps the sizes of the messages that they got."""
    codes, sizes = operation[4], operation[6]
    steps = [i for i, code in enumerate(codes) if code == RECV or code == IRECV]
    for i, receive in zip(steps, receives):
        if receive.message is not None:
            sizes[i] = receive.message.nbytes
