"""The recorder: hears of messages from the kernel and of calls from MPI, and passes them on."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING

from pysmpi.errors import UsageError
from pysmpi.kernel.process import Process
from pysmpi.kernel.requests import Receive, Request, Send, Transfer
from pysmpi.mpi.calls import MpiCall, Role
from pysmpi.output import OutputFile
from pysmpi.runtime.program_errors import shorten
from pysmpi.trace.events import Format, RankPlace, TracedCall, TracedMessage
from pysmpi.trace.formats import FORMATS

if TYPE_CHECKING:
    from pysmpi.mpi.base.ranks import Fiber, Rank
    from pysmpi.runtime.job import Job
    from pysmpi.runtime.simulation import Simulation


class Recorder:
    """Records one simulation in one format; a context manager.

    `start` attaches it to a simulation that has not run yet, `finish` completes the file. Leaving
    the context detaches it, whatever happened.

    Bytes belong to the call that moves them: those of a send to the call that starts it, those of
    a receive to the call that completes it. The messages of a non-blocking collective belong to
    the call that completes the operation.
    """

    def __init__(self, format: Format) -> None:
        self.format = format
        self.files: dict[str, str] = {}  # how to call the files of the program
        self.simulation: Simulation | None = None
        self._open: dict[Process, TracedCall] = {}  # the calls that threads are in
        # For the call of a thread, the requests that it may complete, each with its messages.
        self._waits: dict[Process, list[tuple[Request, list[Request]]]] = {}
        self._owed: dict[Request, list[int]] = {}  # bytes sent and received, until it is complete
        self._receives: dict[Request, TracedCall | Request] = {}  # who counts a posted receive
        self._departures: dict[int, float] = {}
        self._known = 0  # ranks that the format has heard of
        self._threads: dict[int, int] = {}

    def __enter__(self) -> Recorder:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._detach()
        self.format.close()

    def start(self, simulation: Simulation) -> None:
        """Listen to a simulation from now on."""
        self.simulation = simulation
        simulation.universe.listen(self)

    def finish(self) -> None:
        """The simulation is over: complete the file."""
        self._detach()
        simulation = self.simulation
        if simulation is not None:
            self._meet_ranks()
            self.format.end([outcome.date for outcome in simulation.outcomes])
        self.format.close()

    def _detach(self) -> None:
        if self.simulation is not None:
            self.simulation.universe.ignore(self)

    def _meet_ranks(self) -> None:
        """Tell the format of ranks that are new."""
        simulation = self.simulation
        assert simulation is not None
        ranks = simulation.universe.ranks
        if len(ranks) > self._known:
            new = ranks[self._known :]
            self._known = len(ranks)
            self.format.begin([RankPlace(rank.pid, rank.host_name()) for rank in new])

    def _thread_of(self, rank: Rank, fiber: Fiber | None) -> int:
        """The number of a thread in its rank: 0 for the main one, the others as they appear."""
        if fiber is None or fiber is rank.fiber:
            return 0
        number: int | None = getattr(fiber, "trace_number", None)
        if number is None:
            number = self._threads.get(rank.pid, 0) + 1
            self._threads[rank.pid] = number
            fiber.trace_number = number
        return number

    # What the boundary of calls tells.

    def call_begun(self, call: MpiCall) -> None:
        """A call has begun; its compute is billed."""
        rank = call.rank
        site = call.site
        if site is None:
            place = ""
        else:
            file = self.files.get(site[0])
            if file is None:
                file = self.files[site[0]] = shorten(site[0])
            place = f"{file}:{site[1]}"
        process = rank.process
        record = TracedCall(call.name, rank.pid, self._thread_of(rank, call.fiber), place)
        record.start = rank.engine.now + process.debt
        record.peers = tuple(_peers(call))
        self._open[process] = record
        waits = [
            (operation.request, operation.messages())
            for operation in call.operations
            if operation.request is not None
        ]
        if waits:
            self._waits[process] = waits

    def call_ended(self, call: MpiCall) -> None:
        """A call is over."""
        rank = call.rank
        process = rank.process
        record = self._open.pop(process, None)
        if record is None:
            return
        for request, messages in self._waits.pop(process, ()):
            if request.done:
                for message in messages:
                    sent, received = self._owed.pop(message, (0, 0))
                    record.sent += sent
                    record.received += received
        record.end = rank.engine.now + process.debt
        if record.rank >= self._known:
            self._meet_ranks()
        self.format.call(record)

    # What the kernel tells.

    def request_started(self, request: Request, process: Process, now: float) -> None:
        """A call, or an operation in the background, starts a message."""
        call: TracedCall | None = self._open.get(process)
        owner = process.purpose if call is None else None
        if isinstance(request, Transfer):
            other = request.context.members[request.source].pid != process.pid
            if call is not None and other:
                call.received += request.nbytes
            elif call is not None:
                call.sent += request.nbytes
        elif isinstance(request, Send):
            if call is not None:
                call.sent += request.nbytes
            elif owner is not None:
                self._owed.setdefault(owner, [0, 0])[0] += request.nbytes
        elif isinstance(request, Receive):
            if owner is not None:
                self._receives[request] = owner
            elif call is not None and (process.schedule is not None or request in process.waits):
                self._receives[request] = call

    def message_matched(self, send: Send, receive: Receive, now: float) -> None:
        """A receive has got its message."""
        nbytes = min(send.nbytes, receive.nbytes)
        owner = self._receives.pop(receive, receive)
        if isinstance(owner, TracedCall):
            owner.received += nbytes
        else:
            self._owed.setdefault(owner, [0, 0])[1] += nbytes

    def flow_started(self, send: Send, now: float) -> None:
        """The bytes of a message leave."""
        self._departures[send.order] = now

    def flow_ended(self, send: Send, now: float) -> None:
        """The last byte of a message has arrived."""
        source = self._source(send)
        destination = send.context.members[send.destination].pid
        if destination >= self._known or source >= self._known:
            self._meet_ranks()
        begun = self._departures.pop(send.order, now)
        self.format.transfer(
            TracedMessage(send.order, source, destination, send.tag, send.nbytes, begun, now)
        )

    def _source(self, send: Send) -> int:
        """The process that has sent a message; an intercommunicator has two sides."""
        assert self.simulation is not None
        communicator = self.simulation.universe.communicators.get(send.context.number)
        if communicator is not None and communicator.inter:
            source: int = communicator.remote.group[send.source]
            return source
        return send.context.members[send.source].pid


def _peers(call: MpiCall) -> Iterator[tuple[str, int]]:
    """The arguments that name another rank, as the program gave them."""
    roles = call.procedure.roles
    for name, value in call.arguments.items():
        if roles[name] in (Role.PEER, Role.ROOT) and type(value) is int:
            yield name, value


def recorder_for(name: str, path: str | None = None) -> Recorder:
    """A recorder in the format that the suffix of `name` says; it writes to `path`.

    `.json` and `.json.gz` are Chrome's trace format, `.csv` and `.csv.gz` a table of events; other
    distributions add their own (`pysmpi.trace.formats`).
    """
    base = os.path.basename(name).lower()
    plain = base.removesuffix(".gz")
    target = name if path is None else path
    for known in FORMATS:
        if plain.endswith(f".{known.name}"):
            return Recorder(known.open(target, base.endswith(".gz")))
    suffixes = [f".{known}{packed}" for known in FORMATS.names() for packed in ("", ".gz")]
    raise UsageError(
        f"--trace {name}: found no known suffix, expected "
        f"{', '.join(suffixes[:-1])} or {suffixes[-1]}"
    )


@contextmanager
def recording(job: Job, name: str | os.PathLike[str]) -> Iterator[Recorder]:
    """Record the timeline of a job that runs inside the context, in file `name`.

    Raises UsageError before the run if the file cannot be written; a run that ends with an
    exception, such as Ctrl-C, leaves no file.
    """
    name = os.fspath(name)
    with OutputFile("--trace", name) as target, recorder_for(name, target.path) as recorder:
        before = job.on_start

        def start(simulation: Simulation) -> None:
            if before is not None:
                before(simulation)
            recorder.start(simulation)

        job.on_start = start
        yield recorder
        recorder.finish()
        target.keep()
