"""A player: executes the actions of one rank, as a process of the kernel.

It reads ahead and puts actions into a schedule until a collective call, or until there are enough
actions. The kernel executes the schedule without returning to Python; then the player continues to
read. Requests that are still open are carried over to the next schedule.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from pysmpi.collectives.cache import ready_after, schedule_for
from pysmpi.collectives.call import Call
from pysmpi.collectives.layout import Nodes
from pysmpi.collectives.selection import Selection
from pysmpi.errors import UsageError
from pysmpi.kernel.matching import ANY
from pysmpi.kernel.process import Process
from pysmpi.kernel.requests import STANDARD, Context, KernelRequest, Receive
from pysmpi.kernel.schedule import (
    COMPUTE,
    IRECV,
    ISEND,
    MOST_TAGS,
    RECV,
    SEND,
    SLEEP,
    WAIT,
    WAITALL,
    Schedule,
)
from pysmpi.replay.actions import Reader
from pysmpi.replay.recorder import ReplayRecorder
from pysmpi.replay.sources import Block, Source, words_of
from pysmpi.trace.call_recorder import arguments_of
from pysmpi.trace.events import COLLECTIVE as COLLECTIVES
from pysmpi.trace.events import COMPUTE as COMPUTES
from pysmpi.trace.events import PASS, RECEIVE, Operation, TracedCall
from pysmpi.trace.events import SEND as SENDS
from pysmpi.trace.events import WAIT as AWAITS

# Steps of a schedule after which it ends as soon as no request is open, and at the latest.
ENOUGH, MOST = 512, 4096
TEST = 1e-4  # seconds that a test takes (SimGrid: smpi/test)
UNLIMITED = 1 << 62
KNOWN = 1 << 14  # different lines of a rank that are kept
# Kinds of entries.
STEP, START, AMOUNT, AWAIT, COLLECTIVE, OTHER, NOTHING = range(7)
# What a line means: its kind; code, peer, bytes and tag of a step; the key of its request; flops or
# seconds; the collective call.
Entry = tuple[int, int, int, int, int, tuple[int, int, int], float, Call | None]
_NO_KEY = (0, 0, 0)

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


class Instance:
    """One replayed trace: its players, and their common state."""

    def __init__(self, name: str, begin: float, size: int, selection: Selection) -> None:
        self.name = name
        self.begin = begin
        self.size = size
        self.selection = selection
        self.players: list[Player] = []
        self.point_to_point: Context
        self.collective: Context
        self.nodes: Nodes | None = None
        self.slots: Nodes | None = None
        self.recorder: ReplayRecorder | None = None
        self._ready: list[tuple[int, frozenset[str]]] = []
        # Collective calls that some ranks have still to make: the first caller, and the number of
        # callers.
        self._met: dict[int, tuple[str, Player, str, int]] = {}

    def check_collective(self, number: int, operation: str, player: Player) -> None:
        """A rank makes a collective call; UsageError if others make a different call."""
        first = self._met.get(number)
        if first is None:
            first = operation, player, player.where(), 0
        known, other, where, count = first
        if known != operation:
            raise UsageError(
                f"{player.where()}: rank {player.rank} calls {operation} where rank {other.rank} "
                f"calls {known} ({where}), expected the same collective calls on all ranks"
            )
        if count + 1 == self.size:
            self._met.pop(number, None)
        else:
            self._met[number] = known, other, where, count + 1

    def ready_before(self, number: int) -> frozenset[str]:
        """The node-level communicators that the collective calls before a call have made."""
        found: frozenset[str] = frozenset()
        for order, ready in self._ready:
            if order < number:
                found = ready
        return found

    def prepared(self, number: int, ready: frozenset[str]) -> None:
        """A call has made node-level communicators, or used those that there are."""
        known = self._ready[-1][1] if self._ready else frozenset()
        if not ready <= known:
            self._ready.append((number, ready))


class Player:
    """Executes the actions of one rank of an instance.

    `line` is the number of the line that is executed; `where()` names it for messages.
    """

    def __init__(self, instance: Instance, source: Source, process: Process) -> None:
        self.instance = instance
        self.source = source
        self.process = process
        self.rank = source.rank
        self.reader = Reader(source.name, instance.size)
        self._own = str(source.rank)
        self.done = False
        self.date = 0.0
        self.calls = 0  # collective calls
        self._blocks: Iterator[Block] = source.blocks()
        self._first = 0  # number of the first line of the block
        self._lines: list[bytes] = []  # of the block
        self._at = 0  # the next of them
        self._known: dict[bytes, Entry] = {}  # lines that were read before
        self._open: dict[tuple[int, int, int], deque[int]] = {}  # slots of requests, by key
        self._slots: list[KernelRequest | None] = []  # of the schedule that is executed
        self._numbers: list[int] = []  # line of each of its steps
        self._schedule = Schedule()
        self._next = 0  # slot
        self._after = 0.0  # flops to execute after a collective call
        self._test: tuple[int, int, int] | None = None
        # If the replay is recorded: the call that is executed (its name and number), what it does
        # with a collective call, the requests of its slots, and operations before the next call.
        self._call_name = ""
        self._call_number = 0
        self._call_operation: Operation | None = None
        self._requests: list[KernelRequest | None] = []
        self._before: list[Operation] = []
        self._began = 0.0

    def start(self, seconds: float) -> None:
        """Begin at a date."""
        self.process.resume = self.go_on
        if seconds > 0.0:
            self.process.follow([self.process.engine.alarm(seconds)])
        else:
            self.process.launch()

    def where(self) -> str:
        """The file and line of the rank's current action."""
        step = self.process.step
        numbers = self._numbers
        number = numbers[step] if step < len(numbers) else self.reader.number
        return f"{self.source.name}, line {number}"

    def go_on(self) -> None:
        """The kernel has executed its actions: pass the next."""
        if self._test is not None:
            self._tested(self._test)
            self._test = None
        recorder = self.instance.recorder
        if self._read() if recorder is None else self._observe(recorder):
            self.process.launch()
        else:
            self.done = True
            self.date = self.process.engine.now

    def _read(self) -> bool:
        """Load the process with the next actions; return False at the end of the trace."""
        schedule = self._renew()
        codes, peers, sizes, tags = schedule.codes, schedule.peers, schedule.sizes, schedule.tags
        numbers = self._numbers
        open_slots, known = self._open, self._known
        if self._after > 0.0:
            numbers.append(self.reader.number)
            schedule.compute(self._after)
            self._after = 0.0
        lines, at = self._lines, self._at
        while True:
            if at == len(lines):
                block = next(self._blocks, None)
                if block is None:
                    break
                self._first, lines = block
                self._lines, at = lines, 0
                continue
            steps = len(codes)
            if steps >= ENOUGH and (not open_slots or steps >= MOST):
                break
            line = lines[at]
            entry = known.get(line)
            if entry is None:
                entry = self._entry(self._first + at, line)
            kind, code, peer, nbytes, tag, key, amount, _ = entry
            if kind == STEP or kind == START:
                codes.append(code)
                peers.append(peer)
                sizes.append(nbytes)
                tags.append(tag)
                if kind == START:
                    slots = open_slots.get(key)
                    if slots is None:
                        slots = open_slots[key] = deque()
                    slots.append(self._next)
                    self._next += 1
            elif kind == AMOUNT:
                codes.append(code)
                peers.append(len(schedule.amounts))
                sizes.append(0)
                tags.append(0)
                schedule.amounts.append(amount)
            elif kind == AWAIT:
                slots = open_slots.get(key)
                if slots is None:
                    at += 1
                    continue  # a test has found it complete
                slot = slots.popleft()
                if not slots:
                    del open_slots[key]
                codes.append(WAIT)
                peers.append(slot)
                sizes.append(slot + 1)
                tags.append(0)
            elif kind == COLLECTIVE:
                if steps:
                    break
                self._at = at + 1
                self.reader.number = self._first + at
                self._collective(entry)
                return True
            elif kind == OTHER:
                self._action(schedule, self._first + at, line)
            at += 1
            numbers.extend([self._first + at - 1] * (len(codes) - steps))
            if self._test is not None:
                break
        self._at = at
        self.reader.number = self._first + at
        if not codes:
            return False
        self._load(schedule)
        return True

    def _observe(self, recorder: ReplayRecorder) -> bool:
        """Load the process with the next call, or with what is between two calls."""
        self._conclude(recorder)
        schedule = self._renew()
        if self._after > 0.0:
            schedule.compute(self._after)
            self._after = 0.0
            self._numbers = [self.reader.number]
            self._load(schedule)
            return True
        while True:
            if self._at == len(self._lines):
                block = next(self._blocks, None)
                if block is None:
                    recorder.between(self.process, 0, self._began, self._before)
                    return False
                self._first, self._lines = block
                self._at = 0
                continue
            line, number = self._lines[self._at], self._first + self._at
            self._at += 1
            self.reader.number = number
            kind, code, peer, nbytes, tag, key, amount, call = entry = (
                self._known.get(line) or self._entry(number, line)
            )
            if kind == NOTHING:
                continue
            if kind == AMOUNT:
                if not self._before:
                    self._began = self.process.engine.now
                schedule.codes.append(code)
                schedule.peers.append(0)
                schedule.sizes.append(0)
                schedule.tags.append(0)
                schedule.amounts.append(amount)
                if code == SLEEP:
                    recorder.sleeps(self.process)
            elif kind == COLLECTIVE:
                assert call is not None
                self._begin_call(recorder, call.op)
                self._collective(entry, recorder)
                return True
            elif kind == OTHER:
                self._action(schedule, number, line)
                if not schedule.codes:
                    continue
                self._begin_call(recorder, words_of(line)[1])
            elif kind == AWAIT:
                slots = self._open.get(key)
                if slots is None:
                    continue
                slot = slots.popleft()
                if not slots:
                    del self._open[key]
                self._step(schedule, WAIT, slot, slot + 1, 0)
                self._begin_call(recorder, "wait")
            else:
                self._step(schedule, code, peer, nbytes, tag)
                if kind == START:
                    self._open.setdefault(key, deque()).append(self._next)
                    self._next += 1
                self._begin_call(recorder, words_of(line)[1])
            self._numbers = [number] * len(schedule)
            self._load(schedule)
            return True

    def _begin_call(self, recorder: ReplayRecorder, name: str) -> None:
        self._call_name = name.lower().capitalize()
        self._call_number = recorder.call_begun(self.process)

    def _conclude(self, recorder: ReplayRecorder) -> None:
        """Record what has been executed."""
        process = self.process
        recorder.executed(process)
        if self._call_operation is not None:
            operations, sent, received = [self._call_operation], 0, 0
            self._call_operation = None
        else:
            operations, sent, received = self._done(recorder)
        if not self._call_name:
            self._before += operations
            return
        call = TracedCall(self._call_name, process.pid, 0, "")
        self._call_name = ""
        call.sent, call.received = sent, received
        call.communicator = self.instance.point_to_point.number
        recorder.call_ended(process, call, self._call_number, self._before + operations)
        self._before = []

    def _done(self, recorder: ReplayRecorder) -> tuple[list[Operation], int, int]:
        """The operations of the schedule that was executed, the bytes sent and received."""
        schedule, started = self._schedule, iter(recorder.started.get(self.process, ()))
        context = self.instance.point_to_point.number
        found: list[Operation] = []
        sent = received = 0
        for code, peer, nbytes, tag in zip(
            schedule.codes, schedule.peers, schedule.sizes, schedule.tags
        ):
            awaited: list[KernelRequest | None] = []
            if code in (SEND, ISEND, RECV, IRECV):
                request = next(started)
                if code in (SEND, ISEND):
                    sent += nbytes
                    found.append(
                        (SENDS, request.order, context, self.rank, peer, tag, nbytes, STANDARD,
                         code == ISEND)
                    )  # fmt: skip
                else:
                    found.append((RECEIVE, request.order, context, peer, self.rank, tag, nbytes))
                if code in (ISEND, IRECV):
                    self._requests.append(request)
                else:
                    awaited = [request]
            elif code == COMPUTE:
                found.append((COMPUTES, schedule.amounts[peer] / self.process.core.speed))
            elif code == SLEEP:
                found.append((PASS, schedule.amounts[peer]))
            else:
                last = nbytes if code == WAITALL else peer + 1
                awaited = self._requests[peer:last]
                self._requests[peer:last] = [None] * len(awaited)
            numbers = []
            for one in awaited:
                if one is not None:
                    numbers.append(one.order)
                    if isinstance(one, Receive) and one.message is not None:
                        received += one.message.nbytes
            if numbers:
                found.append((AWAITS, numbers, True))
        return found, sent, received

    def _renew(self) -> Schedule:
        """A new schedule, in which the open requests have the first slots."""
        kept: list[KernelRequest | None] = []
        requests: list[KernelRequest | None] = []
        for slots in self._open.values():
            for i, slot in enumerate(slots):
                slots[i] = len(kept)
                kept.append(self._slots[slot])
                if self._requests:
                    requests.append(self._requests[slot])
        self._slots = kept
        self._requests = requests
        self._next = len(kept)
        self._numbers = []
        schedule = self._schedule = Schedule()
        schedule.slots = self._next
        return schedule

    def _load(self, schedule: Schedule) -> None:
        process = self.process
        schedule.slots = self._next
        process.prepare(schedule, self.instance.point_to_point, self.rank, 0)
        kept = self._slots
        slots = self._slots = process.slots
        slots[: len(kept)] = kept
        process.next_slot = len(kept)

    def _entry(self, number: int, line: bytes) -> Entry:
        """What a line means; UsageError for one that is wrong."""
        reader = self.reader
        words = words_of(line)
        if not words:
            return (NOTHING, 0, 0, 0, 0, _NO_KEY, 0.0, None)
        if words[0] != self._own and words[0].lstrip("0") != self._own:
            raise UsageError(
                f"{self.source.name}, line {number}: found rank {words[0]!r} in the lines of rank "
                f"{self.rank}, expected {self.rank}"
            )
        reader.begin(number, words[1:])
        if len(words) < 2:
            raise reader.wrong("the end of the line", "an action")
        name = words[1]
        entry: Entry
        if name in ("send", "isend", "recv", "irecv"):
            entry = self._message(name)
        elif name == "compute":
            entry = AMOUNT, COMPUTE, 0, 0, 0, _NO_KEY, reader.real("flops"), None
        elif name == "sleep":
            entry = AMOUNT, SLEEP, 0, 0, 0, _NO_KEY, reader.real("seconds"), None
        elif name == "wait":
            entry = AWAIT, 0, 0, 0, 0, self._key(reader), 0.0, None
        elif name == "finalize" or name == "location" or name in IGNORED:
            reader.at = len(reader.words)
            entry = NOTHING, 0, 0, 0, 0, _NO_KEY, 0.0, None
        else:
            operation = _COLLECTIVES.get(name.replace("_", "").lower())
            if operation is None:
                return (OTHER, 0, 0, 0, 0, _NO_KEY, 0.0, None)
            call, after = self._call(operation)
            entry = COLLECTIVE, 0, 0, 0, 0, _NO_KEY, after, call
        reader.end()
        if len(self._known) >= KNOWN:
            self._known.clear()
        self._known[line] = entry
        return entry

    def _action(self, schedule: Schedule, number: int, line: bytes) -> None:
        """Append an action that depends on the state of the rank."""
        reader = self.reader
        reader.begin(number, words_of(line)[1:])
        name = reader.words[0]
        if name in ("waitall", "waitAll"):
            if reader.more():
                reader.whole("a number of requests")
            schedule.waitall(0, self._next)
            self._open.clear()
        elif name in ("sendRecv", "sendrecv"):
            self._exchange(schedule)
        elif name == "test":
            self._test = self._key(reader)
            schedule.sleep(TEST)
        elif name == "init":
            reader.choose_default()
            self._known.clear()
            return
        elif name in NOT_REPLAYED:
            raise UsageError(
                f"{reader.name}, line {number}: found action {name!r}, which smpirun records and "
                "no replay knows, expected a trace of calls that can be replayed"
            )
        else:
            raise UsageError(f"{reader.name}, line {number}: found no such action: {name!r}")
        reader.end()

    def _step(self, schedule: Schedule, code: int, peer: int, nbytes: int, tag: int) -> None:
        # The tags are the program's: a schedule's own checks are for those of algorithms.
        schedule.codes.append(code)
        schedule.peers.append(peer)
        schedule.sizes.append(nbytes)
        schedule.tags.append(tag)

    def _message(self, name: str) -> Entry:
        reader = self.reader
        sends = name in ("send", "isend")
        if sends:
            peer = reader.rank("a destination")
        else:
            peer = reader.whole("a source", -555, reader.ranks - 1)
        tag = reader.whole("a tag", -1_000_000_007, (1 << 31) - 1)
        count = reader.whole("a size", 0 if sends else -1)
        nbytes = count * reader.size()
        if sends:
            key = self.rank, peer, tag
        else:
            key = peer, self.rank, tag
            peer = ANY if peer < 0 else peer
            tag = ANY if tag < 0 else tag
            if count < 0:
                nbytes = UNLIMITED
        if name == "send":
            return STEP, SEND, peer, nbytes, tag, _NO_KEY, 0.0, None
        if name == "recv":
            return STEP, RECV, peer, nbytes, tag, _NO_KEY, 0.0, None
        return START, ISEND if sends else IRECV, peer, nbytes, tag, key, 0.0, None

    def _exchange(self, schedule: Schedule) -> None:
        reader = self.reader
        out = reader.whole("a count to send")
        destination = reader.rank("a destination")
        back = reader.whole("a count to receive")
        source = reader.rank("a source")
        out *= reader.size()
        back *= reader.size()
        self._step(schedule, ISEND, destination, out, 0)
        self._step(schedule, IRECV, source, back, 0)
        schedule.waitall(self._next, self._next + 2)
        self._next += 2

    def _key(self, reader: Reader) -> tuple[int, int, int]:
        source = reader.whole("a source", -555, reader.ranks - 1)
        destination = reader.rank("a destination")
        return source, destination, reader.whole("a tag", -1_000_000_007, (1 << 31) - 1)

    def _tested(self, key: tuple[int, int, int]) -> None:
        """Release the request of a test if it is complete."""
        slots = self._open.get(key)
        if slots is not None:
            request = self._slots[slots[0]]
            if request is None or request.done:
                slots.popleft()
                if not slots:
                    del self._open[key]

    def _collective(self, entry: Entry, recorder: ReplayRecorder | None = None) -> None:
        """Load the process with a collective call."""
        assert entry[7] is not None
        call = entry[7]
        self._after = entry[6]
        operation = call.op
        instance = self.instance
        number = self.calls
        self.calls += 1
        self._numbers = []
        instance.check_collective(number, operation, self)
        tag = (number * len(OPERATIONS) + CODES[operation]) * MOST_TAGS
        call = replace(
            call, selection=instance.selection, nodes=instance.nodes, slots=instance.slots,
            ready=instance.ready_before(number),
        )  # fmt: skip
        schedule = schedule_for(call)
        instance.prepared(number, ready_after(call))
        self._numbers = [self.reader.number] * len(schedule)
        # Its slots are its own: the open requests wait aside.
        self._slots = list(self._slots)
        if recorder is not None:
            context = instance.collective
            known = recorder.collective_number((context.number, number))
            recorder.enter(self.process, known, context)
            recorder.posts(self.process, known)
            self._call_operation = (
                COLLECTIVES, known, context.number, tag, False, arguments_of(call)
            )
        self.process.prepare(schedule, instance.collective, self.rank, tag)

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

    def _unequal(self, op: str) -> dict[str, Any]:
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

