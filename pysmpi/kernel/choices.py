"""Choices that MPI leaves open, made by a strategy instead of the clock.

MPI does not say which message a receive from any source takes, which of several complete requests
`Waitany` reports, whether a test already sees a completion, which process gets a lock first, or
whether a standard send waits for its receive. In a run with an `Engine.control`, time decides none
of these. All processes run until each of them waits. Only then the control knows all *options*,
among them every message that a wildcard could match. `Control.pick` selects one, and the processes
continue.

An option has a name that does not depend on the order of earlier events: context, ranks, and the
number of the message (or of the wait) between these ranks.

| kind | option |
| --- | --- |
| `match` | a receive from any source takes a message |
| `probe` | a probe sees a message |
| `test` | the answer of `Test`, `Testany`, `Iprobe` and similar calls |
| `any` | the request that `Waitany` or `Waitsome` reports |
| `turn` | a process has its turn at a lock, an accumulate, a shared file pointer |
| `send` | a standard send is buffered, or waits for its receive |
| `order` | the order in which processes continue that could continue at the same time |
"""

from typing import Any, Final, Optional
from zlib import crc32

from pysmpi.kernel.matching import ANY, Mailbox, accepts, mailbox_at
from pysmpi.kernel.requests import (
    STANDARD,
    AbstractEngine,
    AbstractProcess,
    Context,
    KernelRequest,
    Receive,
    Send,
)

# Kinds of options.
MATCH: Final = "match"
PROBE: Final = "probe"
TEST: Final = "test"
SOME: Final = "any"
TURN: Final = "turn"
SEND: Final = "send"
ORDER: Final = "order"

NO: Final = "no"  # the answer of a test that sees nothing
ORDERS: Final = 16  # orders of processes to choose from
# Sleeping processes continue before a decision, but only this often in a row: a process may poll in
# a loop of sleeps for what only a decision can bring.
NAPS: Final = 1000


class Alternative:
    """One option of a choice.

    `name` does not depend on the order of events. `pid` is the process that caused the option: the
    sender of a message, the caller of a test. `place` names the object that the option changes:
    options at different places do not affect each other. If `effect` is not empty, options at one
    place with the same effect may be exchanged. `passed` is a message that a probe has seen, if the
    receive takes another one.
    """

    def __init__(self, kind: str, name: str, pid: int, place: str, order: int) -> None:
        self.kind: str = kind
        self.name: str = name
        self.pid: int = pid
        self.place: str = place
        self.order: int = order
        self.effect: str = ""
        self.send: Optional[Send] = None
        self.receive: Optional[Receive] = None
        self.passed: Optional[Send] = None
        self.message: str = ""
        self.gate: Optional[Gate] = None
        self.answer: str = ""

    def __repr__(self) -> str:
        return self.name


class Gate:
    """A process that waits for a decision.

    `answers()` returns the possible answers, if there are several. `free()` returns whether the
    turn can come now. With `act()` the process does not wait: this is what happens at the turn.
    """

    def __init__(self, process: AbstractProcess, kind: str, name: str, place: str) -> None:
        self.process: AbstractProcess = process
        self.kind: str = kind
        self.name: str = name
        self.place: str = place
        self.effect: str = ""
        self.answers: Any = None
        self.free: Any = None
        self.act: Any = None
        # The requests on which the answer depends, by answer; None if it depends on other things.
        self.requests: Optional[dict[str, KernelRequest]] = None
        self.answer: str = ""
        self.order: int = 0
        self.request: KernelRequest = KernelRequest()

    def needed(self, answer: str) -> "list[KernelRequest]":
        """The requests whose completion an answer reports."""
        if self.requests is None or answer == NO:
            return []
        parts = answer.split("+")
        if parts[0] not in self.requests:
            return list(self.requests.values())
        return [self.requests[part] for part in parts]


class Control:
    """The choices of one run.

    `pick(kind, options)` returns the index of an option; the first is the default. The control
    calls it also for a single option, so that a strategy sees every step. `NO` is an option of a
    test that could see a completion, or that other processes could still fulfil, at most `refusals`
    times in a row.

    A receive from any source may take another message than the one that a probe has seen (MPI 4.1,
    section 3.8.1); the seen one is its first option.
    """

    def __init__(self, engine: AbstractEngine, pick: Any) -> None:
        self.engine: AbstractEngine = engine
        self.pick: Any = pick
        self.refusals: int = 1
        self.steps: int = 0
        # Notified of events between decisions, see `pysmpi.explore.observer`.
        self.observer: Any = None
        self.order: int = 0  # number of the order of processes, below `ORDERS`
        self.gates: list[Gate] = []
        self.boxes: dict[Mailbox, str] = {}  # names of the mailboxes with wildcards or probes
        self.labels: dict[Context, str] = {}
        self.groups: dict[int, int] = {}  # number of contexts, by the checksum of their members
        self.serials: dict[tuple[str, int, int], int] = {}
        self.numbers: dict[KernelRequest, int] = {}
        self.own_numbers: dict[Receive, int] = {}  # of the receives of each process
        self.refused: dict[int, int] = {}
        self.seen: dict[Send, None] = {}  # messages that a probe has seen
        self.deciding: bool = False  # whether a decision takes effect
        self.naps: int = 0  # sleeps since the latest decision

    # Names.

    def label(self, context: Context) -> str:
        """The name of a context: the checksum of its members, and its number among equal ones."""
        label = self.labels.get(context)
        if label is None:
            pids = ",".join([str(member.pid) for member in context.members])
            members = crc32(pids.encode()) & 0xFFFFF
            number = self.groups.get(members, 0)
            self.groups[members] = number + 1
            label = self.labels[context] = f"{members:x}.{number}"
        return label

    def serial(self, label: str, source: int, destination: int) -> int:
        """The next number between two ranks, or of a kind of waits of one process."""
        key = (label, source, destination)
        number = self.serials.get(key, 0)
        self.serials[key] = number + 1
        return number

    def message(self, send: Send) -> str:
        """The name of a message."""
        return f"{self.label(send.context)}:{send.source}>{send.destination}#{self.numbers[send]}"

    def receipt(self, receive: Receive) -> str:
        """The name of a receive from any source, or of a probe."""
        return f"{self.label(receive.context)}:{receive.destination}#{self.numbers[receive]}"

    # Postings, reported by the engine.

    def sent(self, send: Send, box: Mailbox) -> None:
        """A message is posted, and not matched yet."""
        label = self.label(send.context)
        self.numbers[send] = self.serial(label, send.source, send.destination)
        if self.observer is not None:
            self.observer.posted(send)

    def matched(self, send: Send, receive: Receive) -> None:
        """A message is matched: forget its name."""
        if self.observer is not None:
            self.observer.matched(send, receive)
        self.numbers.pop(send, 0)
        self.numbers.pop(receive, 0)
        self.own_numbers.pop(receive, 0)
        self.seen.pop(send, None)

    def offered(self, send: Send, box: Mailbox) -> bool:
        """No receive has matched a message at its posting; True if one does now.

        If none does, the strategy decides whether a standard send is buffered or waits.
        """
        if box.wild > 0 or len(box.index.probes) > 0:
            self.match_forced(box)
            if not send.unexpected:
                return True
        if send.mode == STANDARD and send.payload is not None:
            pid = send.sender().pid
            name = self.message(send)
            order = send.order
            options = [
                Alternative(SEND, f"{name} buffered", pid, name, order),
                Alternative(SEND, f"{name} waits", pid, name, order),
            ]
            if self.choose(SEND, options) == 1:
                send.detached = send.eager = False
        return False

    def begun(self, receive: Receive) -> None:
        """A process begins a receive or a probe."""
        if self.observer is not None:
            pid = receive.context.members[receive.destination].pid
            self.own_numbers[receive] = self.serial("receive", pid, -4)
            self.observer.received(receive)

    def watched(self, request: KernelRequest) -> str:
        """The name of a request that is not complete, among those of its process."""
        if isinstance(request, Receive):
            if request not in self.own_numbers:
                return ""
            pid = request.context.members[request.destination].pid
            return f"receive {pid}#{self.own_numbers[request]}"
        assert isinstance(request, Send)
        return self.message(request) if request in self.numbers else ""

    def received(self, receive: Receive, box: Mailbox) -> None:
        """A receive with a wildcard, or a probe, waits in a mailbox."""
        label = self.label(receive.context)
        self.numbers[receive] = self.serial(label, -1, receive.destination)
        self.boxes[box] = f"{label}:{receive.destination}"

    def match_forced(self, box: Mailbox) -> None:
        """Match the messages and receives of a mailbox that have only one possible partner."""
        while True:
            receives = box.posted()
            pair = self._forced(box, receives)
            if pair is None:
                break
            send, receive = pair
            box.cancel(receive)
            box.cancel(send)
            self.engine.join(send, receive)
        for probe in list(box.index.probes):
            if probe.source != ANY:
                sends = candidates(box, probe)
                if len(sends) > 0:
                    self._see(box, sends[0], probe)

    def _see(self, box: Mailbox, send: Send, probe: Receive) -> None:
        """A probe sees a message."""
        self.seen[send] = None
        box.unwatch(probe)
        probe.message = send
        probe.complete(self.engine.now)

    def _forced(self, box: Mailbox, receives: "list[Receive]") -> "Optional[tuple[Send, Receive]]":
        sends = box.waiting()
        for i, receive in enumerate(receives):
            if receive.source == ANY:
                continue
            for send in sends:
                if accepts(receive, send):
                    if not claimed(receives[:i], send):
                        return send, receive
                    break  # messages of one source do not overtake each other
        return None

    # Decisions.

    def choose(self, kind: str, options: "list[Alternative]") -> int:
        """The index of the option that the strategy picks."""
        self.steps += 1
        picked: int = self.pick(kind, options)
        return picked

    def waited(self, process: AbstractProcess, requests: "list[KernelRequest]") -> None:
        """A process has learnt that some requests are complete."""
        if self.observer is not None:
            self.observer.waited(process, requests)

    def begin(self) -> None:
        """Choose the order of processes."""
        options = [Alternative(ORDER, f"order {i}", -1, "", i) for i in range(ORDERS)]
        self.order = self.choose(ORDER, options)

    def first(self, ready: "list[AbstractProcess]") -> int:
        """The index of the process that continues first."""
        if self.order == 0:
            return 0
        best = 0
        least = -1
        for i, process in enumerate(ready):
            rank = crc32(f"{self.order},{self.steps},{process.pid}".encode())
            if least < 0 or rank < least:
                best = i
                least = rank
        return best

    def decide(self) -> bool:
        """No process can continue: make a decision; False if there is none to make."""
        engine = self.engine
        if not engine.queue.empty() and self.naps < NAPS and not engine.only_timeouts():
            self.naps += 1
            return False
        self.naps = 0
        options = self.options()
        if len(options) == 0:
            return self._tick()
        self.deciding = True
        self.take(options[self.choose(options[0].kind, options)])
        self.deciding = False
        return True

    def options(self) -> "list[Alternative]":
        """All options, in the order in which they became possible."""
        options: list[Alternative] = []
        for box in list(self.boxes):
            if box.wild == 0 and len(box.index.probes) == 0:
                del self.boxes[box]
                continue
            self._messages(box, options)
        for gate in self.gates:
            if gate.free is not None and not gate.free():
                continue
            if gate.answers is None:
                options.append(self._option(gate, ""))
            else:
                for answer in gate.answers():
                    options.append(self._option(gate, answer))
        refusals: list[Alternative] = []
        for gate in self.gates:
            if gate.kind == TEST and self.refused.get(gate.process.pid, 0) < self.refusals:
                refusals.append(self._option(gate, NO))
        options.sort(key=order_of)
        options.extend(refusals)
        return options

    def _messages(self, box: Mailbox, options: "list[Alternative]") -> None:
        """Add the messages that wildcards and probes could match: one of each source."""
        place = self.boxes[box]
        receives = box.posted()
        sends = box.waiting()
        for i, receive in enumerate(receives):
            if receive.source != ANY:
                continue
            sources: dict[int, Send] = {}
            for send in sends:
                if send.source not in sources and accepts(receive, send):
                    sources[send.source] = send
            free = [send for send in sources.values() if not claimed(receives[:i], send)]
            seen = [send for send in free if send in self.seen]
            for send in seen:
                options.append(self._match(MATCH, place, send, receive))
            for send in free:
                if send not in self.seen:
                    option = self._match(MATCH, place, send, receive)
                    option.passed = seen[0] if len(seen) > 0 else None
                    options.append(option)
        for probe in box.index.probes:
            for send in candidates(box, probe):
                options.append(self._match(PROBE, place, send, probe))

    def _match(self, kind: str, place: str, send: Send, receive: Receive) -> Alternative:
        name = f"{kind} {self.receipt(receive)} {send.source}#{self.numbers[send]}"
        pid = send.sender().pid
        option = Alternative(kind, name, pid, place, max(send.order, receive.order))
        option.send = send
        option.receive = receive
        option.message = self.message(send)
        return option

    def _option(self, gate: Gate, answer: str) -> Alternative:
        name = f"{gate.name} {answer}" if answer else gate.name
        option = Alternative(gate.kind, name, gate.process.pid, gate.place, gate.order)
        option.effect = gate.effect
        option.gate = gate
        option.answer = answer
        return option

    def take(self, option: Alternative) -> None:
        """Execute an option."""
        send, receive, gate = option.send, option.receive, option.gate
        if gate is not None:
            self._open(gate, option.answer)
            return
        assert send is not None and receive is not None
        box = mailbox_at(send.context, send.destination)
        assert box is not None
        if option.kind == PROBE:
            self._see(box, send, receive)
        else:
            box.cancel(receive)
            box.cancel(send)
            self.engine.join(send, receive)
        self.match_forced(box)

    def _open(self, gate: Gate, answer: str) -> None:
        self.gates = [waiting for waiting in self.gates if waiting is not gate]
        if gate.act is not None:
            gate.act()
            return
        pid = gate.process.pid
        if gate.kind == TEST and answer == NO:
            self.refused[pid] = self.refused.get(pid, 0) + 1
        else:
            self.refused[pid] = 0
        gate.answer = answer
        gate.request.complete(self.engine.now)

    def _tick(self) -> bool:
        """Nothing can change for the processes that test: all of them continue.

        Without tests, processes whose turns cannot come continue: their callers wait as without a
        control.
        """
        gates = [gate for gate in self.gates if gate.act is None]
        if len(gates) == 0:
            return False
        tests = [gate for gate in gates if gate.kind == TEST]
        for gate in tests if len(tests) > 0 else gates:
            self.gates = [waiting for waiting in self.gates if waiting is not gate]
            gate.answer = NO
            gate.request.complete(self.engine.now)
        return True

    # Processes wait for decisions.

    def _park(self, gate: Gate) -> None:
        engine = self.engine
        engine.order += 1
        gate.order = engine.order
        self.gates.append(gate)
        if self.observer is not None:
            self.observer.parked(gate)

    def wait(self, gate: Gate) -> str:
        """Let the running process wait for a decision; return the answer."""
        gate.process.finish_compute()
        self._park(gate)
        try:
            gate.process.wait([gate.request])
        except BaseException:
            self.gates = [waiting for waiting in self.gates if waiting is not gate]
            raise
        return gate.answer

    def turn(
        self, process: AbstractProcess, place: str, action: str, effect: str = "", free: Any = None
    ) -> None:
        """Wait for the turn at a place; `free()` says whether it can come."""
        number = self.serial(place, process.pid, -2)
        gate = Gate(process, TURN, f"{action} {place} {process.pid}#{number}", place)
        gate.effect = effect
        gate.free = free
        self.wait(gate)

    def later(
        self, process: AbstractProcess, place: str, action: str, effect: str, free: Any, act: Any
    ) -> Gate:
        """Let `act()` happen at a turn at a place; the process goes on."""
        number = self.serial(place, process.pid, -2)
        gate = Gate(process, TURN, f"{action} {place} {process.pid}#{number}", place)
        gate.effect = effect
        gate.free = free
        gate.act = act
        self._park(gate)
        return gate

    def settled(self, process: AbstractProcess, place: str, reached: bool) -> None:
        """A process knows that its accesses at a place, or all that have `reached` it, are over."""
        if self.observer is not None:
            self.observer.settled(process, place, reached)

    def ask(
        self,
        process: AbstractProcess,
        kind: str,
        answers: Any,
        requests: "Optional[dict[str, KernelRequest]]" = None,
    ) -> str:
        """Wait for one of the answers that `answers()` returns, or `NO` for a test.

        An answer is a key of `requests`, or several with `+`; with other answers, all are complete.
        """
        number = self.serial(kind, process.pid, -3)
        place = f"{kind} {process.pid}"
        gate = Gate(process, kind, f"{place}#{number}", place)
        gate.answers = answers
        gate.requests = requests
        return self.wait(gate)

    def probed(self, receive: Receive, process: AbstractProcess) -> Optional[Send]:
        """Wait for the answer to a test for a message; return the message that it sees."""
        number = self.serial(TEST, process.pid, -3)
        label = self.label(receive.context)
        gate = Gate(
            process, TEST, f"{TEST} {process.pid}#{number}", f"{label}:{receive.destination}"
        )
        gate.answers = Sight(self, receive)
        answer = self.wait(gate)
        if answer == NO:
            return None
        box = mailbox_at(receive.context, receive.destination)
        assert box is not None
        for send in candidates(box, receive):
            if self.sight(send) == answer:
                self.seen[send] = None
                return send
        return None

    def sight(self, send: Send) -> str:
        """The answer of a test that sees a message."""
        return f"{send.source}#{self.numbers[send]}"


class Sight:
    """The messages that a test could see."""

    def __init__(self, control: Control, receive: Receive) -> None:
        self.control: Control = control
        self.receive: Receive = receive

    def __call__(self) -> "list[str]":
        box = mailbox_at(self.receive.context, self.receive.destination)
        if box is None:
            return []
        return [self.control.sight(send) for send in candidates(box, self.receive)]


def order_of(option: Alternative) -> int:
    """The position of an option in the order in which options became possible."""
    return option.order


def claimed(receives: "list[Receive]", send: Send) -> bool:
    """Whether one of some receives accepts a message."""
    for receive in receives:
        if accepts(receive, send):
            return True
    return False


def candidates(box: Mailbox, probe: Receive) -> "list[Send]":
    """The messages that a probe could see: one of each source."""
    sends: list[Send] = []
    sources: dict[int, None] = {}
    receives = box.posted()
    for send in box.waiting():
        if send.source not in sources and accepts(probe, send):
            sources[send.source] = None
            if not claimed(receives, send):
                sends.append(send)
    return sends
