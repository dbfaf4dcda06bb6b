"""Processes execute steps in simulated time.

The program of a process has at most four parts, in this order: pay a debt of compute, start some
requests, execute a schedule, wait for some requests. Every MPI call is one such program, so the
greenlet of a rank switches at most twice in a call with any number of messages.
"""

from typing import Any, Final, Optional

from mypy_extensions import mypyc_attr

from pysmpi.kernel.activities import Activity, Constraint, members_of
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
NEVER: Final = 1 << 60  # index of a step that no schedule has
FRESH: Final = 0  # the step has not begun
PAID: Final = 1  # its start cost is paid
POSTED: Final = 2  # its request is posted, or its time has begun to pass


@mypyc_attr(allow_interpreted_subclasses=True)
class Pace:
    """The speed of a core as a function of time, as a fraction of the full speed."""

    def seconds(self, begin: float, work: float) -> float:
        """The seconds that `work` seconds at full speed take from the time `begin` (s) on."""
        return work


class Core:
    """A core of a host: `speed` in flop/s, shared by the `residents` that compute on it.

    With a `pace` its speed changes; `factor` is the present fraction of the full speed.
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
        """The seconds that compute takes on a core of its own; at full speed it takes `seconds`."""
        pace = self.pace
        return seconds if pace is None else pace.seconds(begin, seconds)

    def bills_alone(self) -> bool:
        """Whether only the pace determines the time of compute: no others share the core."""
        return self.pace is not None and self.residents <= 1

    @property
    def constraint(self) -> Constraint:
        """The resource that several residents share; most cores have one resident and need none."""
        if self.shared is None:
            self.shared = Constraint(self.speed * self.factor, f"{self.host}/{self.number}")
        return self.shared


class Execution(Activity):
    """Flops of one process on a core that other processes use, too."""

    def __init__(self, process: "Process", flops: float) -> None:
        core = process.core
        constraint = core.constraint
        super().__init__(flops, 1.0, constraint.capacity, [constraint], [1.0])
        self.process: Process = process
        # The time (s) at which it would end without the others.
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

    `slot` is the number of its core in the transport. The engine calls `resume` when its program is
    complete. A process that must wait calls `suspend`, which returns when `resume` is called; it
    then calls `awake` of the engine, if there is one. `compute_seconds`, `comm_seconds` (in calls,
    with the waits for others), `overhead_seconds` (busy with messages, part of `comm_seconds`) and
    `core_wait_seconds` (others had the core) add up as it runs.
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

    # Operations of a program. Each returns when it is complete, in simulated time.

    def start(self, request: KernelRequest) -> None:
        """Start one request: pay its start cost and post it."""
        self.starts = [request]
        request.expect(self)
        self.perform()

    def announce(self, request: KernelRequest) -> None:
        """Notify listeners of a request that is posted next, in the name of this process.

        The process may be busy with something else, and pays nothing.
        """
        if self.engine.listeners.request_started is not None:
            self._report_start(request)

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
        """Prepare to start requests and to wait for all of `waits`."""
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
        """Wait until one request is complete; `finish` pays its finish cost."""
        for request in requests:
            if request.done:
                if self.debt > 0.0:
                    self.perform()
                if self.engine.listeners.wait_begun is not None:
                    self._report_wait([request], False)
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

    def wait_until(self, time: float) -> None:
        """Let time pass until `time` (s)."""
        self.finish_compute()
        engine = self.engine
        if time <= engine.now:
            return
        if engine.quiet_until(time):
            if engine.listeners.wait_begun is not None:
                self._report_wait([], True)
            engine.now = time
            methods = engine.listeners.wait_ended
            if methods is not None:
                for method in methods:
                    method(self, KernelRequest(), time)
        else:
            self.wait([engine.alarm(time)])

    def owe(self, seconds: float) -> None:
        """Add to the debt: the next call first computes for `seconds` at full speed."""
        core = self.core
        if core.bills_alone():
            seconds = core.alone(self.engine.now + self.debt, seconds)
        self.debt += seconds

    def finish_compute(self) -> None:
        """Let the compute pass that the process still owes."""
        if self.debt > 0.0:
            self.perform()

    def execute(self, schedule: Schedule, context: Context, rank: int, tag: int) -> None:
        """Execute a schedule as `rank` of a context; `tag` identifies this execution."""
        self.prepare(schedule, context, rank, tag)
        self.perform()

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

    def reset(self) -> None:
        """Drop the program: its requests no longer wake the process."""
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
        """Stop to compute on a core that others use, too."""
        for activity in members_of(self.core.constraint):
            if isinstance(activity, Execution) and activity.process is self:
                self.engine.system.remove(activity)

    def pending(self) -> "list[KernelRequest]":
        """The requests that the process waits for."""
        requests = [request for request in self.waits if not request.done]
        for started in self.slots:
            if started is not None and not started.done:
                requests.append(started)
        if self.blocked is not None and not self.blocked.done:
            requests.append(self.blocked)
        return requests

    def follow(self, requests: "list[KernelRequest]") -> None:
        """Wait for all requests in the background; `resume` follows when they are complete."""
        self.waits = requests
        self.all = True
        self.launch()

    def launch(self) -> None:
        """Continue from now, as soon as the running process waits."""
        self.engine.ready.append(self)

    def lead(self, follower: "Follower") -> Optional["Lead"]:
        """Execute the first steps of a follower's schedule, up to the first that waits.

        The follower then continues in the background. The messages of these steps belong to the
        running call, which also pays for them. Return a request that completes when it has paid;
        None if they cost nothing.
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
        """Execute the program that is prepared; returns when it is complete, in simulated time.

        Frequent calls prepare their programs in functions that have returned: each waiting rank
        holds a copy of the stack up to here.
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
        """The process enters its program; return the time (s) at which its debt has passed."""
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
        """The process leaves its program, also with an exception; the meter goes on with `part`."""
        meter = self.engine.meter
        if meter is not None:
            meter.enter(part)
        self.inline = False
        self.calling = False
        if len(self.lent) > 0:
            self._save_lent()

    def _program_ended(self, entered: float, waited: float) -> None:
        """The program is complete whose debt had passed at the time `entered` (s).

        The process had waited for its core for `waited` seconds before the program.
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

    def _save_lent(self) -> None:
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
        """The time has passed: the process is ready."""
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
        """Execute the program as far as the clock allows; True at its end."""
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
                self._report_start(request)
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
        if core.residents <= 1:
            return self._pass(core.alone(self.engine.now, seconds))
        if self.inline and (core.shared is None or core.shared.count == 0):
            engine = self.engine
            time = engine.now + core.alone(engine.now, seconds)
            if engine.quiet_until(time):
                engine.now = time
                return True
        self.inline = False
        self.engine.system.add(Execution(self, seconds * self.core.speed))
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

    def _fill_slot(self) -> None:
        """Put the request that was just started into the next slot."""
        self.slots[self.next_slot] = self.blocked
        self.next_slot += 1
        self.blocked = None

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


class Lead(KernelRequest):
    """Completes when the first steps of a follower are paid for: see `Process.lead`."""


class Follower(Process):
    """Executes the schedule of a non-blocking call in the background, then completes `purpose`.

    The calling process pays the costs of the messages that the schedule receives last. It pays when
    it waits, as it does for receives of its own.
    """

    def __init__(self, main: Process, purpose: KernelRequest) -> None:
        super().__init__(main.engine, main.pid, main.slot, main.core)
        self.purpose = purpose
        self.last: int = NEVER  # index of the step from which on the caller pays for receives
        self.costs: list[tuple[float, float]] = []  # (time of arrival, seconds) of these

    def run(self) -> None:
        """Continue; at the end of the schedule complete `purpose`, if nothing else follows."""
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
            # The waiting process pays for each message while it waits for the next one.
            waiter = purpose.waiter
            busy = now
            if isinstance(waiter, Process) and waiter.all:
                busy = waiter.since
            for time, seconds in self.costs:
                busy = (busy if busy > time else time) + seconds
            if busy > now:
                purpose.finish_cost += busy - now
        purpose.complete(now)

    def _pay(self, request: KernelRequest) -> None:
        if self.step < self.last:
            super()._pay(request)
        elif request.finish_cost > 0.0:
            self.costs.append((self.engine.now, request.finish_cost))
            request.finish_cost = 0.0
