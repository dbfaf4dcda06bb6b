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
from pysmpi.kernel.engine import Engine
from pysmpi.kernel.process import Process
from pysmpi.kernel.requests import STANDARD, Context, KernelRequest, Receive, Send, Transfer
from pysmpi.kernel.schedule import COMPUTE as COMPUTE_STEP
from pysmpi.kernel.schedule import (
    COPY,
    IRECV,
    ISEND,
    RECV,
    REDUCE,
    SEND,
    SHARE,
    SLEEP,
    WAITALL,
    Schedule,
)
from pysmpi.kernel.schedule import WAIT as WAIT_STEP
from pysmpi.replay.joints import JointRequests
from pysmpi.trace.events import (
    COLLECTIVE,
    COMPUTE,
    JOIN,
    LATE,
    PASS,
    POST,
    PROBE,
    RECEIVE,
    STEPS,
    TRANSFER,
    WAIT,
)
from pysmpi.trace.events import SEND as SENDS
from pysmpi.trace.recorded_lines import Wrong, made_call, read_facts, whole_lines

if TYPE_CHECKING:
    from pysmpi.collectives.selection import Selection
    from pysmpi.replay.recorder import ReplayRecorder

# Steps of a schedule after which a new one begins.
ENOUGH = 512
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


class RecordedPlayer:
    """Executes the operations of one thread of a rank."""

    def __init__(
        self, instance: RecordedInstance, rank: int, thread: int, process: Process
    ) -> None:
        self.instance = instance
        self.trace = instance.trace
        self.rank = rank
        self.thread = thread
        self.process = process
        self.done = False
        self.date = 0.0
        self.line = 0
        self._left: list[Any] = []  # operations of the current call
        self._next = 0
        self._skip = 0.0  # seconds of the first time that passes, before the thread was started
        self._open: dict[int, KernelRequest] = {}  # requests without a wait so far, by number
        self._joints: dict[int, JointRequests] = {}  # whose requests are not all started
        # The schedule that is being built, the context of its messages, the rank in it, and the
        # slots of open requests by number.
        self._schedule = Schedule()
        self._context: Context | None = None
        self._place = 0
        self._slots: dict[int, int] = {}
        self._executed: list[KernelRequest | None] | None = None  # its slots, once it is loaded
        # If the replay is recorded: the record of the call, the number of its new one, the date
        # at which it began, and the requests with the numbers that they have in the recording.
        self._record: list[Any] = _NO_RECORD
        self._number = 0
        self._began = 0.0
        self._requests: dict[int, KernelRequest] = {}
        # Of these, those that others post: by number, all, and operations until they are posted.
        # And those that this player posts for others.
        self._late_requests: dict[int, KernelRequest] = {}
        self._foreign: set[KernelRequest] = set()
        self._pending: list[object] = []
        self._favours: dict[int, KernelRequest] = {}

    def start(self, seconds: float, skip: float = 0.0) -> None:
        """Begin at a date."""
        self._skip = skip
        self.process.resume = self.go_on
        if seconds > self.process.engine.now:
            self.process.follow([self.process.engine.alarm(seconds)])
        else:
            self.process.launch()

    def where(self) -> str:
        """The file and line of the current call."""
        return f"{self.trace.name}, line {self.line}"

    def go_on(self) -> None:
        """The kernel has executed the operations: pass the next."""
        try:
            self._keep()
            recorder = self.instance.recorder
            if recorder is not None:
                recorder.executed(self.process)
            if self._read():
                self.process.launch()
            else:
                self.done = True
                self.date = self.process.engine.now
        except Wrong as error:
            raise UsageError(f"{self.where()}: {error}") from None
        except UsageError as error:
            if str(error).startswith(self.trace.name):
                raise  # of a line that was read
            raise UsageError(f"{self.where()}: {error}") from None
        except (ValueError, TypeError, IndexError, KeyError) as error:
            raise UsageError(
                f"{self.where()}: expected operations of a recording, got impossible ones"
            ) from error

    def _keep(self) -> None:
        """Keep the requests that the last schedule leaves open."""
        executed = self._executed
        if executed is not None:
            self._executed = None
            found = self._open = {}
            for number, slot in self._slots.items():
                request = executed[slot]
                if request is not None:
                    found[number] = request

    def _read(self) -> bool:
        """Load the process with the next operations; False at the end."""
        schedule = self._schedule = Schedule()
        self._context = None
        self._slots = {number: slot for slot, number in enumerate(self._open)}
        schedule.slots = len(self._open)
        recorder = self.instance.recorder
        if recorder is not None and not self._number and self._record and self._record[4]:
            self._number = recorder.call_begun(self.process)
        while True:
            if self._next >= len(self._left):
                if recorder is not None:
                    if len(self._schedule):
                        break
                    self._conclude(recorder)
                found = self.trace.next(self.rank, self.thread)
                if found is None:
                    break
                self.line, self._left, self._record = found
                self._next = 0
                if recorder is not None and self._lead(recorder):
                    return True
            while self._next < len(self._left):
                operation = self._left[self._next]
                step = _STEPS.get(operation[0])
                if step is None:
                    raise Wrong(f"no such operation: {operation[0]!r}")
                if not step(self, operation):
                    if len(self._schedule):
                        self._load()
                    # Other operations have loaded the process themselves.
                    return True
                self._next += 1
            if len(self._schedule) >= ENOUGH:
                break
        if not len(self._schedule):
            return False
        self._load()
        return True

    def _lead(self, recorder: ReplayRecorder) -> bool:
        """Begin a call of a recorded replay; True if the compute before it comes first."""
        self._began = self.process.engine.now
        if not self._record[4]:
            if all(one[0] == PASS for one in self._left):
                recorder.sleeps(self.process)
            return False
        if self._next < len(self._left) and self._left[self._next][0] == COMPUTE:
            self._compute(self._left[self._next])
            self._next += 1
            self._load()
            return True
        self._number = recorder.call_begun(self.process)
        return False

    def _conclude(self, recorder: ReplayRecorder) -> None:
        """Record the call that has been executed."""
        if not self._record:
            return
        record, self._record = self._record, _NO_RECORD
        process = self.process
        if not record[4]:
            recorder.between(process, self.thread, self._began, self._translated(recorder, record))
            return
        if not self._number:
            self._number = recorder.call_begun(process)
        operations = self._translated(recorder, record)
        call = made_call(record, self.trace.sites)
        recorder.call_ended(process, call, self._number, operations)
        self._number = 0

    def _translated(self, recorder: ReplayRecorder, record: list[Any]) -> list[Any]:
        """The operations of a call, with the numbers of the replay."""
        started = iter([
            one for one in recorder.started.get(self.process, ()) if one not in self._foreign
        ])
        speed = self.trace.speeds[self.rank] or self.process.core.speed
        found: list[Any] = []
        operations, self._pending = self._pending + record[13], []
        pending: set[int] = set()  # late requests that are still to be posted
        for one in operations:
            kind = one[0]
            if kind == LATE:
                request = self._late_requests.get(one[1])
                if request is not None and request.order == 0:
                    pending.add(one[1])
                elif request is not None:
                    found.append((LATE, request.order))
            if pending and (
                kind in (LATE, SENDS, RECEIVE) and one[1] in pending
                or kind == JOIN and not pending.isdisjoint(one[1:3])
            ):
                self._pending.append(one)
                continue
            if kind == COMPUTE:
                found.append((kind, one[1] * speed / self.process.core.speed))
            elif kind in (SENDS, RECEIVE, TRANSFER):
                request = self._late_requests.pop(one[1], None) or next(started, None)
                if request is None:
                    continue
                self._requests[one[1]] = request
                if isinstance(request, Receive):
                    found.append((kind, request.order, one[2], request.source, one[4], request.tag,
                                  one[6]))  # fmt: skip
                else:
                    found.append((kind, request.order, *one[2:]))
            elif kind == COLLECTIVE:
                found.append((kind, recorder.collective_number((one[1],)), *one[2:]))
            elif kind == POST:
                request = self._favours.pop(one[1], None)
                if request is not None:
                    found.append((kind, request.order))
            elif kind == JOIN:
                request, first = (self._requests.get(number) for number in one[1:3])
                if request is not None and first is not None:
                    found.append((kind, request.order, first.order, one[3]))
            elif kind == WAIT:
                found.append((kind, [self._renumbered(recorder, number) for number in one[1]],
                              one[2]))  # fmt: skip
            elif kind != LATE:
                found.append(tuple(one))
        recorder.started[self.process] = []
        return found

    def _renumbered(self, recorder: ReplayRecorder, number: int) -> int:
        if number < 0:
            return -recorder.collective_number((-number,))
        request = self._requests.pop(number, None)
        return 0 if request is None else request.order

    def _load(self) -> None:
        process = self.process
        process.prepare(self._schedule, self._context or _NOBODY, self._place, 0)
        executed = self._executed = process.slots
        count = len(self._open)
        executed[:count] = list(self._open.values())
        process.next_slot = count

    # Operations. Each returns False if it needs a program of its own: the steps before it are
    # executed first.

    def _compute(self, operation: Any) -> bool:
        seconds = float(operation[1])
        if not 0.0 <= seconds < float("inf"):
            raise Wrong(f"found compute of {seconds!r} s")
        speed = self.trace.speeds[self.rank] or self.process.core.speed
        self._schedule.compute(seconds * speed)
        return True

    def _pass(self, operation: Any) -> bool:
        seconds = float(operation[1])
        if not 0.0 <= seconds < float("inf"):
            raise Wrong(f"impossible time: {seconds!r} s")
        if self._skip > 0.0:
            self._skip, skipped = 0.0, self._skip
            seconds = max(0.0, seconds - skipped)
        self._schedule.sleep(seconds)
        return True

    def _fits(self, number: int, place: int) -> Context | None:
        """The context if the schedule may have messages of a rank of it."""
        context = self.instance.context(number)
        if self._context is None:
            if not 0 <= place < (1 << 29):
                raise Wrong(f"expected a rank of a context, got {place!r}")
            self._context, self._place = context, place
        elif self._context is not context or self._place != place:
            return None
        return context

    def _awaited_next(self, number: int) -> bool:
        """Whether the next operation waits for just one request."""
        following = self._next + 1
        if following < len(self._left):
            operation = self._left[following]
            return bool(operation[0] == WAIT and operation[1] == [number] and operation[2])
        return False

    def _append(self, code: int, peer: int, nbytes: int, tag: int) -> None:
        schedule = self._schedule
        schedule.codes.append(code)
        schedule.peers.append(peer)
        schedule.sizes.append(nbytes)
        schedule.tags.append(tag)

    def _slot(self, number: int) -> None:
        """The next slot is that of a request."""
        self._slots[number] = self._schedule.slots
        self._schedule.slots += 1

    def _send(self, operation: Any) -> bool:
        _, number, context, source, destination, tag, nbytes, mode, immediate = operation
        fitting = self._fits(context, source)
        if mode == STANDARD and fitting is not None:
            self._check(fitting, destination, tag, nbytes)
            if immediate:
                self._append(ISEND, destination, nbytes, tag)
                self._slot(number)
                return True
            if self._awaited_next(number):
                self._append(SEND, destination, nbytes, tag)
                self._next += 1
                return True
        if len(self._schedule):
            return False
        fitting = self.instance.context(context)
        self._check(fitting, destination, tag, nbytes)
        send = Send(fitting, source, destination, tag, nbytes, mode)
        send.immediate = bool(immediate)
        self._begin(number, send)
        return False

    def _receive(self, operation: Any) -> bool:
        _, number, context, source, destination, tag, nbytes, *match = operation
        fitting = self._fits(context, destination)
        if fitting is None:
            return False
        if source < 0 or tag < 0:
            found = match or self.trace.match(number)
            if found is not None:
                source, tag, _ = found
        self._check(fitting.peer or fitting, source, tag, nbytes)
        if self._awaited_next(number):
            self._append(RECV, source, nbytes, tag)
            self._next += 1
        else:
            self._append(IRECV, source, nbytes, tag)
            self._slot(number)
        return True

    def _check(self, context: Context, peer: int, tag: int, nbytes: int) -> None:
        known = -1_000_000_007
        if type(peer) is not int or not (0 <= peer < len(context.members) or peer == known):
            raise Wrong(
                f"expected one of {len(context.members)} ranks of a communicator, got {peer!r}"
            )
        if type(tag) is not int or not (0 <= tag < 1 << 32 or tag == known):
            raise Wrong(f"found tag {tag!r}")
        if type(nbytes) is not int or not 0 <= nbytes < 1 << 63:
            raise Wrong(f"impossible size of a message: {nbytes!r} bytes")

    def _transfer(self, operation: Any) -> bool:
        if len(self._schedule):
            return False
        _, number, context, source, destination, nbytes = operation
        fitting = self.instance.context(context)
        self._check(fitting, source, 0, nbytes)
        self._check(fitting, destination, 0, nbytes)
        self._begin(number, Transfer(fitting, source, destination, nbytes, _landed))
        return False

    def _begin(self, number: int, request: KernelRequest) -> None:
        """Load the process with the start of one request."""
        self._next += 1
        self._open[number] = request
        process = self.process
        process.starts = [request]
        process.next_start = 0
        process.paid = False
        request.expect(process)

    def _collective(self, operation: Any) -> bool:
        if len(self._schedule):
            return False
        _, number, context, tag, background, arguments = operation
        kind = self.instance.context(context)
        _check_tag(tag)
        members = self.trace.members[context]
        if self.rank not in members:
            raise Wrong(f"rank {self.rank} makes a call on a communicator of other ranks")
        me = members.index(self.rank)
        if background:
            arguments = {**arguments, "nonblocking": True}
        schedule = self.instance.schedule(context, number, me, arguments)
        self._next += 1
        recorder = self.instance.recorder
        entered = 0
        if recorder is not None:
            entered = recorder.collective_number((number,))
            recorder.enter(self.process, entered, kind)
        if not background:
            if recorder is not None:
                recorder.posts(self.process, entered)
            self.process.prepare(schedule, kind, me, tag)
            return False
        main = self.process
        request = self._open[-number] = KernelRequest()
        follower = Process(main.engine, main.pid, main.slot, main.core)
        follower.resume = lambda: request.complete(main.engine.now)
        follower.prepare(schedule, kind, me, tag)
        if recorder is not None:
            follower.purpose = request
            recorder.follow(follower, entered)
        follower.launch()
        return False

    def _steps(self, operation: Any) -> bool:
        if len(self._schedule):
            return False
        _, context, rank, tag, codes, peers, sizes, tags, amounts = operation
        schedule = Schedule()
        schedule.codes, schedule.peers, schedule.sizes = codes, peers, sizes
        schedule.tags, schedule.amounts = tags, amounts
        fitting = self.instance.context(context)
        _check_tag(tag)
        _check_steps(schedule, len(fitting.members))
        if type(rank) is not int or not 0 <= rank < len(fitting.members):
            raise Wrong(
                f"expected one of {len(fitting.members)} ranks of a communicator, got {rank!r}"
            )
        schedule.slots = sum(code in (ISEND, IRECV) for code in codes)
        self._next += 1
        if self.instance.recorder is not None:
            self.instance.recorder.posts(self.process, 0)
        self.process.prepare(schedule, fitting, rank, tag)
        return False

    def _wait(self, operation: Any) -> bool:
        _, numbers, every = operation
        if not every:
            return True  # the request that ended it follows
        found = sorted(
            slot for slot in [self._slots.pop(number, -1) for number in numbers] if slot >= 0
        )
        # Slots that are next to each other are awaited in one step.
        first = 0
        for i, slot in enumerate(found, 1):
            if i == len(found) or found[i] != slot + 1:
                self._step(WAITALL, found[first], slot + 1)
                first = i
        return True

    def _late(self, operation: Sequence[int]) -> bool:
        """Another rank posts the request of the next operation, which costs nothing."""
        if len(self._schedule):
            return False
        kind, number, context, source, destination, tag, nbytes, *_ = self._left[self._next + 1]
        if number != operation[1] or kind not in (SENDS, RECEIVE):
            raise Wrong(f"expected the start of request {operation[1]!r}, got {kind!r}")
        fitting = self.instance.context(context)
        self._check(fitting, destination, tag, nbytes)
        self._check(fitting.peer or fitting, source, tag, nbytes)
        process = self.process
        request: Send | Receive
        if kind == SENDS:
            request = Send(fitting, source, destination, tag, nbytes)
            request.immediate = True
            request.expect(process)
        else:
            request = Receive(fitting, source, destination, tag, nbytes)
        self._next += 2
        self._open[number] = request
        instance = self.instance
        if number in instance.posted:
            instance.posted.discard(number)
            process.announce(request)
            request.post(process)
        else:
            instance.late[number] = request, process
            if instance.recorder is not None:
                self._late_requests[number] = request
                self._foreign.add(request)
        return False

    def _post(self, operation: Sequence[int]) -> bool:
        """Post the request of another rank."""
        if len(self._schedule):
            return False
        number = operation[1]
        self._next += 1
        found = self.instance.late.pop(number, None)
        if found is None:
            self.instance.posted.add(number)
        else:
            request, process = found
            if self.instance.recorder is not None:
                self._favours[number] = request
            process.announce(request)
            request.post(process)
        return False

    def _join(self, operation: Sequence[int]) -> bool:
        """A request completes together with others."""
        if len(self._schedule):
            return False
        _, number, first, left = operation
        self._next += 1
        joint = self._joints.get(first)
        if joint is None:
            joint = self._joints[first] = JointRequests(self.process, self.instance.recorder)
        request = self._open.pop(number, None)
        if request is None:
            raise Wrong(f"found request {number!r}, which is not open")
        joint.add(request)
        # A wait for all of them finds the first.
        self._open[first] = joint.whole
        if left == 0:
            del self._joints[first]
            joint.close()
        return False

    def _probe(self, operation: Any) -> bool:
        if len(self._schedule):
            return False
        _, number, source, destination, tag = operation
        context = self.instance.context(number)
        self._check(context.peer or context, source, tag, 0)
        self._check(context, destination, tag, 0)
        self._next += 1
        process = self.process
        probe = Receive(context, source, destination, tag, 0)
        engine = process.engine
        assert isinstance(engine, Engine)
        engine.post_probe(probe)
        process.waits = [probe]
        process.all = True
        return False

    def _step(self, code: int, first: int, last: int) -> None:
        schedule = self._schedule
        schedule.codes.append(code)
        schedule.peers.append(first)
        schedule.sizes.append(last)
        schedule.tags.append(0)


_Step = Callable[[RecordedPlayer, Any], bool]
_STEPS: dict[str, _Step] = {
    COMPUTE: RecordedPlayer._compute,
    PASS: RecordedPlayer._pass,
    SENDS: RecordedPlayer._send,
    RECEIVE: RecordedPlayer._receive,
    TRANSFER: RecordedPlayer._transfer,
    COLLECTIVE: RecordedPlayer._collective,
    STEPS: RecordedPlayer._steps,
    WAIT: RecordedPlayer._wait,
    JOIN: RecordedPlayer._join,
    LATE: RecordedPlayer._late,
    POST: RecordedPlayer._post,
    PROBE: RecordedPlayer._probe,
}
_NOBODY = Context(0, [])


def _check_tag(tag: object) -> None:
    if type(tag) is not int or not 0 <= tag < 1 << 31:
        raise Wrong(f"found tag {tag!r}")


def _check_steps(schedule: Schedule, size: int) -> None:
    """Refuse a schedule that cannot be executed on a communicator of `size` ranks."""
    codes, peers, sizes, tags = schedule.codes, schedule.peers, schedule.sizes, schedule.tags
    amounts = schedule.amounts
    if not all(isinstance(column, list) for column in (codes, peers, sizes, tags, amounts)):
        raise Wrong("found steps that are no columns")
    if not len(codes) == len(peers) == len(sizes) == len(tags):
        raise Wrong("found columns of different lengths")
    slots = 0
    for step in zip(codes, peers, sizes, tags):
        if not all(type(value) is int for value in step):
            raise Wrong(f"found step {step!r}")
        code, peer, nbytes, tag = step
        if code in _MESSAGES:
            valid = 0 <= peer < size and 0 <= nbytes < 1 << 63 and 0 <= tag < 1 << 31
            slots += code in (ISEND, IRECV)
        elif code in (WAIT_STEP, WAITALL):
            valid = 0 <= peer <= nbytes <= slots
        else:
            valid = code in _AMOUNTS and 0 <= peer < len(amounts)
        if not valid:
            raise Wrong(f"found step {step!r}")
    for amount in amounts:
        if type(amount) not in (int, float) or not 0.0 <= amount < float("inf"):
            raise Wrong(f"found amount {amount!r}")


_MESSAGES = frozenset((SEND, ISEND, RECV, IRECV, SHARE))
_AMOUNTS = frozenset((SLEEP, REDUCE, COPY, COMPUTE_STEP))


def _landed(transfer: Transfer) -> None:
    """Do nothing: a replay needs no bytes."""
