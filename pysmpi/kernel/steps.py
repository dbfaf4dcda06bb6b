"""The execution of schedules: sends, receives, compute, overhead and waits in simulated time."""

from typing import Any, Final, Optional

from pysmpi.kernel.activities import Activity
from pysmpi.kernel.core import Core
from pysmpi.kernel.plan import FREE, Plan
from pysmpi.kernel.requests import (
    AbstractEngine,
    AbstractProcess,
    Context,
    KernelRequest,
    Receive,
    Send,
)
from pysmpi.kernel.schedule import (
    COMPUTE,
    COPY,
    IRECV,
    ISEND,
    REDUCE,
    SHARE,
    SLEEP,
    Schedule,
)

NOTHING: Final[list[KernelRequest]] = []
NO_SENDS: Final[list[Send]] = []
NO_SLOTS: Final[list[Optional[KernelRequest]]] = []
NO_PLANS: Final[list[Optional[Plan]]] = []

# Stages of one step of a schedule.
FRESH: Final = 0  # the step has not begun
PAID: Final = 1  # its start cost is paid
POSTED: Final = 2  # its request is posted, or its time has begun to pass


class Execution(Activity):
    """Flops of one process on a core, or from a memory, that other processes use, too.

    Then the core does something else for `interrupted` seconds at full speed, without the memory.
    `alone` is the time (s) at which both would end without the others.
    """

    def __init__(
        self, process: "StepExecutor", flops: float, interrupted: float, alone: float
    ) -> None:
        core = process.core
        constraint = core.constraint
        constraints = [constraint]
        weights = [1.0]
        memory = core.memory
        if memory is not None and flops > 0.0:
            constraints.append(memory)
            weights.append(core.traffic)
        if flops == 0.0:
            flops = interrupted * core.speed
            interrupted = 0.0
        super().__init__(flops, 1.0, constraint.capacity, constraints, weights)
        self.process: StepExecutor = process
        self.interrupted: float = interrupted
        self.alone: float = alone

    def finish(self) -> None:
        """Resume the process."""
        process = self.process
        if self.interrupted > 0.0:
            process.engine.system.add(Execution(process, 0.0, self.interrupted, self.alone))
            return
        late = process.engine.now - self.alone
        if late > 0.0:
            process.core_wait_seconds += late
        process.engine.ready.append(process)


class StepExecutor(AbstractProcess):
    """The part of a process that executes schedules and lets time pass.

    A step returns False if it must wait: the process goes on with it when the engine runs the
    process again. `stage` tells how far the step is.
    """

    def __init__(self, engine: AbstractEngine, pid: int, slot: int, core: Core) -> None:
        super().__init__(engine, pid, slot)
        # The order of the attributes is their order in memory: each message reads the first ones.
        self.debt: float = 0.0  # seconds of compute that the next call lets pass first
        self.starts: list[KernelRequest] = NOTHING
        self.next_start: int = 0
        self.paid: bool = False
        self.waiting: bool = False
        self.inline: bool = False
        self.finished: bool = False
        self.waits: list[KernelRequest] = NOTHING
        self.outstanding: int = 0
        self.busy: float = 0.0  # time (s) until which completions keep the process busy
        self.since: float = 0.0  # time (s) at which its latest wait began
        self.schedule: Optional[Schedule] = None
        # Messages whose data the end of the running call saves, unless they are matched before.
        self.lent: list[Send] = NO_SENDS
        self.resume: Any = None
        self.suspend: Any = None
        self.comm_seconds: float = 0.0
        self.overhead_seconds: float = 0.0
        self.compute_seconds: float = 0.0
        self.core_wait_seconds: float = 0.0

        self.context: Optional[Context] = None
        self.rank: int = 0
        self.tag: int = 0
        self.step: int = 0
        self.stage: int = FRESH
        self.slots: list[Optional[KernelRequest]] = NO_SLOTS
        self.next_slot: int = 0
        self.blocked: Optional[KernelRequest] = None  # the request of a blocking step
        self.plans: list[Optional[Plan]] = NO_PLANS  # by step, for schedules that are repeated
        self.core: Core = core
        # For a process in the background: the request that completes at its end.
        self.purpose: Optional[KernelRequest] = None

    def prepare(self, schedule: Schedule, context: Context, rank: int, tag: int) -> None:
        """Prepare a schedule without starting it."""
        self.schedule = schedule
        self.context = context
        self.rank = rank
        self.tag = tag
        self.step = 0
        self.stage = FRESH
        self.slots = [None] * schedule.slots if schedule.slots > 0 else NO_SLOTS
        self.next_slot = 0

    def _fill_slot(self) -> None:
        """Put the request that was just started into the next slot."""
        self.slots[self.next_slot] = self.blocked
        self.next_slot += 1
        self.blocked = None

    def _hold(self, seconds: float) -> bool:
        """Let overhead time pass; True if it has passed at once."""
        self.overhead_seconds += seconds
        return self._pass(seconds)

    def _pass(self, seconds: float) -> bool:
        engine = self.engine
        time = engine.now + seconds
        if self.inline and engine.quiet_until(time):
            engine.now = time
            return True
        self.inline = False
        engine.queue.push(time, self)
        return False

    def _compute(self, seconds: float) -> bool:
        """Use the core for `seconds` at full speed; True if they have passed at once."""
        core = self.core
        if not core.shares():
            return self._pass(core.alone(self.engine.now, seconds))
        memory = core.memory
        engine = self.engine
        interrupted = core.interrupted(seconds)
        pace = core.pace
        alone = seconds if pace is None else pace.seconds(engine.now, seconds)
        time = engine.now + alone + interrupted
        if (
            self.inline
            and (core.shared is None or core.shared.count == 0)
            and (memory is None or memory.count == 0)
            and engine.quiet_until(time)
        ):
            engine.now = time
            return True
        self.inline = False
        engine.system.add(Execution(self, seconds * core.speed, interrupted, time))
        return False

    def _pay(self, request: KernelRequest) -> None:
        """Be busy for the finish cost of a request."""
        self.overhead_seconds += request.finish_cost
        self.busy += request.finish_cost
        request.finish_cost = 0.0

    def _await_requests(self) -> bool:
        if self.engine.listeners.wait_begun is not None:
            self._report_wait(self.waits, self.all)
        self.busy = self.engine.now
        outstanding = 0
        for request in self.waits:
            if request.done:
                if not self.all:
                    return True
                self._pay(request)
            elif request.waiter is not self:  # it is, if the list has the request twice
                request.waiter = self
                outstanding += 1
        return self._awaited(outstanding)

    def _await_slots(self, first: int, last: int) -> bool:
        slots = self.slots
        if self.engine.listeners.wait_begun is not None:
            self._report_wait(
                [request for request in slots[first:last] if request is not None], True
            )
        self.busy = self.engine.now
        self.all = True
        outstanding = 0
        for i in range(first, last):
            request = slots[i]
            if request is None:
                continue
            if request.done:
                slots[i] = None
                self._pay(request)
            else:
                request.waiter = self
                outstanding += 1
        return self._awaited(outstanding)

    def _awaited(self, outstanding: int) -> bool:
        if outstanding > 0:
            self.inline = False
            self.since = self.engine.now
            self.outstanding = outstanding if self.all else 1
            return False
        engine = self.engine
        if self.busy > engine.now:
            if self.inline and engine.quiet_until(self.busy):
                engine.now = self.busy
                return True
            self.inline = False
            engine.queue.push(self.busy, self)
            return False
        return True

    def _execute(self, schedule: Schedule) -> bool:
        """Execute steps until one must wait; True at the end of the schedule."""
        codes = schedule.codes
        count = len(codes)
        while self.step < count:
            code = codes[self.step]
            if code <= ISEND:
                if not self._send_step(schedule, code):
                    return False
            elif code <= IRECV:
                if not self._receive_step(schedule, code):
                    return False
            elif self.stage == FRESH:
                self.stage = POSTED
                if not self._other_step(schedule, code):
                    return False
            self.stage = FRESH
            self.step += 1
        self.blocked = None
        return True

    def _send_step(self, schedule: Schedule, code: int) -> bool:
        if self.stage == FRESH:
            step = self.step
            peer = schedule.peers[step]
            nbytes = schedule.sizes[step]
            plans = self.plans
            plan = plans[step] if len(plans) > 0 else None
            if plan is None:
                context = self.context
                assert context is not None
                plan = self.plan_to(context, peer, nbytes)
                if len(plans) > 0:
                    plans[step] = plan
            if not self._send(code == ISEND, peer, nbytes, self.tag + schedule.tags[step], plan):
                return False
        elif not self._continue_send(code == ISEND):
            return False
        if code == ISEND:
            self._fill_slot()
        return True

    def _receive_step(self, schedule: Schedule, code: int) -> bool:
        step = self.step
        tag = self.tag + schedule.tags[step]
        if not self._receive(code == IRECV, schedule.peers[step], schedule.sizes[step], tag):
            return False
        if code == IRECV:
            self._fill_slot()
        return True

    def _other_step(self, schedule: Schedule, code: int) -> bool:
        engine = self.engine
        index = schedule.peers[self.step]
        if code == SLEEP:
            return self._hold(schedule.amounts[index])
        if code == COMPUTE:
            return self._compute(schedule.amounts[index] / self.core.speed)
        if code == REDUCE:
            seconds = schedule.amounts[index] / engine.reduce_rate
            return seconds == 0.0 or self._compute(seconds)
        if code == COPY:
            seconds = schedule.amounts[index] / engine.copy_rate
            return seconds == 0.0 or self._compute(seconds)
        if code == SHARE:
            self._share(schedule, index)
            return True
        return self._await_slots(index, schedule.sizes[self.step])

    def _share(self, schedule: Schedule, peer: int) -> None:
        step = self.step
        context = self.context
        assert context is not None
        tag = self.tag + schedule.tags[step]
        send = Send(context, self.rank, peer, tag, schedule.sizes[step])
        send.plan = FREE
        send.detached = send.eager = True
        if self.engine.listeners.request_started is not None:
            self._report_start(send)
        send.post(self)

    def _send(self, immediate: bool, peer: int, nbytes: int, tag: int, plan: Plan) -> bool:
        """Begin a step that sends; `blocked` is its request. True at the end of the step."""
        context = self.context
        assert context is not None
        send = Send(context, self.rank, peer, tag, nbytes)
        if immediate:
            send.immediate = True
        send.follow(plan)
        self.blocked = send
        self.stage = PAID
        if send.start_cost > 0.0 and not self._hold(send.start_cost):
            return False
        return self._continue_send(immediate)

    def _continue_send(self, immediate: bool) -> bool:
        """Continue a step that sends; True at its end."""
        if self.stage == PAID:
            request = self.blocked
            assert request is not None
            if self.engine.listeners.request_started is not None:
                self._report_start(request)
            request.post(self)
            if immediate:
                return True
            self.stage = POSTED
            if self.engine.listeners.wait_begun is not None:
                self._report_wait([request], True)
            if not request.done:
                self.busy = self.engine.now
                self.all = True
                request.waiter = self
                return self._awaited(1)
        return True

    def _receive(self, immediate: bool, peer: int, nbytes: int, tag: int) -> bool:
        """Begin or continue a step that receives, as `_send` and `_continue_send`."""
        if self.stage == FRESH:
            context = self.context
            assert context is not None
            receive = Receive(context, peer, self.rank, tag, nbytes)
            if self.engine.listeners.request_started is not None:
                self._report_start(receive)
            self.blocked = receive
            receive.post(self)
            if immediate:
                return True
            self.stage = POSTED
            if self.engine.listeners.wait_begun is not None:
                self._report_wait([receive], True)
            self.busy = self.engine.now
            self.all = True
            if receive.done:
                self._pay(receive)
                return self._awaited(0)
            receive.waiter = self
            return self._awaited(1)
        return True

    def _report_start(self, request: KernelRequest) -> None:
        """Notify listeners before the request is posted: its match may follow at once."""
        engine = self.engine
        request.listeners = engine.listeners
        methods = engine.listeners.request_started
        assert methods is not None
        for method in methods:
            method(request, self, engine.now)

    def _report_wait(self, requests: "list[KernelRequest]", all: bool) -> None:
        methods = self.engine.listeners.wait_begun
        assert methods is not None
        for method in methods:
            method(self, requests, all, self.engine.now)
