"""The player of a thread of a recording: it gives the kernel the operations of the thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pysmpi.errors import UsageError
from pysmpi.kernel.engine import Engine
from pysmpi.kernel.follower import Follower
from pysmpi.kernel.process import Process
from pysmpi.kernel.requests import STANDARD, Context, KernelRequest, Receive, Send, Transfer
from pysmpi.kernel.schedule import IRECV, ISEND, RECV, SEND, WAITALL, Schedule
from pysmpi.replay.joints import JointRequests
from pysmpi.replay.recorded_checks import check_message, check_steps, check_tag
from pysmpi.replay.recorded_common import RecordedCommon
from pysmpi.replay.replayed_calls import ReplayedCalls
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
from pysmpi.trace.recorded_lines import Wrong

# Steps of a schedule after which a new one begins.
ENOUGH = 512


class RecordedPlayer:
    """Executes the operations of one thread of a rank."""

    def __init__(self, common: RecordedCommon, rank: int, thread: int, process: Process) -> None:
        self.common = common
        self.trace = common.trace
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
        self._calls: ReplayedCalls | None = None  # if the replay is recorded
        if common.recorder is not None:
            self._calls = ReplayedCalls(
                common.recorder, process, rank, thread, self.trace.speeds, self.trace.sites
            )

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
            if self._calls is not None:
                self._calls.recorder.executed(self.process)
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
        self._begin_schedule()
        calls = self._calls
        if calls is not None:
            calls.begin()
        while True:
            if self._next >= len(self._left):
                if calls is not None:
                    if len(self._schedule):
                        break
                    calls.end()
                found = self.trace.next(self.rank, self.thread)
                if found is None:
                    break
                self.line, self._left, record = found
                self._next = 0
                if calls is not None and calls.read(record):
                    if self._lead():
                        return True
                    calls.begin()
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

    def _begin_schedule(self) -> None:
        """An empty schedule, whose first slots are those of open requests."""
        schedule = self._schedule = Schedule()
        self._context = None
        self._slots = {number: slot for slot, number in enumerate(self._open)}
        schedule.slots = len(self._open)

    def _lead(self) -> bool:
        """Execute the operations before the begin of a call; True if it has computed before."""
        left = self._left
        while self._next < len(left) and left[self._next][0] in (LATE, JOIN):
            _STEPS[left[self._next][0]](self, left[self._next])
        self._begin_schedule()
        if self._next == len(left) or left[self._next][0] != COMPUTE:
            return False
        self._compute(left[self._next])
        self._next += 1
        self._load()
        return True

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
        context = self.common.context(number)
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
            check_message(fitting, destination, tag, nbytes)
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
        fitting = self.common.context(context)
        check_message(fitting, destination, tag, nbytes)
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
        check_message(fitting.peer or fitting, source, tag, nbytes)
        if self._awaited_next(number):
            self._append(RECV, source, nbytes, tag)
            self._next += 1
        else:
            self._append(IRECV, source, nbytes, tag)
            self._slot(number)
        return True

    def _transfer(self, operation: Any) -> bool:
        if len(self._schedule):
            return False
        _, number, context, source, destination, nbytes = operation
        fitting = self.common.context(context)
        check_message(fitting, source, 0, nbytes)
        check_message(fitting, destination, 0, nbytes)
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
        kind = self.common.context(context)
        check_tag(tag)
        members = self.trace.members[context]
        if self.rank not in members:
            raise Wrong(f"rank {self.rank} makes a call on a communicator of other ranks")
        me = members.index(self.rank)
        if background:
            arguments = {**arguments, "nonblocking": True}
        schedule = self.common.schedule(context, number, me, arguments)
        self._next += 1
        recorder = self.common.recorder
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
        follower = Follower(main, request)
        follower.prepare(schedule, kind, me, tag)
        if recorder is not None:
            recorder.follow(follower, entered)
        led = follower.led_by(main)
        if led is not None:
            main.waits = [led]
            main.all = True
        return False

    def _steps(self, operation: Any) -> bool:
        if len(self._schedule):
            return False
        _, context, rank, tag, codes, peers, sizes, tags, amounts = operation
        schedule = Schedule()
        schedule.codes, schedule.peers, schedule.sizes = codes, peers, sizes
        schedule.tags, schedule.amounts = tags, amounts
        fitting = self.common.context(context)
        check_tag(tag)
        check_steps(schedule, len(fitting.members))
        if type(rank) is not int or not 0 <= rank < len(fitting.members):
            raise Wrong(
                f"expected one of {len(fitting.members)} ranks of a communicator, got {rank!r}"
            )
        schedule.slots = sum(code in (ISEND, IRECV) for code in codes)
        self._next += 1
        if self.common.recorder is not None:
            self.common.recorder.posts(self.process, 0)
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
        fitting = self.common.context(context)
        check_message(fitting, destination, tag, nbytes)
        check_message(fitting.peer or fitting, source, tag, nbytes)
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
        common = self.common
        if number in common.posted:
            common.posted.discard(number)
            process.announce(request)
            request.post(process)
        else:
            common.late[number] = request, process
            if self._calls is not None:
                self._calls.wait_for_post(number, request)
        return False

    def _post(self, operation: Sequence[int]) -> bool:
        """Post the request of another rank."""
        if len(self._schedule):
            return False
        number = operation[1]
        self._next += 1
        found = self.common.late.pop(number, None)
        if found is None:
            self.common.posted.add(number)
        else:
            request, process = found
            if self._calls is not None:
                self._calls.post(number, request)
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
            joint = self._joints[first] = JointRequests(self.process, self.common.recorder)
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
        context = self.common.context(number)
        check_message(context.peer or context, source, tag, 0)
        check_message(context, destination, tag, 0)
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


def _landed(transfer: Transfer) -> None:
    """Do nothing: a replay needs no bytes."""
