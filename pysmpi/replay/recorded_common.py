"""The common state of the players of a recording: its contexts, and schedules of its calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pysmpi.collectives.cache import ready_from_creation, schedule_with_ready
from pysmpi.collectives.call import Call, fields_of
from pysmpi.collectives.layout import Nodes
from pysmpi.kernel.process import Process
from pysmpi.kernel.requests import Context, Receive, Send
from pysmpi.kernel.schedule import Schedule
from pysmpi.replay.recorded_trace import RecordedTrace
from pysmpi.trace.recorded_lines import Wrong

if TYPE_CHECKING:
    from pysmpi.collectives.selection import Selection
    from pysmpi.replay.recorder import ReplayRecorder

WORLD = "COMM_WORLD"  # the name of the communicator that is not created
_ARGUMENTS = frozenset(
    ("op", "count", "type_size", "root", "send_counts", "recv_counts", "commutative", "in_place",
     "nonblocking", "sources", "destinations")
)  # fmt: skip


class RecordedCommon:
    """The data that all players of one replayed recording share.

    `processes` are those of the main threads by rank, `hosts` the numbers of their hosts.
    """

    def __init__(self, trace: RecordedTrace, selection: Selection) -> None:
        self.trace = trace
        self.selection = selection
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
        nodes, slots = known
        call = Call(
            rank=rank, size=len(members), selection=self.selection, nodes=nodes, slots=slots,
            **fields_of(arguments),
        )  # fmt: skip
        before = self._before(context, number, call)
        for order, ready in levels:
            if order < number:
                before = ready
        if before:
            call = call.but(ready=before)
        schedule, after = schedule_with_ready(call)
        if after != before and (not levels or levels[-1][0] < number):
            levels.append((number, after))
        return schedule

    def _before(self, context: int, number: int, call: Call) -> frozenset[str]:
        """The node-level communicators that exist since the creation of a communicator."""
        name = self.trace.names[context]
        if name == WORLD:
            return frozenset()
        if not name.startswith("window"):
            return ready_from_creation(call)
        # A window has those of its communicator.
        members = self.trace.members[context]
        found: frozenset[str] = frozenset()
        for of, levels in self._levels.items():
            if self.trace.members[of] == members:
                for order, ready in levels:
                    if order < number:
                        found |= ready
        return found
