"""The recorder: hears of messages from the kernel and of calls from MPI, and passes them on."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any

from pysmpi.errors import UsageError
from pysmpi.mpi.groups.communicator import Communicator
from pysmpi.output import OutputFile
from pysmpi.trace.calls import Instruments
from pysmpi.trace.events import Format, RankPlace, TracedCall, TracedMessage
from pysmpi.trace.formats import FORMATS

if TYPE_CHECKING:
    from pysmpi.kernel.requests import Send
    from pysmpi.mpi.base.ranks import Fiber
    from pysmpi.runtime.job import Job
    from pysmpi.runtime.simulation import Simulation


class Recorder:
    """Records one simulation in one format; a context manager.

    `start` attaches it to a simulation that has not run yet, `finish` completes the file. Leaving
    the context takes all hooks away, whatever happened.
    """

    def __init__(self, format: Format) -> None:
        self.format = format
        self.open: dict[int, TracedCall] = {}  # the calls that ranks are in
        self.files: dict[str, str] = {}  # how to call the files of the program
        self.simulation: Simulation | None = None
        self._instruments = Instruments()
        self._departures: dict[int, float] = {}
        self._cores: dict[int, Communicator] = {}  # by their contexts' numbers
        self._known = 0  # ranks that the format has heard of
        self._threads: dict[int, int] = {}
        self._restore: Callable[[], None] | None = None

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
        simulation.engine.listeners.add(self)
        self._instruments.install(self)
        self._watch_cores()

    def finish(self) -> None:
        """The simulation is over: complete the file."""
        self._detach()
        simulation = self.simulation
        if simulation is not None:
            self._meet_ranks()
            self.format.end([outcome.date for outcome in simulation.outcomes])
        self.format.close()

    def _detach(self) -> None:
        self._instruments.remove()
        if self.simulation is not None:
            self.simulation.engine.listeners.remove(self)
        if self._restore is not None:
            self._restore()
            self._restore = None

    def _watch_cores(self) -> None:
        """Learn to which communicator each context belongs: an intercommunicator has two sides."""
        cores = self._cores
        real = Communicator.__init__

        def remember(core: Communicator, *args: Any, **kwargs: Any) -> None:
            real(core, *args, **kwargs)
            cores[core.p2p.number] = cores[core.coll.number] = core

        Communicator.__init__ = remember  # type: ignore[method-assign, assignment]

        def restore() -> None:
            Communicator.__init__ = real  # type: ignore[method-assign]

        self._restore = restore

    def _meet_ranks(self) -> None:
        """Tell the format of ranks that are new."""
        simulation = self.simulation
        assert simulation is not None
        ranks = simulation.universe.ranks
        if len(ranks) > self._known:
            new = ranks[self._known :]
            self._known = len(ranks)
            self.format.begin([RankPlace(rank.pid, rank.host_name()) for rank in new])

    def thread_of(self, fiber: Fiber) -> int:
        """The number of a thread in its rank: 0 for the main one, the others as they appear."""
        if fiber is fiber.rank.fiber:
            return 0
        number: int | None = getattr(fiber, "trace_number", None)
        if number is None:
            number = self._threads.get(fiber.rank.pid, 0) + 1
            self._threads[fiber.rank.pid] = number
            fiber.trace_number = number
        return number

    def ended(self, call: TracedCall) -> None:
        """A call is over."""
        if call.rank >= self._known:
            self._meet_ranks()
        self.format.call(call)

    # What the kernel calls.

    def flow_started(self, send: Send, now: float) -> None:
        """The bytes of a message leave."""
        self._departures[send.order] = now
        call = self.open.get(self._source(send))
        if call is not None:
            call.sent += send.nbytes

    def flow_ended(self, send: Send, now: float) -> None:
        """The last byte of a message has arrived."""
        source = self._source(send)
        destination = send.context.members[send.destination].pid
        call = self.open.get(destination)
        if call is not None:
            call.received += send.nbytes
        if destination >= self._known or source >= self._known:
            self._meet_ranks()
        begun = self._departures.pop(send.order, now)
        self.format.transfer(
            TracedMessage(send.order, source, destination, send.tag, send.nbytes, begun, now)
        )

    def _source(self, send: Send) -> int:
        """The process that has sent a message; an intercommunicator has two sides."""
        core = self._cores.get(send.context.number)
        if core is not None and core.inter:
            source: int = core.remote.group[send.source]
            return source
        return send.context.members[send.source].pid


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
