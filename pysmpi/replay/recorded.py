"""Replay of recordings of pysmpi (docs/traces.md): the kernel executes the operations of threads.

A recording holds the kernel operations of each call, so that a replay on the machine of the
recording takes the same time. On another machine, compute takes as many flops, collective calls use
the algorithms that are selected there, and other time passes unchanged.

The file is read once, from its begin to its end. It is in the order of time, so the calls of a
thread are needed soon after they are read; those that are needed later wait in a queue.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pysmpi.collectives.cache import schedule_with_ready
from pysmpi.collectives.call import Call, fields_of
from pysmpi.collectives.layout import Nodes
from pysmpi.errors import UsageError
from pysmpi.kernel.process import Process
from pysmpi.kernel.requests import Context, Receive, Send
from pysmpi.kernel.schedule import Schedule
from pysmpi.replay.recorded_player import RecordedPlayer
from pysmpi.trace.recorded_lines import Wrong, read_facts, whole_lines

if TYPE_CHECKING:
    from pysmpi.collectives.selection import Selection
    from pysmpi.replay.recorder import ReplayRecorder

# Of a thread: the line, the operations of a call, and its record if the replay is recorded.
_Operations = deque[tuple[int, list[object], list[object]]]
_NO_RECORD: list[Any] = []


class RecordedTrace:
    """A recording that is being read: the operations of each thread, by rank and thread."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.number = 0  # of the line
        self.facts = read_facts(name)
        self.speeds: list[float] = []  # of the cores of the ranks (flop/s)
        self.members: dict[int, tuple[int, ...]] = {}  # of contexts
        self.sources: dict[int, tuple[int, ...]] = {}  # of contexts with messages of others
        self.communicators: dict[int, int] = {}  # of contexts
        self.names: dict[int, str] = {}  # of communicators, by context
        self.sites: dict[int, str] = {}
        self.observed = False  # whether the replay is recorded: whole calls are kept
        self.matches: dict[int, tuple[int, int, int]] = {}
        self.complete = False
        self.left: dict[tuple[int, int], _Operations] = {}
        self.on_thread: Callable[[int, int], None] | None = None
        self._lines = enumerate(whole_lines(name), 1)
        next(self._lines)
        # Ranks come first; those that a program starts later come when they are started.
        # `_rank_speeds` has the speeds of their cores before their lines are read; 0.0 if unknown.
        self.core_speeds = self._rank_speeds()
        self.nprocs = len(self.core_speeds)

    def _rank_speeds(self) -> list[float]:
        """The core speed of each rank: a pass over the file, as programs may start more ranks."""
        found: list[float] = []
        for line in whole_lines(self.name):
            if line.startswith(b'["rank",'):
                try:
                    found.append(float(json.loads(line)[4]))
                except (ValueError, TypeError, IndexError, KeyError, RecursionError):
                    found.append(0.0)  # the error comes when the line is read
        if not found:
            raise UsageError(f"{self.name}: expected a recording of pysmpi, got no rank")
        return found

    def next(self, rank: int, thread: int) -> tuple[int, list[Any], list[Any]] | None:
        """The line and the operations of the next call of a thread; None after the last."""
        queue = self.left.get((rank, thread))
        while not queue:
            if not self.read():
                return None
            queue = self.left.get((rank, thread))
        return queue.popleft()

    def match(self, receive: int) -> tuple[int, int, int] | None:
        """The source, tag and bytes of the message of a receive with a wildcard, if it got one."""
        while receive not in self.matches:
            if not self.read():
                return None
        return self.matches.pop(receive)

    def read(self) -> bool:
        """Read a line; False at the end."""
        for number, line in self._lines:
            self.number = number
            kind = line[2:6]
            if kind == b"even" or kind == b"mess" or kind == b"rout":
                continue
            try:
                self._take(json.loads(line))
            except Wrong as error:
                raise UsageError(f"{self.name}, line {number}: {error}") from None
            except (ValueError, TypeError, IndexError, KeyError, RecursionError) as error:
                what = line[:60].decode("utf-8", "replace")
                raise UsageError(
                    f"{self.name}, line {number}: expected a record of a recording, got {what!r}"
                ) from error
            return True
        return False

    def _take(self, record: list[Any]) -> None:
        kind = record[0]
        if kind == "call":
            rank, thread, operations = record[2], record[3], record[13]
            if not 0 <= rank < self.nprocs:
                raise Wrong(f"rank: expected 0 to {self.nprocs - 1}")
            queue = self.left.get((rank, thread))
            if queue is None:
                queue = self.left[rank, thread] = deque()
                if thread and self.on_thread is not None:
                    self.on_thread(rank, thread)
            if self.observed:
                queue.append((self.number, operations, record))
            elif operations:
                queue.append((self.number, operations, _NO_RECORD))
        elif kind == "communicator":
            _, number, of, name, members, *sources = record
            if not all(type(one) is int and 0 <= one < 1 << 53 for one in (number, of)):
                raise Wrong(f"expected the number of a communicator, got {number!r} and {of!r}")
            for some in (members, *sources):
                if not all(0 <= member < self.nprocs for member in some):
                    raise Wrong(f"expected ranks of the run, got members {some!r}")
            if sources:
                self.sources[number] = tuple(sources[0])
            self.members[number] = tuple(members)
            self.communicators[number] = of
            self.names[number] = str(name)
        elif kind == "rank":
            self.speeds.append(float(record[4]))
        elif kind == "match":
            self.matches[record[1]] = record[2], record[3], record[4]
        elif kind == "end":
            self.complete = True
        elif kind == "site":
            self.sites[record[1]] = record[2]
        elif kind not in ("events", "messages", "route"):
            raise Wrong(f"no such record: {kind!r}")


class RecordedInstance:
    """One replayed recording: its players, and their common state."""

    def __init__(self, trace: RecordedTrace, begin: float, selection: Selection) -> None:
        self.trace = trace
        self.name = trace.name
        self.begin = begin
        self.size = trace.nprocs
        self.selection = selection
        self.players: list[RecordedPlayer] = []
        self.processes: list[Process] = []
        self.hosts: Sequence[int] = ()
        self.tries = selection.tuner is not None
        self.recorder: ReplayRecorder | None = None
        self._contexts: dict[int, Context] = {}
        self._nodes: dict[int, tuple[Nodes | None, Nodes | None]] = {}
        # Requests that other ranks post: those that are not posted, with their processes; and those
        # that should be posted before they are made.
        self.late: dict[int, tuple[Send | Receive, Process]] = {}
        self.posted: set[int] = set()
        self._levels: dict[int, list[tuple[int, frozenset[str]]]] = {}
        trace.on_thread = self._start_thread

    def cast(self, processes: Sequence[Process], hosts: Sequence[int]) -> None:
        """Make the players of the ranks' main threads; `hosts` numbers the host of each rank."""
        self.processes = list(processes)
        self.hosts = hosts
        for rank, process in enumerate(processes):
            self.players.append(RecordedPlayer(self, rank, 0, process))
        for player in list(self.players):
            player.start(self.begin)

    def _start_thread(self, rank: int, thread: int) -> None:
        main = self.processes[rank]
        process = Process(main.engine, main.pid, main.slot, main.core)
        main.core.residents += 1
        player = RecordedPlayer(self, rank, thread, process)
        self.players.append(player)
        engine = main.engine
        player.start(self.begin, engine.now - self.begin)

    def context(self, number: int) -> Context:
        """The context of a number."""
        found = self._contexts.get(number)
        if found is None:
            members = self.trace.members.get(number)
            if members is None:
                raise Wrong(f"found context {number!r}, which no earlier line describes")
            found = Context(number, [self.processes[rank] for rank in members])
            self._contexts[number] = found
            sources = self.trace.sources.get(number)
            if sources is not None:
                found.peer = Context(number, [self.processes[rank] for rank in sources])
            if self.recorder is not None:
                communicator = self.trace.communicators[number]
                self.recorder.describe_context(found, communicator, self.trace.names[number])
        return found

    def schedule(
        self, context: int, number: int, rank: int, arguments: Mapping[str, object]
    ) -> Schedule:
        """The schedule of a rank of a collective call."""
        members = self.trace.members[context]
        known = self._nodes.get(context)
        if known is None:
            hosts = [self.hosts[member] for member in members]
            nodes = Nodes(hosts) if len(set(hosts)) < len(hosts) else None
            slots = None
            if self.tries:
                slots = Nodes(self.processes[member].slot for member in members)
            known = self._nodes[context] = nodes, slots
        for name in arguments:
            if name not in _ARGUMENTS:
                raise Wrong(f"found argument {name!r} of a collective call")
        of = self.trace.communicators[context]
        levels = self._levels.setdefault(of, [])
        before: frozenset[str] = frozenset()
        for order, ready in levels:
            if order < number:
                before = ready
        nodes, slots = known
        call = Call(
            rank=rank, size=len(members), selection=self.selection, nodes=nodes, slots=slots,
            ready=before, **fields_of(arguments),
        )  # fmt: skip
        schedule, after = schedule_with_ready(call)
        if after != before and (not levels or levels[-1][0] < number):
            levels.append((number, after))
        return schedule


_ARGUMENTS = frozenset(
    ("op", "count", "type_size", "root", "send_counts", "recv_counts", "commutative", "in_place",
     "nonblocking", "sources", "destinations")
)  # fmt: skip
