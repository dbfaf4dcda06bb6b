"""Players: they read the actions of one rank for its process, and record its calls.

`executor` executes the actions, without returning to Python for lines that are known. A player
reads lines that are new, builds the schedules of collective calls, and is called for each action
if the replay is recorded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pysmpi.collectives.cache import schedule_with_ready
from pysmpi.collectives.call import Call, arguments_of
from pysmpi.collectives.layout import Nodes
from pysmpi.collectives.selection import Selection
from pysmpi.errors import UsageError
from pysmpi.kernel.matching import ANY
from pysmpi.kernel.requests import STANDARD, KernelRequest, Receive
from pysmpi.kernel.schedule import Schedule
from pysmpi.replay.actions import Reader
from pysmpi.replay.executor import (
    AWAITS,
    AWAITS_ALL,
    COMPUTES,
    FORGETS,
    IRECEIVES,
    ISENDS,
    NOTHING,
    RECEIVES,
    SENDS,
    SLEEPS,
    TESTS,
    Action,
    Common,
    Meeting,
    TracedProcess,
)
from pysmpi.replay.executor import COLLECTIVE as COLLECTIVES
from pysmpi.replay.sources import Source, words_of
from pysmpi.trace import events
from pysmpi.trace.events import Operation, TracedCall

if TYPE_CHECKING:
    from pysmpi.replay.recorder import ReplayRecorder

TEST = 1e-4  # seconds that a test takes (SimGrid: smpi/test)
UNLIMITED = 1 << 62
_NO_LEVELS: frozenset[str] = frozenset()

# Collective calls, each with its own tags: of the operation, and of the number of the call.
OPERATIONS = (
    "barrier", "bcast", "reduce", "allreduce", "alltoall", "alltoallv", "gather", "gatherv",
    "allgather", "allgatherv", "scatter", "scatterv", "reduce_scatter", "scan", "exscan",
)  # fmt: skip
CODES = {name: code for code, name in enumerate(OPERATIONS)}
# Actions without effect on time.
IGNORED = frozenset(("comm_size", "comm_split", "comm_dup"))
# Written by smpirun's tracer and refused by its replay.
NOT_REPLAYED = frozenset(
    "bsend ibsend Ssend ISsend ssend issend waitAny waitany testany testall testsome waitsome "
    "Start Startall start startall ibarrier ibcast iallreduce ireduce ialltoall ialltoallv "
    "igather igatherv iallgather iallgatherv iscatter iscatterv ireducescatter iscan iexscan "
    "put get accumulate rput rget raccumulate".split()
)
# Actions of messages.
_MESSAGES = {"send": SENDS, "isend": ISENDS, "recv": RECEIVES, "irecv": IRECEIVES}


class Instance:
    """One replayed trace: its players, and their common state."""

    def __init__(
        self,
        name: str,
        begin: float,
        selection: Selection,
        common: Common,
        nodes: Nodes | None,
        slots: Nodes | None,
    ) -> None:
        self.name = name
        self.begin = begin
        self.size = common.size
        self.selection = selection
        self.common = common
        self.nodes = nodes
        self.slots = slots
        self.players: list[Player] = []
        self.recorder: ReplayRecorder | None = None
        common.mismatch = self.mismatch
        common.schedule = self.schedule

    def mismatch(self, process: TracedProcess, operation: int, meeting: Meeting) -> None:
        """Refuse a rank's collective call where another rank has made a different one."""
        player, other = self.players[process.rank], self.players[meeting.caller.rank]
        raise UsageError(
            f"{player.where()}: rank {player.rank} calls {OPERATIONS[operation]} where rank "
            f"{other.rank} calls {OPERATIONS[meeting.operation]} ({other.source.name}, line "
            f"{meeting.where}), expected the same collective calls on all ranks"
        )

    def schedule(self, process: TracedProcess, action: Action, number: int) -> Schedule:
        """The schedule of a rank's collective call."""
        common = self.common
        before = common.ready_before(number)
        assert before is None or isinstance(before, frozenset)
        call = action.call._replace(
            selection=self.selection, nodes=self.nodes, slots=self.slots,
            ready=_NO_LEVELS if before is None else before,
        )  # fmt: skip
        schedule, after = schedule_with_ready(call)
        known = common.ready[-1][1] if common.ready else _NO_LEVELS
        assert isinstance(known, frozenset)
        if not after <= known:
            common.ready.append((number, after))
        return schedule


class Player:
    """Reads the actions of one rank of an instance."""

    def __init__(self, instance: Instance, source: Source, process: TracedProcess) -> None:
        self.instance = instance
        self.source = source
        self.process = process
        self.rank = source.rank
        self.reader = Reader(source.name, instance.size)
        self._own = str(source.rank)
        process.blocks = source.blocks()
        process.parse = self.action
        # If the replay is recorded: the call that is executed (its name and number), its
        # operations and bytes, and operations before it.
        self._call_name = ""
        self._call_number = 0
        self._operations: list[Operation] = []
        self._sent = 0
        self._received = 0
        self._before: list[Operation] = []
        self._began = 0.0
        if instance.recorder is not None:
            process.observer = self

    @property
    def done(self) -> bool:
        """Whether all actions are executed."""
        return self.process.ended

    @property
    def date(self) -> float:
        """The date of the end of the rank (s)."""
        return self.process.date

    def where(self) -> str:
        """The file and line of the rank's current action."""
        return f"{self.source.name}, line {self.process.line()}"

    # Calls of the process if the replay is recorded.

    def begin(self, action: Action) -> None:
        """An action begins."""
        recorder, process = self.instance.recorder, self.process
        assert recorder is not None
        kind = action.kind
        if kind in (NOTHING, FORGETS):
            return
        if kind in (COMPUTES, SLEEPS):
            if not self._before:
                self._began = process.engine.now
            if kind == SLEEPS:
                recorder.sleeps(process)
            return
        if not self._call_name:
            self._call_name = action.name.lower().capitalize()
            self._call_number = recorder.call_begun(process)
        if kind == COLLECTIVES:
            context, number = self.instance.common.collective, process.calls
            known = recorder.collective_number((context.number, number))
            recorder.enter(process, known, context)
            recorder.posts(process, known)

    def end(self, action: Action, requests: list[KernelRequest]) -> None:
        """An action has ended, which has started or awaited some requests."""
        recorder, process = self.instance.recorder, self.process
        assert recorder is not None
        kind = action.kind
        if kind in (NOTHING, FORGETS):
            return
        recorder.executed(process)
        if kind == COMPUTES:
            seconds = action.amount / process.core.speed
            self._before.append((events.COMPUTE, seconds))
            return
        if kind == SLEEPS:
            self._before.append((events.PASS, action.amount))
            return
        self._operations += self._done(action, requests)
        if action.next is None or action.next.kind == COMPUTES:
            call = TracedCall(self._call_name, process.pid, 0, "")
            call.sent, call.received = self._sent, self._received
            call.communicator = self.instance.common.messages.number
            done = self._before + self._operations
            recorder.call_ended(process, call, self._call_number, done)
            self._call_name = ""
            self._before, self._operations = [], []
            self._sent = self._received = 0

    def conclude(self, recorder: ReplayRecorder) -> None:
        """Record the work of the rank after its last call."""
        recorder.between(self.process, 0, self._began, self._before)

    def _done(self, action: Action, requests: list[KernelRequest]) -> list[Operation]:
        """The operations of an action."""
        kind, context = action.kind, self.instance.common.messages.number
        if kind == COLLECTIVES:
            number, collective = self.process.calls - 1, self.instance.common.collective
            recorder = self.instance.recorder
            assert recorder is not None
            known = recorder.collective_number((collective.number, number))
            tag = self.instance.common.tag(number, action.operation)
            arguments = arguments_of(action.call)
            return [(events.COLLECTIVE, known, collective.number, tag, False, arguments)]
        if kind == TESTS:
            return [(events.PASS, action.amount)]
        found: list[Operation] = []
        if kind in (SENDS, ISENDS, RECEIVES, IRECEIVES):
            request = requests[0]
            rank, peer, tag, nbytes = self.rank, action.peer, action.tag, action.nbytes
            if kind in (SENDS, ISENDS):
                self._sent += nbytes
                found.append(
                    (events.SEND, request.order, context, rank, peer, tag, nbytes, STANDARD,
                     kind == ISENDS)
                )  # fmt: skip
            else:
                found.append((events.RECEIVE, request.order, context, peer, rank, tag, nbytes))
            if kind in (ISENDS, IRECEIVES):
                return found
        for one in requests:
            if isinstance(one, Receive) and one.message is not None:
                self._received += one.message.nbytes
        if requests:
            found.append((events.WAIT, [one.order for one in requests], True))
        return found

    # New lines.

    def action(self, number: int, line: bytes) -> Action:
        """The meaning of a line; UsageError for one that is wrong."""
        reader = self.reader
        words = words_of(line)
        if not words:
            return Action(NOTHING, "")
        if words[0] != self._own and words[0].lstrip("0") != self._own:
            raise UsageError(
                f"{self.source.name}, line {number}: expected rank {self.rank} in its lines, got "
                f"{words[0]!r}"
            )
        reader.begin(number, words[1:])
        if len(words) < 2:
            raise reader.wrong("the end of the line", "an action")
        name = words[1]
        if name in _MESSAGES:
            action = self._message(name)
        elif name in ("compute", "sleep"):
            action = Action(COMPUTES if name == "compute" else SLEEPS, name)
            action.amount = reader.real("flops" if name == "compute" else "seconds")
        elif name == "wait":
            action = Action(AWAITS, name)
            action.key = self._key(reader)
        elif name == "test":
            action = Action(TESTS, name)
            action.key, action.amount = self._key(reader), TEST
        elif name in ("waitall", "waitAll"):
            action = Action(AWAITS_ALL, name)
            if reader.more():
                reader.whole("a number of requests")
        elif name in ("sendRecv", "sendrecv"):
            action = self._exchange(name)
        elif name == "init":
            reader.choose_default()
            action = Action(FORGETS, name)
        elif name == "finalize" or name == "location" or name in IGNORED:
            reader.at = len(reader.words)
            action = Action(NOTHING, name)
        else:
            action = self._collective(name)
        reader.end()
        return action

    def _message(self, name: str) -> Action:
        reader = self.reader
        action = Action(_MESSAGES[name], name)
        sends = name in ("send", "isend")
        if sends:
            peer = reader.rank("a destination")
        else:
            peer = reader.whole("a source", -555, reader.ranks - 1)
        tag = reader.whole("a tag", -1_000_000_007, (1 << 31) - 1)
        count = reader.whole("a size", 0 if sends else -1)
        action.nbytes = count * reader.size()
        if sends:
            action.key = self.rank, peer, tag
        else:
            action.key = peer, self.rank, tag
            peer = ANY if peer < 0 else peer
            tag = ANY if tag < 0 else tag
            if count < 0:
                action.nbytes = UNLIMITED
        action.peer, action.tag = peer, tag
        return action

    def _exchange(self, name: str) -> Action:
        reader = self.reader
        send, receive, wait = Action(ISENDS, name), Action(IRECEIVES, name), Action(AWAITS, name)
        send.nbytes = reader.whole("a count to send")
        send.peer = reader.rank("a destination")
        receive.nbytes = reader.whole("a count to receive")
        receive.peer = reader.rank("a source")
        send.nbytes *= reader.size()
        receive.nbytes *= reader.size()
        send.next, receive.next = receive, wait
        send.key = receive.key = wait.key = name
        wait.count = 2
        return send

    def _key(self, reader: Reader) -> tuple[int, int, int]:
        source = reader.whole("a source", -555, reader.ranks - 1)
        destination = reader.rank("a destination")
        return source, destination, reader.whole("a tag", -1_000_000_007, (1 << 31) - 1)

    def _collective(self, name: str) -> Action:
        """A collective call, and the flops after it."""
        reader = self.reader
        if name in NOT_REPLAYED:
            raise UsageError(
                f"{reader.name}, line {reader.number}: expected a trace of calls that can be "
                f"replayed, got action {name!r}, which smpirun records and no replay knows"
            )
        operation = _COLLECTIVES.get(name.replace("_", "").lower())
        if operation is None:
            raise UsageError(f"{reader.name}, line {reader.number}: no such action: {name!r}")
        action = Action(COLLECTIVES, name)
        action.call, after = self._call(operation)
        action.name = action.call.op
        action.operation = CODES[operation]
        if after > 0.0:
            action.next = Action(COMPUTES, "compute")
            action.next.amount = after
        return action

    def _call(self, op: str) -> tuple[Call, float]:
        """A collective call, and the flops after it."""
        after = 0.0
        reader, size = self.reader, self.instance.size
        fields: dict[str, Any] = {}
        if op == "barrier":
            pass
        elif op == "bcast":
            fields["count"] = reader.whole("a count")
            fields["root"] = reader.root()
            fields["type_size"] = reader.size()
        elif op in ("reduce", "allreduce", "scan", "exscan"):
            fields["count"] = reader.whole("a count")
            after = reader.real("flops")
            if op == "reduce":
                fields["root"] = reader.root()
            fields["type_size"] = reader.size()
        elif op == "reduce_scatter":
            counts = reader.counts("the count")
            after = reader.real("flops")
            fields["type_size"] = reader.size()
            fields["recv_counts"] = tuple(counts)
            fields["count"] = counts[self.rank]
        elif op in ("gather", "scatter"):
            send, receive = reader.whole("a count to send"), reader.whole("a count to receive")
            root = fields["root"] = reader.root()
            sent, received = reader.size(), reader.size()
            fields["count"], fields["type_size"] = (
                (receive, received) if (self.rank == root) == (op == "gather") else (send, sent)
            )
        elif op in ("allgather", "alltoall"):
            fields["count"] = reader.whole("a count to send")
            reader.whole("a count to receive")
            fields["type_size"] = reader.size()
            reader.size()
        else:
            fields = self._unequal(op)
        return Call(op, self.rank, size, **fields), after

    def _unequal(self, op: str) -> dict[str, object]:
        """The fields of the call of an operation with a count a rank."""
        reader = self.reader
        fields: dict[str, Any] = {}
        if op == "alltoallv":
            reader.whole("the size of the send buffer")
            send = reader.counts("the count to send")
            reader.whole("the size of the receive buffer")
            receive = reader.counts("the count to receive")
            sent, received = reader.size(), reader.size()
            fields["send_counts"] = tuple(n * sent for n in send)
            fields["recv_counts"] = tuple(n * received for n in receive)
            return fields
        if op == "scatterv":
            counts = reader.counts("the count")
            own = reader.whole("a count to receive")
            root = fields["root"] = reader.root()
            sent, received = reader.size(), reader.size()
            if self.rank == root:
                fields["send_counts"] = tuple(n * sent for n in counts)
            fields["count"] = own * received
            return fields
        own = reader.whole("a count to send")
        counts = reader.counts("the count to receive")
        if op == "gatherv":
            fields["root"] = reader.root()
        sent, received = reader.size(), reader.size()
        fields["count"] = own * sent
        if op == "allgatherv" or self.rank == fields["root"]:
            fields["recv_counts"] = tuple(n * received for n in counts)
        if op == "allgatherv" and reader.more():
            reader.counts("the displacement")
        return fields


_COLLECTIVES = {name.replace("_", ""): name for name in OPERATIONS}
