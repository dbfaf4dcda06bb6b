"""The engine advances the clock, runs the processes that are ready and carries messages.

One round of `Engine.run`: every ready process runs. Then the solver computes the rates of shared
resources, once for all changes at this instant. Then the clock moves to the next event.
"""

from typing import Any, Final, Optional

from pysmpi.kernel.activities import Activity
from pysmpi.kernel.choices import Control
from pysmpi.kernel.events import INFINITY, Event, QueueEntry
from pysmpi.kernel.matching import hopeless, is_wild, mailbox_of, undeliverable
from pysmpi.kernel.meter import KERNEL, SOLVER, START
from pysmpi.kernel.plan import Gap, Port, Transport
from pysmpi.kernel.requests import (
    AbstractEngine,
    AbstractProcess,
    KernelRequest,
    Receive,
    Send,
    Transfer,
    pricing_of,
)

# Events closer than this (s) are one instant: rates are made fair after all of them.
INSTANT: Final = 1e-11
# Events between two of the listeners' `ticked`.
TICK: Final = 1 << 14
# Alarms that no process waits for: as many may stay in the queue. Each of them costs a few hundred
# bytes; one pass over the queue removes them all.
MOST_IGNORED: Final = 10_000
# Runs of processes at one instant, more than any program needs: an error ends a simulation whose
# clock has stopped.
MOST_RUNS: Final = 200_000_000


class Flow(Activity):
    """The bytes of one message: first the latency, then the transfer over its route."""

    def __init__(self, engine: "Engine", send: Send) -> None:
        plan = send.plan
        assert plan is not None
        super().__init__(
            plan.volume / plan.factor, plan.penalty, plan.bound, plan.constraints, plan.weights,
            plan.kind,
        )  # fmt: skip
        self.engine: Engine = engine
        self.send: Send = send
        self.latent: bool = True

    def fire(self) -> None:
        """End the latency, or the transfer of a message without contention."""
        if not self.latent:
            Activity.fire(self)
            return
        self.latent = False
        if self.work > 0.0:
            self.engine.system.add(self)
        else:
            self.finish()

    def finish(self) -> None:
        """The last byte has arrived."""
        plan = self.send.plan
        if plan is not None and plan.regulator is not None:
            plan.regulator.ended(self)
        self.engine.arrive(self.send)


# Stages of a passage.
WAITS: Final = 0  # the message waits for the sender's port
LEAVES: Final = 1  # it has the port: its sender continues
ARRIVES: Final = 2  # it waits for the receiver's port
ENDS: Final = 3  # the last byte arrives


class Passage(Event):
    """A message that takes the ports of two hosts in turn."""

    def __init__(self, engine: "Engine", send: Send, gap: Gap) -> None:
        self.engine: Engine = engine
        self.send: Send = send
        self.gap: Gap = gap
        self.stage: int = WAITS

    def fire(self) -> None:
        """Go on to the next stage."""
        gap = self.gap
        send = self.send
        if self.stage == WAITS:
            time = self._take(gap.out, gap.lead) + gap.lead
            if send.eager or send.detached:
                self._after(time)
            else:
                self.stage = LEAVES
                self._at(time)
        elif self.stage == LEAVES:
            # At the arrival, only the receiver still waits for the message.
            send.detached = True
            send.complete(self.engine.now)
            self._after(self.engine.now)
        elif self.stage == ARRIVES:
            self.stage = ENDS
            self._at(self._take(gap.into, gap.ahead) + gap.last)
        else:
            self.engine.arrive(send)

    def _after(self, time: float) -> None:
        plan = self.send.plan
        assert plan is not None
        self.stage = ARRIVES
        self._at(time + plan.latency)

    def _at(self, time: float) -> None:
        engine = self.engine
        if time > engine.now:
            engine.queue.push(time, self)
        else:
            self.fire()

    def _take(self, port: Optional[Port], earlier: float) -> float:
        """Reserve a port, from `earlier` seconds before now if it was free; return the time (s)."""
        time = self.engine.now - earlier
        if port is not None:
            if port.free > time:
                time = port.free
            port.free = time + self.gap.hold
        return time


class Arrival(Event):
    """The envelope of a message arrives; receives with a wildcard, or probes, wait for it."""

    def __init__(self, engine: "Engine", send: Send) -> None:
        self.engine: Engine = engine
        self.send: Send = send

    def fire(self) -> None:
        """Announce the message."""
        self.engine.announce(self.send)


class Alarm(Event):
    """Completes a request at a time."""

    def __init__(self, engine: "Engine") -> None:
        self.engine: Engine = engine
        self.request: KernelRequest = KernelRequest()

    def fire(self) -> None:
        """Ring."""
        if not self.request.done:
            self.request.complete(self.engine.now)


class Engine(AbstractEngine):
    """One simulation: its clock `now` (s), its processes, its resources, its messages.

    Hooks belong to the layers above and cost nothing when unset: `deliver(send, receive)` moves the
    data of a matched message, `keep(send)` saves the data of a message whose sender continues
    before the match. `listeners` are notified of events. With a `control`, a strategy makes the
    choices that MPI leaves open, not the clock. `glance(time)` is called before the clock moves to
    a time after `glance_date`, if `glance_at` events have fired. Waits for the world outside have
    two hooks: `before(time)` is called before the clock moves to a time, and `idle()` when no event
    is left. Both return True if they may have changed the next events.

    With `by_arrival`, wildcards and probes match a message after its envelope has arrived, one
    latency after its posting; without it, as soon as it is posted.
    """

    def __init__(self, transport: Transport, slots: int) -> None:
        super().__init__(transport, slots)
        self.head: int = 0  # index of the next ready process
        self.runs: int = 0  # runs of processes at this instant
        self.due: Optional[QueueEntry] = None  # the next event of the same time, if there is one
        self.messages: int = 0
        self.bytes: int = 0
        self.events: int = 0
        self.since_tick: int = 0  # events since the latest `ticked`
        self.stopped: bool = False
        self.ignored: int = 0  # alarms without a waiter since the queue was last cleared of them
        self.by_arrival: bool = True
        self.deliver: Any = None
        self.control: Optional[Control] = None
        self.glance: Any = None
        self.glance_date: float = INFINITY
        self.glance_at: int = 0
        self.before: Any = None
        self.idle: Any = None

    def decide_by(self, control: Control) -> None:
        """Let a control make the choices that MPI leaves open."""
        self.control = control
        self.controlled = True

    def waited(self, process: AbstractProcess, requests: "list[KernelRequest]") -> None:
        """A process has learnt that some requests are complete."""
        if self.control is not None:
            self.control.waited(process, requests)

    def run(self) -> None:
        """Run until no event is left, or `stop` is called."""
        meter = self.meter
        if meter is not None:
            meter.enter(KERNEL)
        self._run()
        if meter is not None:
            meter.enter(START)

    def _run(self) -> None:
        queue = self.queue
        while not self.stopped:
            self._run_ready()
            if self.stopped:
                break
            if self.system.pending():
                if self.meter is None:
                    self.system.share()
                else:
                    self.meter.enter(SOLVER)
                    self.system.share()
                    self.meter.enter(KERNEL)
            if self.control is not None and self.control.decide():
                continue
            if queue.empty():
                if self.idle is not None and self.idle():
                    continue
                break
            time = queue.next()
            if time > self.glance_date and self.events >= self.glance_at:
                self.glance(time)
            if self.before is not None and time > self.now and self.before(time):
                continue
            end = time + INSTANT + time * 4e-15
            while not queue.empty():
                time = queue.next()
                if time > end:
                    break
                if time > self.now:
                    self.now = time
                    self.runs = 0
                self._fire(queue.pop())
                if self.stopped:
                    break

    def _fire(self, first: QueueEntry) -> None:
        queue = self.queue
        turn = first.turn
        count = 0
        due: Optional[QueueEntry] = first
        while due is not None:
            entry = due
            due = entry.after
            self.due = due
            event = entry.event
            queue.release(entry)
            count += 1
            event.fire()
            if self.head < len(self.ready):
                self._run_ready()
            if self.stopped:
                if due is not None:
                    queue.put_back(due, turn)
                    self.due = None
                return
        self.events += count
        self.since_tick += count
        if self.since_tick >= TICK:
            self.since_tick %= TICK
            if self.listeners.ticked is not None:
                self.listeners.notify("ticked")

    def more_now(self) -> bool:
        """Whether more events of the same time are still to fire."""
        return self.due is not None

    def stop(self) -> None:
        """Have `run` return before anything else happens."""
        self.stopped = True

    def _run_ready(self) -> None:
        ready = self.ready
        while self.head < len(ready) and not self.stopped:
            if self.control is not None and len(ready) - self.head > 1:
                i = self.head + self.control.first(self.processes_ready())
                ready[self.head], ready[i] = ready[i], ready[self.head]
            process = ready[self.head]
            assert process is not None
            ready[self.head] = None
            self.head += 1
            self.runs += 1
            if self.runs > MOST_RUNS:
                raise RuntimeError(f"{self.runs} steps at t={self.now!r} s, and time stands still")
            process.run()
        # After a stop, processes that have not run stay in the list for another `run`.
        if self.head == len(ready):
            ready.clear()
            self.head = 0

    def processes_ready(self) -> "list[AbstractProcess]":
        """The processes that continue at this instant, in their order."""
        return [process for process in self.ready[self.head :] if process is not None]

    def quiet_until(self, time: float) -> bool:
        """Whether no other process can have an event before or at `time` (s)."""
        if self.head < len(self.ready) or self.system.pending() or self.stopped:
            return False
        if self.before is not None:
            return False
        if time > self.glance_date and self.events >= self.glance_at:
            return False
        return self.due is None and (self.queue.empty() or self.queue.next() > time)

    def only_timeouts(self) -> bool:
        """Whether the next events only end waits that may also end before."""
        for event in self.queue.at(self.queue.next()):
            if not isinstance(event, Alarm):
                return False
            waiter = event.request.waiter
            if waiter is not None and waiter.all:
                return False
        return True

    def alarm(self, time: float) -> KernelRequest:
        """Return a request that completes at `time` (s)."""
        alarm = Alarm(self)
        self.queue.push(time, alarm)
        return alarm.request

    def complete_at(self, time: float, request: KernelRequest) -> None:
        """Complete `request` at `time` (s), unless it completes before."""
        alarm = Alarm(self)
        alarm.request = request
        self.queue.push(time, alarm)

    def ignore(self, request: KernelRequest) -> None:
        """No process waits for this request of `alarm` any more; its event is removed later."""
        request.done = True
        self.ignored += 1
        if self.ignored >= MOST_IGNORED:
            self.ignored = 0
            events: list[tuple[float, Event]] = []
            for time, event in self.queue.all():
                if not isinstance(event, Alarm) or not event.request.done:
                    events.append((time, event))
            self.queue.keep_only(events)

    def call_off(self, time: float, request: KernelRequest) -> None:
        """Cancel an event of `alarm` or `complete_at`."""
        for event in self.queue.at(time):
            if isinstance(event, Alarm) and event.request is request:
                self.queue.remove(time, event)
                return

    def post_send(self, send: Send) -> None:
        """Offer a message; start its flow when the protocol lets it start."""
        closed = send.context.closed
        if closed is not None:
            if send.source in closed:
                send.complete(self.now)
                return
            if undeliverable(send):
                send.detached = False  # so its call learns of the failure
                send.complete(self.now)
                return
        self.order += 1
        send.order = self.order
        self.messages += 1
        self.bytes += send.nbytes
        box = mailbox_of(send)
        now = self.now
        if self.by_arrival:
            plan = send.plan
            assert plan is not None
            send.visible = now + plan.latency
        send.time = now
        if self.control is not None:
            send.visible = INFINITY
            self.control.sent(send, box)
        receive = box.match_send(send, now)
        if receive is not None:
            self._match(send, receive)
            self._flow(send, now)
        elif self.control is None or not self.control.offered(send, box):
            if send.eager:
                self._flow(send, now)
            if self.control is not None:
                pass
            elif send.awaited:
                self.queue.push(send.visible, Arrival(self, send))
            elif len(box.index.probes) > 0:
                if send.visible > now:
                    self._await(send)
                else:
                    box.show(send, now)
        if send.detached:
            send.complete(self.now)

    def post_transfer(self, transfer: Transfer) -> None:
        """Start a transfer of bytes that needs no receive."""
        self.order += 1
        transfer.order = self.order
        self.messages += 1
        self.bytes += transfer.nbytes
        self._flow(transfer, self.now)

    def post_receive(self, receive: Receive) -> None:
        """Match a receive with a message, now or when one arrives."""
        closed = receive.context.closed
        if closed is not None and (receive.destination in closed or hopeless(receive)):
            receive.truncated = receive.destination not in closed
            receive.complete(self.now)
            return
        self.order += 1
        receive.order = self.order
        box = mailbox_of(receive)
        receive.time = self.now
        if self.control is not None:
            self.control.begun(receive)
        send = box.match_receive(receive, self.now)
        if send is not None:
            self.join(send, receive)
        elif self.control is not None:
            if is_wild(receive):
                self.control.received(receive, box)
                for coming in box.coming(receive, self.now):
                    coming.awaited = True
            if box.wild > 0:
                self.control.match_forced(box)
        elif box.unexpected > 0 and is_wild(receive):
            for coming in box.coming(receive, self.now):
                self._await(coming)

    def post_probe(self, receive: Receive) -> None:
        """Complete `receive`, without removing the message, when there is a matching message.

        `receive.message` is then this send, or None if the message can never come.
        """
        if receive.context.closed is not None and hopeless(receive):
            receive.truncated = True
            receive.complete(self.now)
            return
        self.order += 1
        receive.order = self.order
        if self.control is not None:
            self.control.begun(receive)
        box = mailbox_of(receive)
        send = box.peek(receive, self.now)
        if send is None:
            box.watch(receive)
            if self.control is not None:
                self.control.received(receive, box)
                self.control.match_forced(box)
            elif box.unexpected > 0:
                for coming in box.coming(receive, self.now):
                    self._await(coming)
        else:
            receive.message = send
            receive.complete(self.now)

    def claim(self, send: Send, receive: Receive) -> None:
        """Give a message that a matched probe has taken to its receive."""
        self.order += 1
        receive.order = self.order
        receive.time = self.now
        if self.control is not None:
            self.control.begun(receive)
        self.join(send, receive)

    def join(self, send: Send, receive: Receive) -> None:
        """Give an unexpected message to a receive."""
        self._match(send, receive)
        if send.arrived:
            send.receive = None
            receive.complete(self.now)
        elif not send.flowing:
            self._flow(send, self.now)

    def _await(self, send: Send) -> None:
        send.awaited = True
        self.queue.push(send.visible, Arrival(self, send))

    def announce(self, send: Send) -> None:
        """The envelope of a message has arrived."""
        if not send.unexpected:
            return
        box = mailbox_of(send)
        # The later of the two postings: no wait for a message is longer than its latency.
        time = send.time
        receive = box.offer(send)
        if receive is None:
            if len(box.index.probes) > 0:
                box.show(send, self.now)
            return
        if receive.time > time:
            time = receive.time
        self._match(send, receive)
        if send.arrived:
            send.receive = None
            receive.complete(self.now)
        elif not send.flowing:
            self._flow(send, time)

    def _match(self, send: Send, receive: Receive) -> None:
        receive.message = send
        send.receive = receive
        receive.truncated = send.nbytes > receive.nbytes
        plan = send.plan
        assert plan is not None
        if send.detached or plan.gap is not None:
            receive.finish_cost = plan.recv_cost
        if plan.pricing is not None:
            pricing_of(plan.pricing).matched(send, receive)
        methods = self.listeners.message_matched
        if methods is not None:
            for method in methods:
                method(send, receive, self.now)
        if self.control is not None:
            self.control.matched(send, receive)
        if self.deliver is not None and send.payload is not None:
            self.deliver(send, receive)

    def _flow(self, send: Send, time: float) -> None:
        """Start the transfer of a message that could start at `time` (s), now or earlier."""
        plan = send.plan
        assert plan is not None
        if plan.gap is not None:
            self._pass(send, plan.gap, time)
            return
        flow = Flow(self, send)
        if plan.regulator is not None:
            plan.regulator.begun(flow, self.system)
        send.flowing = True
        methods = self.listeners.flow_started
        if methods is not None:
            for method in methods:
                method(send, self.now)
        time += plan.latency
        if plan.latency > 0.0 and time > self.now:
            self.queue.push(time, flow)
        else:
            flow.fire()

    def _pass(self, send: Send, gap: Gap, time: float) -> None:
        """Start the passage of a message through the ports of its hosts, from `time` (s) on."""
        send.flowing = True
        methods = self.listeners.flow_started
        if methods is not None:
            for method in methods:
                method(send, self.now)
        if not send.eager:
            asked = send.time + gap.request
            time = (asked if asked > time else time) + gap.answer
        if send.immediate:
            time += gap.late
        passage = Passage(self, send, gap)
        if time > self.now:
            self.queue.push(time, passage)
        else:
            passage.fire()

    def arrive(self, send: Send) -> None:
        """The last byte of a message has arrived."""
        send.arrived = True
        methods = self.listeners.flow_ended
        if methods is not None:
            for method in methods:
                method(send, self.now)
        if not send.detached:
            send.complete(self.now)
        receive = send.receive
        if receive is not None:
            # Break the cycle of references: it would live until the next garbage collection.
            send.receive = None
            receive.complete(self.now)
        if send.arrival is not None:
            send.arrival.complete(self.now)
