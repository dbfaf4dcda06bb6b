"""The record of a run for analyses: the events of ranks and messages as rows of numbers.

An `ActivityRecorder` listens to a simulation and collects rows in the order in which they happen,
so a row never depends on a later one. `Record` holds the finished rows, and is saved as a file of
numpy (`.npz`).
"""

from __future__ import annotations

import json
import zipfile
import zlib
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, Final

import numpy as np
from greenlet import getcurrent
from numpy.typing import NDArray

from pysmpi.errors import UsageError
from pysmpi.frames import shorten
from pysmpi.kernel.process import Process
from pysmpi.kernel.requests import Envelope, Receive, Request, Send
from pysmpi.mpi.base.ranks import Fiber
from pysmpi.mpi.calls import MpiCall

if TYPE_CHECKING:
    from pysmpi.mpi.base.ranks import Rank
    from pysmpi.runtime.job import Job
    from pysmpi.runtime.result import Result
    from pysmpi.runtime.simulation import Simulation

# Version of the files: increased when the meaning of a column changes.
VERSION: Final = 1

# Kinds of rows, with the meaning of the columns a, b and x.
PROCESS: Final = 0  # a: rank, b: MAIN, THREAD or BACKGROUND; the first event of a process
CALL: Final = 1  # a call begins; a: its call site
RETURN: Final = 2  # the call ends; a: its call site
SEND: Final = 3  # a: message, b: bytes, x: start cost (s)
RECEIVE: Final = 4  # a: receive, b: bytes of its buffer
MATCH: Final = 5  # a: message, b: receive
DEPART: Final = 6  # the transfer starts; a: message, b: latency (s), x: seconds without contention
ARRIVE: Final = 7  # the transfer ends; a: message
COMPLETE: Final = 8  # a request is complete; a: message or receive
WAIT: Final = 9  # a: 1 waits for all, 0 for one; b: number of AWAITED rows that follow
AWAITED: Final = 10  # a: message or receive; or -1 - b for the process b in the background
RESUME: Final = 11  # the wait ends; a: as AWAITED, 0 for none; b: process that caused it, or -1
END: Final = 12  # the program of a rank ends
ENTER: Final = 13  # a rank enters a collective; a: communicator, b: number of the call in it

MAIN, THREAD, BACKGROUND = 0, 1, 2

EAGER, DETACHED = 1, 2

COLUMNS: Final = 6  # kind, process, date (s), a, b, x
MESSAGE_COLUMNS: Final = 7
SITE_PARTS: Final = 5  # name of the call, file, line, function, kind

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass
class Record:
    """A recorded run.

    `kind`, `process`, `date` (s), `a`, `b`, `x` are the columns of the events. `messages` has a row
    for each message: its number, the ranks that send and receive it, tag, bytes, the number of its
    route, and its mode: EAGER, DETACHED, both or neither. `about` describes the run: `result` (see
    `Result.report`), `sites` (name of the call, file, line, function, kind), `routes` (numbers of
    links), `links` (name and bytes/s), `hosts` of the ranks, and `cores` of the hosts.
    """

    kind: Integers
    process: Integers
    date: Floats
    a: Integers
    b: Floats
    x: Floats
    messages: Integers
    about: dict[str, Any]

    @property
    def seconds(self) -> float:
        """The makespan: when the last rank ends (simulated s)."""
        ends = self.date[self.kind == END]
        return float(ends.max()) if len(ends) else 0.0

    @property
    def ranks(self) -> int:
        """The number of ranks."""
        return len(self.about["hosts"])

    def site(self, number: int) -> str:
        """A call site in the form `Allreduce at cg.py:310`."""
        name, file, line = self.about["sites"][number][:3]
        return f"{name} at {file}:{line}" if file else name

    def save(self, path: str) -> None:
        """Write the record to a file."""
        with open(path, "wb") as stream:
            self.write(stream)

    def write(self, stream: IO[bytes]) -> None:
        """Write the record to a binary stream."""
        about = json.dumps({"version": VERSION, **self.about})
        np.savez_compressed(
            stream,
            kind=self.kind.astype(np.uint8),
            process=self.process.astype(np.int32),
            date=self.date,
            a=self.a,
            b=self.b,
            x=self.x,
            messages=self.messages,
            about=np.frombuffer(about.encode(), np.uint8),
        )


def load(path: str) -> Record:
    """Read a record; raises UsageError if the file is none."""
    expected = "expected a record that pysmpi run --trace FILE.npz wrote"
    try:
        with np.load(path, allow_pickle=False) as file:
            about = json.loads(bytes(file["about"]).decode())
            columns = {
                name: file[name] for name in ("kind", "process", "date", "a", "b", "x", "messages")
            }
    except OSError as error:
        if error.strerror is None:
            raise UsageError(f"{path}: found another kind of file, {expected}") from None
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error,
            AttributeError, TypeError, NotImplementedError, MemoryError):  # fmt: skip
        raise UsageError(f"{path}: found another kind of file or a part, {expected}") from None
    version = about.pop("version", None) if isinstance(about, dict) else None
    if version != VERSION:
        raise UsageError(f"{path}: found version {version!r} of records, expected {VERSION}")
    record = Record(
        columns["kind"].astype(np.int64),
        columns["process"].astype(np.int64),
        columns["date"].astype(np.float64),
        columns["a"].astype(np.int64),
        columns["b"].astype(np.float64),
        columns["x"].astype(np.float64),
        columns["messages"].astype(np.int64),
        about,
    )
    _check(record, path)
    return record


def _check(record: Record, path: str) -> None:
    """Refuse columns that do not belong together, and numbers out of range."""
    count = len(record.kind)
    for name in ("process", "date", "a", "b", "x"):
        if getattr(record, name).shape != (count,):
            raise UsageError(f"{path}: found column {name} of another length than {count} rows")
    if record.messages.ndim != 2 or record.messages.shape[1] != MESSAGE_COLUMNS:
        raise UsageError(f"{path}: found messages without their {MESSAGE_COLUMNS} columns")
    known = {"result": dict, "sites": list, "routes": list, "links": list, "hosts": list}
    for key, kind in known.items():
        if not isinstance(record.about.get(key), kind):
            raise UsageError(f"{path}: found no {key} of the run, expected a {kind.__name__}")
    for site in record.about["sites"]:
        if not (isinstance(site, list) and len(site) == SITE_PARTS):
            raise UsageError(f"{path}: found call site {site!r}, expected {SITE_PARTS} parts")


    calls = np.isin(record.kind, (CALL, RETURN))
    routes = record.messages[:, 5]
    for what, numbers, most in (
        ("kind of row", record.kind, ENTER),
        ("call site", record.a[calls], len(record.about["sites"]) - 1),
        ("rank", record.a[record.kind == PROCESS], record.ranks - 1),
        ("rank", record.messages[:, 1:3], record.ranks - 1),
        ("route", routes, len(record.about["routes"]) - 1),
    ):
        if numbers.size and not (0 <= numbers.min() and numbers.max() <= most):
            raise UsageError(f"{path}: found a {what} out of range, expected 0 to {most}")
    if not np.isfinite(record.date).all():
        raise UsageError(f"{path}: found a date that is no number")


class ActivityRecorder:
    """Collects the events of one simulation. `start` attaches it, `finish` gives the record."""

    def __init__(self) -> None:
        self.rows = array("d")
        self.messages = array("q")
        self.simulation: Simulation | None = None
        self._processes: dict[Process, int] = {}
        # Of the requests of processes in the background.
        self._purposes: dict[Request, int] = {}
        self._sites: dict[tuple[str, str, int, str, str], int] = {}
        self._routes: dict[tuple[int, ...], int] = {}
        self._links: dict[int, tuple[int, Any]] = {}
        self._files: dict[str, str] = {}
        self._open: dict[Process, int] = {}
        self._arrived = (0, -1.0)  # the latest arrival: message, date

    def start(self, simulation: Simulation) -> None:
        """Listen to a simulation that has not begun."""
        self.simulation = simulation
        simulation.universe.listen(self)

    def detach(self) -> None:
        """Listen no more."""
        if self.simulation is not None:
            self.simulation.universe.ignore(self)

    def finish(self, result: Result) -> Record:
        """The simulation is over."""
        self.detach()
        simulation = self.simulation
        assert simulation is not None
        for rank, process, outcome in zip(
            simulation.universe.ranks, simulation.universe.processes, simulation.outcomes
        ):
            number = self._processes.get(process)
            if number is None:
                number = self._meet(process, rank.pid, MAIN, 0.0)
            self.rows.extend((END, number, outcome.date, 0, 0, 0))
        table = np.frombuffer(self.rows, np.float64).reshape(-1, COLUMNS)
        sites = [list(site) for site in self._sites]
        links = [[one.name, one.capacity] for _, one in self._links.values()]
        routes = [[self._links[link][0] for link in route] for route in self._routes]
        hosts = [rank.host_name() for rank in simulation.universe.ranks]
        cores = {
            host.name: host.cores
            for rank in simulation.universe.ranks
            if (host := rank.host) is not None
        }
        about = {
            "result": result.report(),
            "sites": sites,
            "links": links,
            "routes": routes,
            "hosts": hosts,
            "cores": cores,
        }
        return Record(
            table[:, 0].astype(np.int64),
            table[:, 1].astype(np.int64),
            table[:, 2].copy(),
            table[:, 3].astype(np.int64),
            table[:, 4].copy(),
            table[:, 5].copy(),
            np.frombuffer(self.messages, np.int64).reshape(-1, MESSAGE_COLUMNS).copy(),
            about,
        )

    def _number(self, process: Process, now: float) -> int:
        """The number of a process, which is new if it has not been heard of."""
        number = self._processes.get(process)
        if number is None:
            assert self.simulation is not None
            universe = self.simulation.universe
            if universe.processes[process.pid] is process:
                kind = MAIN
            elif process.purpose is not None or not self._is_thread(process):
                kind = BACKGROUND
            else:
                kind = THREAD
            number = self._meet(process, process.pid, kind, 0.0 if kind == MAIN else now)
            if process.purpose is not None:
                self._purposes[process.purpose] = number
        return number

    def _is_thread(self, process: Process) -> bool:
        assert self.simulation is not None
        threads = self.simulation.threads.get(process.pid, ())
        return any(fiber.process is process for fiber in threads)

    def _meet(self, process: Process, pid: int, kind: int, now: float) -> int:
        number = self._processes[process] = len(self._processes) + 1
        self.rows.extend((PROCESS, number, now, pid, kind, 0))
        return number

    # What the boundary of calls tells.

    def call_begun(self, call: MpiCall) -> None:
        """A call has begun; its compute is billed."""
        rank = call.rank
        process = rank.process
        place = call.site
        if place is None:
            key = call.name, "", 0, "", call.kind.value
        else:
            file = self._files.get(place[0])
            if file is None:
                file = self._files[place[0]] = shorten(place[0])
            key = call.name, file, place[1], place[2], call.kind.value
        sites = self._sites
        site = sites.get(key)
        if site is None:
            site = sites[key] = len(sites)
        self._open[process] = site
        now = rank.engine.now
        number = self._processes.get(process) or self._number(process, now)
        self.rows.extend((CALL, number, now + process.debt, site, 0, 0))

    def call_ended(self, call: MpiCall) -> None:
        """A call is over."""
        rank = call.rank
        process = rank.process
        site = self._open.pop(process, None)
        if site is not None:
            date = rank.engine.now + process.debt
            self.rows.extend((RETURN, self._processes[process], date, site, 0, 0))

    def collective_entered(self, contribution: Any, rank: Rank) -> None:
        """A rank enters a collective operation."""
        process = rank.process
        now = rank.engine.now + process.debt
        number = self._processes.get(process) or self._number(process, now)
        core = contribution.core
        context = min(core.coll.number, core.remote.coll.number)
        self.rows.extend((ENTER, number, now, context, contribution.number, 0))

    # What the kernel tells.

    def request_started(self, request: Request, process: Process, now: float) -> None:
        """A process starts a message; its number is that of its posting, which follows."""
        number = self._processes.get(process) or self._number(process, now)
        order = process.engine.order + 1
        if isinstance(request, Send):
            self.rows.extend((SEND, number, now, order, request.nbytes, request.start_cost))
        elif isinstance(request, Receive):
            self.rows.extend((RECEIVE, number, now, order, request.nbytes, 0))

    def message_matched(self, send: Send, receive: Receive, now: float) -> None:
        """A message and a receive match."""
        self.rows.extend((MATCH, 0, now, send.order, receive.order, 0))

    def flow_started(self, send: Send, now: float) -> None:
        """The bytes of a message leave."""
        plan = send.plan
        assert plan is not None
        constraints = plan.constraints
        key = tuple(map(id, constraints))
        route = self._routes.get(key)
        if route is None:
            route = self._routes[key] = len(self._routes)
            for one in constraints:
                self._links.setdefault(id(one), (len(self._links), one))
        if plan.gap is not None:
            alone = plan.gap.last
        else:
            rate = plan.bound
            for one, weight in zip(constraints, plan.weights):
                rate = min(rate, one.capacity / weight)
            alone = plan.volume / plan.factor / rate
        self.rows.extend((DEPART, 0, now, send.order, plan.latency, alone))
        members = send.context.members
        source = members[send.source].pid
        assert self.simulation is not None
        communicator = self.simulation.universe.communicators.get(send.context.number)
        if communicator is not None and communicator.inter:
            source = communicator.remote.group[send.source]
        destination = members[send.destination].pid
        mode = (EAGER if send.eager else 0) | (DETACHED if send.detached else 0)
        self.messages.extend((send.order, source, destination, send.tag, send.nbytes, route, mode))

    def flow_ended(self, send: Send, now: float) -> None:
        """The last byte of a message has arrived."""
        self._arrived = send.order, now
        self.rows.extend((ARRIVE, 0, now, send.order, 0, 0))

    def request_completed(self, request: Request, now: float) -> None:
        """A message or a receive is complete."""
        if isinstance(request, Envelope):
            self.rows.extend((COMPLETE, 0, now, request.order, 0, 0))

    def wait_begun(
        self, process: Process, requests: list[Request], all: bool, now: float
    ) -> None:
        """A process waits."""
        number = self._processes.get(process) or self._number(process, now)
        awaited = []
        for request in requests:
            if isinstance(request, Envelope):
                awaited.append(request.order)
            else:
                purpose = self._purposes.get(request)
                if purpose is not None:
                    awaited.append(-1 - purpose)
        extend = self.rows.extend
        extend((WAIT, number, now, 1 if all else 0, len(awaited), 0))
        for one in awaited:
            extend((AWAITED, number, now, one, 0, 0))

    def wait_ended(self, process: Process, request: Request, now: float) -> None:
        """A process may continue."""
        number = self._processes.get(process) or self._number(process, now)
        cause, by = 0, -1
        if isinstance(request, Envelope):
            cause = request.order
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
        self.rows.extend((RESUME, number, now, cause, by, 0))


@contextmanager
def observing(job: Job) -> Iterator[ActivityRecorder]:
    """Record the activity of a job that runs inside the context."""
    recorder = ActivityRecorder()
    before = job.on_start

    def start(simulation: Simulation) -> None:
        if before is not None:
            before(simulation)
        recorder.start(simulation)

    job.on_start = start
    try:
        yield recorder
    finally:
        job.on_start = before
        recorder.detach()
