"""Processes execute steps in simulated time.

The program of a process has at most four parts, in this order: pay a debt of compute, start some
requests, execute a schedule, wait for some requests. Every MPI call is one such program, so the
greenlet of a rank switches at most twice in a call with any number of messages.
"""

from pysmpi.kernel.activities import members_of
from pysmpi.kernel.meter import KERNEL, SWITCHES
from pysmpi.kernel.requests import Context, KernelRequest, Send
from pysmpi.kernel.schedule import Schedule
from pysmpi.kernel.steps import FRESH, NO_SENDS, NO_SLOTS, NOTHING, Execution, StepExecutor


class Process(StepExecutor):
    """An executor of steps; as event, the end of the time that it lets pass.

    `slot` is the number of its core in the transport. The engine calls `resume` when its program is
    complete. A process that must wait calls `suspend`, which returns when `resume` is called; it
    then calls `awake` of the engine, if there is one. `compute_seconds`, `comm_seconds` (in calls,
    with the waits for others), `overhead_seconds` (busy with messages, part of `comm_seconds`) and
    `core_wait_seconds` (others had the core) add up as it runs.
    """

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
