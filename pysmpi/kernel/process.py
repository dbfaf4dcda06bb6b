"""Processes: they execute steps in virtual time.

A process has a program of at most four parts, executed in this order: pay a debt of compute, start
some requests, execute a schedule, wait for some requests. Every call of an MPI program is one such
program, so its greenlet is left and entered once for any number of messages.
"""

from typing import Any, Final, Optional

from mypy_extensions import mypyc_attr

from pysmpi.kernel.activities import Activity, Constraint, present
from pysmpi.kernel.meter import KERNEL, SWITCHES
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
NEVER: Final = 1 << 60  # a step that no schedule has
FRESH: Final = 0  # not begun
PAID: Final = 1  # its start cost is paid
POSTED: Final = 2  # its request is posted, or its wait is over


@mypyc_attr(allow_interpreted_subclasses=True)
class Pace:
    """The speed of cores that changes with time, as parts of their full speed."""

    def seconds(self, begin: float, work: float) -> float:
        """The seconds that `work` seconds at full speed take from the date `begin` (s) on."""
        return work


class Core:
    """A core of a host: `speed` in flop/s, shared by the `residents` that compute on it.

    With a `pace` its speed changes; `factor` is the present part of its full speed.
    """

    def __init__(self, speed: float, host: str = "", number: int = 0) -> None:
        self.speed: float = speed
        self.host: str = host
        self.number: int = number
        self.residents: int = 0
        self.shared: Optional[Constraint] = None
        self.pace: Optional[Pace] = None
        self.factor: float = 1.0

    def alone(self, begin: float, seconds: float) -> float:
        """The seconds that compute takes without others; at full speed it takes `seconds`."""
        pace = self.pace
        return seconds if pace is None else pace.seconds(begin, seconds)

    def bills_alone(self) -> bool:
        """Whether compute is billed with the changes of speed, as no others share the core."""
        return self.pace is not None and self.residents <= 1

    @property
    def constraint(self) -> Constraint:
        """The resource that several residents share; most cores have one, and need none."""
        if self.shared is None:
            self.shared = Constraint(self.speed * self.factor, f"{self.host}/{self.number}")
        return self.shared


class Execution(Activity):
    """Flops of one process on a core that others use too."""

    def __init__(self, process: "Process", flops: float) -> None:
        core = process.core
        constraint = core.constraint
        super().__init__(flops, 1.0, constraint.capacity, [constraint], [1.0])
        self.process: Process = process
        # The date (s) at which it would end without others.
        now = process.engine.now
        self.alone: float = now + core.alone(now, flops / core.speed)

    def finish(self) -> None:
        """Resume the process."""
        process = self.process
        late = process.engine.now - self.alone
        if late > 0.0:
            process.core_wait_seconds += late
        process.engine.ready.append(process)


class Process(AbstractProcess):
    """An executor of steps; as event, the end of the time that it lets pass.

    `slot` is its place on the machine, as the transport numbers them. When its program is done
    the engine calls `resume`; a process that must wait calls `suspend` and is called back
    through `resume`; it then calls `awake` of the engine, if there is one. The figures
    `compute_seconds`, `comm_seconds` (inside calls, waiting for others included),
    `overhead_seconds` (of these, busy with messages) and `core_wait_seconds` (others had the core)
    add up as it runs.
    """

    def __init__(self, engine: AbstractEngine, pid: int, slot: int, core: Core) -> None:
        super().__init__(engine, pid, slot)
        # The order of the attributes is that in memory: first those of each message of a program.
        self.debt: float = 0.0  # seconds of the core that the next call must let pass first
        self.starts: list[KernelRequest] = NOTHING
        self.next_start: int = 0
        self.paid: bool = False
        self.waiting: bool = False
        self.inline: bool = False
        self.finished: bool = False
        self.waits: list[KernelRequest] = NOTHING
        self.outstanding: int = 0
        self.busy: float = 0.0  # date (s) until which completions keep the process busy
        self.since: float = 0.0  # date (s) of the begin of its latest wait
        self.schedule: Optional[Schedule] = None
        # Messages whose data must be saved if the running call ends before they are matched.
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
        self.blocked: Optional[KernelRequest] = None  # request of a blocking step
        self.plans: list[Optional[Plan]] = NO_PLANS  # by step, if they are kept for repetitions
        self.core: Core = core
        # For a process in the background: the request that completes when it is done.
        self.purpose: Optional[KernelRequest] = None

    # Operations of a program. Each call returns when it is complete, in virtual time.

    def start(self, request: KernelRequest) -> None:
        """Start one request: pay its start cost and post it."""
        self.starts = [request]
        request.expect(self)
        self.perform()

    def announce(self, request: KernelRequest) -> None:
        """Tell listeners of a request that is posted next, in the name of this process.

        The process may do something else, and pays nothing.
        """
        if self.engine.listeners.request_started is not None:
            self._tell_started(request)

    def start_and_wait(self, request: KernelRequest) -> None:
        """Start one request and wait for it."""
        self.starts = self.waits = [request]
        self.all = True
        request.expect(self)
        self.perform()

    def exchange(self, starts: "list[KernelRequest]", waits: "list[KernelRequest]") -> None:
        """Start requests in order, then wait for all of `waits`."""
        self.prepare_exchange(starts, waits)
        self.perform()

    def prepare_exchange(self, starts: "list[KernelRequest]", waits: "list[KernelRequest]") -> None:
        """Load the start of requests, and the wait for all of `waits`."""
        for request in starts:
            request.expect(self)
        self.starts = starts
        self.waits = waits
        self.all = True

    def wait(self, requests: "list[KernelRequest]") -> None:
        """Wait until all requests are complete, and pay their finish costs."""
        self.waits = requests
        self.all = True
        self.perform()

    def wait_any(self, requests: "list[KernelRequest]") -> None:
        """Wait until one request is complete; its finish cost is still to be paid."""
        for request in requests:
            if request.done:
                if self.debt > 0.0:
                    self.perform()
                if self.engine.listeners.wait_begun is not None:
                    self._tell_waiting([request], False)
                return
        self.waits = requests
        self.all = False
        self.perform()

    def finish(self, request: KernelRequest) -> None:
        """Pay the finish cost of a request that is complete."""
        if request.finish_cost > 0.0:
            self.wait([request])
        elif self.engine.controlled:
            self.engine.waited(self, [request])

    def sleep(self, seconds: float) -> None:
        """Let time pass that is neither compute nor communication."""
        before = self.comm_seconds
        self.finish_compute()
        self.wait_until(self.engine.now + seconds)
        self.comm_seconds = before

    def wait_until(self, date: float) -> None:
        """Let time pass up to a date (s)."""
        self.finish_compute()
        engine = self.engine
        if date <= engine.now:
            return
        if engine.quiet_until(date):
            if engine.listeners.wait_begun is not None:
                self._tell_waiting([], True)
            engine.now = date
            methods = engine.listeners.wait_ended
            if methods is not None:
                for method in methods:
                    method(self, KernelRequest(), date)
        else:
            self.wait([engine.alarm(date)])

    def owe(self, seconds: float) -> None:
        """Let the next call first compute for `seconds` at full speed."""
        core = self.core
        if core.bills_alone():
            seconds = core.alone(self.engine.now + self.debt, seconds)
        self.debt += seconds

    def finish_compute(self) -> None:
        """Let the compute that is still owed pass."""
        if self.debt > 0.0:
            self.perform()

    def execute(self, schedule: Schedule, context: Context, rank: int, tag: int) -> None:
        """Execute a schedule as `rank` of a context; `tag` identifies this execution."""
        self.prepare(schedule, context, rank, tag)
        self.perform()

    def prepare(self, schedule: Schedule, context: Context, rank: int, tag: int) -> None:
        """Load a schedule without starting it."""
        self.schedule = schedule
        self.context = context
        self.rank = rank
        self.tag = tag
        self.step = 0
        self.stage = FRESH
        self.slots = [None] * schedule.slots if schedule.slots > 0 else NO_SLOTS
        self.next_slot = 0

    def reset(self) -> None:
        """Forget the program: its requests no longer wake it."""
        for request in self.waits:
            request.waiter = None
        for started in self.slots:
            if started is not None:
                started.waiter = None
        self.starts = NOTHING
        self.next_start = 0
        self.paid = False
        self.waits = NOTHING
        self.waiting = False
        self.all = True
        self.outstanding = 0
        self.schedule = None
        self.slots = NO_SLOTS
        if self.blocked is not None:
            self.blocked.waiter = None
            self.blocked = None
        self.stage = FRESH
        if self.core.shared is not None:
            self._leave_core()

    def _leave_core(self) -> None:
        """Stop computing on a core that others use, too."""
        for activity in present(self.core.constraint):
            if isinstance(activity, Execution) and activity.process is self:
                self.engine.system.remove(activity)

    def pending(self) -> "list[KernelRequest]":
        """The requests that the process waits for."""
        found = [request for request in self.waits if not request.done]
        for started in self.slots:
            if started is not None and not started.done:
                found.append(started)
        if self.blocked is not None and not self.blocked.done:
            found.append(self.blocked)
        return found

    def follow(self, requests: "list[KernelRequest]") -> None:
        """Wait for all requests in the background; `resume` is called when they are complete."""
        self.waits = requests
        self.all = True
        self.launch()

    def launch(self) -> None:
        """Continue from now, as soon as the running process waits."""
        self.engine.ready.append(self)

    def lead(self, follower: "Follower") -> Optional["Lead"]:
        """Execute the first steps of a follower's schedule, up to the first that waits.

        The follower then continues in the background. The messages of these steps belong to the
        running call, which also pays for them: return a request that completes when it has, None
        if they cost nothing.
        """
        schedule = follower.schedule
        slots = follower.slots
        assert schedule is not None
        follower.last = schedule.last_wait()
        count = schedule.count_starts()
        if count == 0:
            follower.launch()
            return None
        follower.schedule = schedule.first(count)
        resume = follower.resume
        led = Lead()

        def go_on() -> None:
            follower.schedule = schedule
            follower.slots = slots
            follower.resume = resume
            self.overhead_seconds += follower.overhead_seconds
            follower.launch()
            led.complete(self.engine.now)

        follower.resume = go_on
        if follower._advance():
            go_on()
            return None
        return led

    # Implementation.

    def perform(self) -> None:
        """Execute the program that is prepared; returns when it is complete, in virtual time.

        Hot calls prepare their programs in functions that have returned: each waiting rank has a
        copy of the stack below this one.
        """
        engine = self.engine
        meter = engine.meter
        entered = self._program_begun()
        waited = self.core_wait_seconds
        before = 0 if meter is None else meter.enter(KERNEL)
        suspended = False
        try:
            if not self._advance():
                self.inline = False
                if meter is not None:
                    meter.enter(SWITCHES)
                suspended = True
                self.suspend()
        finally:
            if suspended and engine.awake is not None:
                engine.awake()
            self._returning(before)
        self._program_ended(entered, waited)

    def _program_begun(self) -> float:
        """The process enters its program; the date (s) at which its compute has passed."""
        engine = self.engine
        methods = engine.listeners.program_begun
        if methods is not None:
            for method in methods:
                method(self, engine.now)
        self.compute_seconds += self.debt
        self.inline = True
        self.calling = True
        return engine.now + self.debt

    def _returning(self, part: int) -> None:
        """The process leaves its program, also with an exception; `part` is metered from now on."""
        meter = self.engine.meter
        if meter is not None:
            meter.enter(part)
        self.inline = False
        self.calling = False
        if len(self.lent) > 0:
            self._keep()

    def _program_ended(self, entered: float, waited: float) -> None:
        """The program that was entered at a date (s) is complete.

        By then the process had waited for its core for `waited` seconds.
        """
        engine = self.engine
        self.comm_seconds += engine.now - entered - (self.core_wait_seconds - waited)
        methods = engine.listeners.program_ended
        if methods is not None:
            for method in methods:
                method(self, engine.now)

    def lend(self, send: Send) -> None:
        """Save the data of an unmatched message when the running call ends, not before."""
        if len(self.lent) == 0:
            self.lent = [send]
        else:
            self.lent.append(send)

    def _keep(self) -> None:
        lent = self.lent
        self.lent = NO_SENDS
        keep = self.engine.keep
        for send in lent:
            if send.unexpected and send.payload is not None:
                keep(send)

    def run(self) -> None:
        """Continue; called by the engine when the process is ready."""
        if self._advance():
            engine = self.engine
            engine.current = self
            meter = engine.meter
            if meter is None:
                self.resume()
            else:
                meter.enter(SWITCHES)
                self.resume()
                meter.enter(KERNEL)

    def fire(self) -> None:
        """The time has passed."""
        self.engine.ready.append(self)

    def notify(self, request: KernelRequest) -> None:
        """A request that the process waits for is complete."""
        now = self.engine.now
        if self.busy < now:
            self.busy = now
        if self.all:
            self._pay(request)
        self.outstanding -= 1
        if self.outstanding == 0:
            methods = self.engine.listeners.wait_ended
            if methods is not None:
                for method in methods:
                    method(self, request, now)
            if self.busy > now:
                self.engine.queue.push(self.busy, self)
            else:
                self.engine.ready.append(self)

    def _advance(self) -> bool:
        """Go as far as the clock allows; True when the program is done."""
        if self.debt > 0.0:
            seconds = self.debt
            self.debt = 0.0
            billed = self.core.bills_alone()
            if not (self._pass(seconds) if billed else self._compute(seconds)):
                return False
        while self.next_start < len(self.starts):
            request = self.starts[self.next_start]
            if not self.paid:
                self.paid = True
                if request.start_cost > 0.0 and not self._hold(request.start_cost):
                    return False
            self.paid = False
            self.next_start += 1
            if self.engine.listeners.request_started is not None:
                self._tell_started(request)
            request.post(self)
        if self.schedule is not None:
            if not self._execute(self.schedule):
                return False
            self.schedule = None
            self.slots = NO_SLOTS
        if len(self.waits) > 0 and not self.waiting:
            self.waiting = True
            if not self._await_requests():
                return False
        if not self.all:
            for request in self.waits:
                request.waiter = None
        elif self.engine.controlled:
            self.engine.waited(self, self.waits)
        self.waiting = False
        self.starts = NOTHING
        self.next_start = 0
        self.waits = NOTHING
        return True

    def _hold(self, seconds: float) -> bool:
        """Let overhead time pass; True if it has passed already."""
        self.overhead_seconds += seconds
        return self._pass(seconds)

    def _pass(self, seconds: float) -> bool:
        engine = self.engine
        date = engine.now + seconds
        if self.inline and engine.quiet_until(date):
            engine.now = date
            return True
        self.inline = False
        engine.queue.push(date, self)
        return False

    def _compute(self, seconds: float) -> bool:
        """Use the core for `seconds` of its full speed; True if it is done already."""
        core = self.core
        if core.residents <= 1:
            return self._pass(core.alone(self.engine.now, seconds))
        if self.inline and (core.shared is None or core.shared.count == 0):
            engine = self.engine
            date = engine.now + core.alone(engine.now, seconds)
            if engine.quiet_until(date):
                engine.now = date
                return True
        self.inline = False
        self.engine.system.add(Execution(self, seconds * self.core.speed))
        return False

    def _pay(self, request: KernelRequest) -> None:
        """Stay busy for as long as the completion of a request takes."""
        self.overhead_seconds += request.finish_cost
        self.busy += request.finish_cost
        request.finish_cost = 0.0

    def _await_requests(self) -> bool:
        if self.engine.listeners.wait_begun is not None:
            self._tell_waiting(self.waits, self.all)
        self.busy = self.engine.now
        outstanding = 0
        for request in self.waits:
            if request.done:
                if not self.all:
                    return True
                self._pay(request)
            elif request.waiter is not self:  # it is, if the request is listed twice
                request.waiter = self
                outstanding += 1
        return self._awaited(outstanding)

    def _await_slots(self, first: int, last: int) -> bool:
        slots = self.slots
        if self.engine.listeners.wait_begun is not None:
            self._tell_waiting(
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
        elif not self._send_on(code == ISEND):
            return False
        if code == ISEND:
            self._keep_slot()
        return True

    def _receive_step(self, schedule: Schedule, code: int) -> bool:
        step = self.step
        tag = self.tag + schedule.tags[step]
        if not self._receive(code == IRECV, schedule.peers[step], schedule.sizes[step], tag):
            return False
        if code == IRECV:
            self._keep_slot()
        return True

    def _keep_slot(self) -> None:
        """Have the request that was just started in the next slot."""
        self.slots[self.next_slot] = self.blocked
        self.next_slot += 1
        self.blocked = None

    def _send(self, immediate: bool, peer: int, nbytes: int, tag: int, plan: Plan) -> bool:
        """Begin with a step that sends; its request is `blocked`. True when the step is done."""
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
        return self._send_on(immediate)

    def _send_on(self, immediate: bool) -> bool:
        """Go on with a step that sends. True when it is done."""
        if self.stage == PAID:
            request = self.blocked
            assert request is not None
            if self.engine.listeners.request_started is not None:
                self._tell_started(request)
            request.post(self)
            if immediate:
                return True
            self.stage = POSTED
            if self.engine.listeners.wait_begun is not None:
                self._tell_waiting([request], True)
            if not request.done:
                self.busy = self.engine.now
                self.all = True
                request.waiter = self
                return self._awaited(1)
        return True

    def _receive(self, immediate: bool, peer: int, nbytes: int, tag: int) -> bool:
        """Go on with a step that receives, as `_send`."""
        if self.stage == FRESH:
            context = self.context
            assert context is not None
            receive = Receive(context, peer, self.rank, tag, nbytes)
            if self.engine.listeners.request_started is not None:
                self._tell_started(receive)
            self.blocked = receive
            receive.post(self)
            if immediate:
                return True
            self.stage = POSTED
            if self.engine.listeners.wait_begun is not None:
                self._tell_waiting([receive], True)
            self.busy = self.engine.now
            self.all = True
            if receive.done:
                self._pay(receive)
                return self._awaited(0)
            receive.waiter = self
            return self._awaited(1)
        return True

    def _tell_started(self, request: KernelRequest) -> None:
        """Notify listeners before the request is posted: its match may follow at once."""
        engine = self.engine
        request.listeners = engine.listeners
        methods = engine.listeners.request_started
        assert methods is not None
        for method in methods:
            method(request, self, engine.now)

    def _tell_waiting(self, requests: "list[KernelRequest]", all: bool) -> None:
        methods = self.engine.listeners.wait_begun
        assert methods is not None
        for method in methods:
            method(self, requests, all, self.engine.now)

    def _other_step(self, schedule: Schedule, code: int) -> bool:
        engine = self.engine
        where = schedule.peers[self.step]
        if code == SLEEP:
            return self._hold(schedule.amounts[where])
        if code == COMPUTE:
            return self._compute(schedule.amounts[where] / self.core.speed)
        if code == REDUCE:
            seconds = schedule.amounts[where] / engine.reduce_rate
            return seconds == 0.0 or self._compute(seconds)
        if code == COPY:
            seconds = schedule.amounts[where] / engine.copy_rate
            return seconds == 0.0 or self._compute(seconds)
        if code == SHARE:
            self._share(schedule, where)
            return True
        return self._await_slots(where, schedule.sizes[self.step])

    def _share(self, schedule: Schedule, peer: int) -> None:
        step = self.step
        context = self.context
        assert context is not None
        tag = self.tag + schedule.tags[step]
        send = Send(context, self.rank, peer, tag, schedule.sizes[step])
        send.plan = FREE
        send.detached = send.eager = True
        if self.engine.listeners.request_started is not None:
            self._tell_started(send)
        send.post(self)


class Lead(KernelRequest):
    """Completes when the first steps of a follower have passed: see `Process.lead`."""


class Follower(Process):
    """Executes the schedule of a non-blocking call in the background; completes `purpose`.

    The calling process pays the costs of messages that the schedule receives last: it does so when
    it waits, as it does for receives of its own.
    """

    def __init__(self, main: Process, purpose: KernelRequest) -> None:
        super().__init__(main.engine, main.pid, main.slot, main.core)
        self.purpose = purpose
        self.last: int = NEVER  # the step whose receives the caller pays for
        self.costs: list[tuple[float, float]] = []  # (date of arrival, seconds) of these

    def run(self) -> None:
        """Continue; at the end of the schedule complete the purpose, if nothing else follows."""
        if self.resume is not None:
            super().run()
        elif self._advance():
            self.engine.current = self
            self._end()

    def _end(self) -> None:
        purpose = self.purpose
        assert purpose is not None
        now = self.engine.now
        if len(self.costs) > 0:
            # Whoever waits pays for a message while it waits for the next one.
            waiter = purpose.waiter
            busy = now
            if isinstance(waiter, Process) and waiter.all:
                busy = waiter.since
            for date, seconds in self.costs:
                busy = (busy if busy > date else date) + seconds
            if busy > now:
                purpose.finish_cost += busy - now
        purpose.complete(now)

    def _pay(self, request: KernelRequest) -> None:
        if self.step < self.last:
            super()._pay(request)
        elif request.finish_cost > 0.0:
            self.costs.append((self.engine.now, request.finish_cost))
            request.finish_cost = 0.0
