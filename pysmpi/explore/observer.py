"""The observer of an execution: the order of its events.

A *past* is the set of events that had to happen before, as the bits of an integer. Messages, waits
and places carry it from process to process. Where the order is not known, an event is left out:
too small a past only makes the exploration try more.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from hashlib import blake2b
from typing import Any
from zlib import crc32

from pysmpi.explore.events import Decision, LocatedMatch, Offer, Trace, dependent, event_of
from pysmpi.explore.files import FileWatch
from pysmpi.explore.remedies import Call, CallCounts, Remedy
from pysmpi.explore.schedule import ByRule, Decisions, Replayed, checksum
from pysmpi.explore.states import DIGEST, States
from pysmpi.explore.strategy import Strategy
from pysmpi.kernel.choices import (
    MATCH,
    NO,
    ORDER,
    PROBE,
    SEND,
    TEST,
    TURN,
    Alternative,
    Control,
    Gate,
)
from pysmpi.kernel.requests import AbstractProcess, KernelRequest, Receive, Send
from pysmpi.mpi.base.ranks import Universe
from pysmpi.mpi.rma.window import RemoteAccess
from pysmpi.ranks.simulation import Simulation


class KnownStates:
    """States that were met in earlier executions.

    `states` are their digests. `idle` are states of ranks in which a test that sees nothing leads
    back to this state.
    """

    def __init__(self) -> None:
        self.states: dict[bytes, Any] = {}
        self.idle: set[bytes] = set()

    def knows(self, state: bytes) -> bool:
        """Whether a state was met."""
        return state in self.states

    def leads_back(self, state: bytes) -> bool:
        """Whether a test that sees nothing leads back to a state of a rank."""
        return state in self.idle

    def __getstate__(self) -> dict[str, Any]:
        """On another computer an execution looks for no states: the search does it later."""
        return {"states": {}, "idle": self.idle}


class Observer:
    """Follows a prefix of decisions, then the default order, and records events and their pasts.

    `prefix` has the names of the events to begin with. `sleep` are events that need no exploration
    after them: the first option that is not among these is taken; if there is none, the execution
    is redundant. `buffered` tells whether standard sends are buffered. A `strategy` decides sends
    and all events after the prefix. `located` says whether to record lines of the program. `order`
    is the order of ranks between decisions. With a `memory`, an execution ends where it meets one
    of its states: another one goes on from there. `searching` says that it is of a search, whose
    executions have the same beginning. Without a `prefix`, it is the beginning of many executions,
    up to the first decision with several options; `continue_with` makes it one of these. If it is
    `symmetric`, ranks that differ only by their numbers are treated as equal. After the prefix,
    events that the processes `delayed` cause come last. A `remedy` changes the program. If it is
    `asking`, it ends after the prefix, and `met` is the digest of the state.
    """

    def __init__(
        self,
        prefix: Sequence[str] | None = (),
        sleep: Sequence[Decision] = (),
        buffered: bool = True,
        reduce: bool = True,
        strategy: Strategy | None = None,
        located: bool = False,
        order: int = 0,
        memory: KnownStates | None = None,
        searching: bool = False,
        symmetric: bool = False,
        delayed: Collection[int] = (),
        remedy: Remedy | None = None,
        asking: bool = False,
    ) -> None:
        self.asking = asking
        self.asked: list[dict[str, str]] = []
        self.remedy = remedy
        self.symmetric = symmetric
        self.delayed = delayed
        self.searching = searching
        self.strategy = strategy
        self.memory = memory
        self.prefix = prefix
        self.sleep = {event.name: event for event in sleep}
        self.buffered = buffered
        self.reduce = reduce
        self.control: Control | None = None
        self.redundant = False
        self.diverged: tuple[int, str, str] | None = None
        self.order = order
        self.sends: list[int] = []
        # Of each event: itself, its past, all options, and those asleep before it.
        self.events: list[Decision] = []
        self.pasts: list[int] = []
        self.options: list[list[Decision]] = []
        self.asleep: list[list[Decision]] = []
        self.indices: list[tuple[int, int]] = []  # number of options, the taken one
        self.arrivals: list[Offer] = []
        # Of each event, the lines of the program, if they are wanted.
        self.sites: list[str] | None = [] if located else None
        self.universe: Universe | None = None
        self._calls: CallCounts | None = None
        self._lines: dict[KernelRequest, Call] = {}
        self._posted: dict[KernelRequest, int] = {}  # the begin of receives
        self._taken: Receive | None = None  # the receive of the latest decision
        self.matches: list[LocatedMatch] = []
        # Of each event, the digest of the state before it, and the tests that lead nowhere.
        self.digests: list[bytes | None] = []
        self.idle: list[list[str]] = []
        # Of each event, the options that are the same as another one but for numbers of ranks.
        self.twins: list[dict[str, str]] = []
        self.moments: list[int] = []  # of each arrival, the number of events before it
        self.met: bytes | None = None  # the digest of the known state at which it has ended
        self.new_idle: list[bytes] = []
        self._own: set[bytes] = set()
        self._states: States | None = None
        self._vague = False  # whether some past may lack an event
        self._answered: KernelRequest | None = None  # of the latest decision
        self._refused: tuple[int, int, bytes] | None = None  # the latest refused test
        self._now = -1  # the event that is happening
        self._past: dict[AbstractProcess, int] = {}
        self._of: dict[KernelRequest, int] = {}  # pasts of requests
        self._collective: dict[AbstractProcess, int] = {}
        self._places: dict[str, int] = {}
        # The accesses of a process at a place that have taken effect.
        self._accesses: dict[tuple[AbstractProcess, str], int] = {}

    @property
    def rule(self) -> tuple[int, frozenset[int] | None] | None:
        """The order of ranks and the sends that wait, if nothing else decides the beginning.

        Executions with the same rule then are the same up to their first choice.
        """
        if self.sites is not None:
            return None
        if isinstance(self.strategy, ByRule):
            return self.strategy.rule
        if self.strategy is not None or not self.prefix:
            return None
        return self.order, frozenset() if self.buffered else None

    def beginning(self) -> Observer | None:
        """The observer of the beginning that this execution shares with others."""
        rule = self.rule
        if rule is None:
            return None
        memory = None if self.memory is None else KnownStates()
        strategy = None if self.strategy is None else Replayed(Decisions(*rule))
        return Observer(
            None, (), self.buffered, self.reduce, strategy, order=rule[0], memory=memory,
            searching=self.searching, symmetric=self.symmetric, remedy=self.remedy,
        )  # fmt: skip

    def stand(self) -> None:
        """The first decision with several options, from which many executions will go on."""
        if self._states is not None:
            self._states.prepare()

    def continue_with(
        self,
        prefix: Sequence[str],
        sleep: Sequence[Decision],
        delayed: Collection[int],
        strategy: Strategy | None,
        asking: bool,
        memory: KnownStates,
    ) -> None:
        """Go on as one execution after the beginning of many."""
        self.prefix = prefix
        self.asking = asking
        if strategy is not None:
            for _ in self.sends:
                strategy.pick(SEND, ())  # as the beginning has decided
            self.strategy = strategy
        self.delayed = delayed
        self.sleep = {event.name: event for event in sleep}
        if self.memory is not None:
            self.memory = memory
        for number, (event, name) in enumerate(zip(self.events, prefix)):
            if event.name != name:
                self.diverged = number, name, event.name
                self._stop()
                return

    def attach(self, control: Control) -> None:
        """Decide and watch a run."""
        self.control = control
        control.observer = self

    def enter(self, simulation: Simulation, output: int, files: FileWatch) -> None:
        """The execution begins in this process; `output` is the descriptor of its output."""
        self.universe = simulation.universe
        if self.remedy is not None or self.sites is not None:
            self._calls = CallCounts(simulation, self.remedy)
        if self.memory is not None and self.control is not None:
            self._states = States(
                simulation, self.control, self._history, output, files, self.symmetric
            )

    @property
    def given_up(self) -> bool:
        """Whether the execution has ended because others do the rest of it."""
        stopped = self.redundant or self.met is not None or self.diverged is not None
        return stopped and self.searching

    def summary(self) -> Trace:
        """The recorded trace."""
        return Trace(
            self.events, self.pasts, self.options, self.asleep, self.arrivals, self.sites,
            len(self.sends), self.redundant, self.diverged, self.digests, self.idle, self.moments,
            self.met, self.new_idle, self.twins, self.matches,
            [] if self._calls is None else self._calls.order, self.asked,
        )  # fmt: skip

    def schedule(self) -> Decisions:
        """The schedule that repeats the execution."""
        several = [i for count, i in self.indices if count > 1]
        steps = {number: i for number, i in enumerate(several) if i}
        waiting = frozenset(number for number, waits in enumerate(self.sends) if waits)
        sends = None if len(waiting) == len(self.sends) > 0 else waiting
        names = [event.name for event in self.events]
        return Decisions(self.order, sends, steps, checksum(names))

    # Decisions.

    def pick(self, kind: str, options: Sequence[Alternative]) -> int:
        """Decide, and record it."""
        if kind == ORDER:
            if self.strategy is not None:
                self.order = self.strategy.pick(kind, options)
            return self.order
        if kind == SEND:
            waits = 0 if self.buffered else 1
            if self.strategy is not None:
                waits = self.strategy.pick(kind, options)
            self.sends.append(waits)
            return waits
        assert self.control is not None
        events = [event_of(option, self.control) for option in options]
        number = len(self.events)
        asleep = [] if self._follows(number) else list(self.sleep.values())
        digest, idle = self._look(number, options)
        if self.met is not None:
            return 0
        i = self._choose(number, events, options, idle)
        if self.redundant or self.diverged is not None:
            return i
        self.asleep.append(asleep)
        self.digests.append(digest)
        self.idle.append(idle)
        twins, asked = self._same_but_for_ranks(options) if digest is not None else ({}, {})
        self.twins.append(twins)
        self.asked.append(asked)
        if self.sites is not None:
            self.sites.append(self._site(options[i]))
        self.events.append(events[i])
        self.options.append(events)
        self.indices.append((len(options), i))
        self._happens(number, options[i], events[i])
        return i

    def _follows(self, number: int) -> bool:
        """Whether a decision belongs to the prefix."""
        return self.prefix is None or number < len(self.prefix)

    def _look(self, number: int, options: Sequence[Alternative]) -> tuple[bytes | None, list[str]]:
        """The digest of the state, and the refusals that lead back to it; ends at a known state."""
        states, memory = self._states, self.memory
        if states is None or memory is None or self._follows(number):
            return None, []
        digest = states.digest()
        if self.asking:
            self.met = digest or b""
            self._stop()
            return None, []
        if digest is None:
            return None, []
        if self.remedy is not None and self._calls is not None:
            # The changes of the program depend on these.
            counts = repr(sorted(self._calls.counts.items())).encode()
            digest = blake2b(digest + counts, digest_size=DIGEST).digest()
        refusals = [one for one in options if one.kind == TEST and one.answer == NO]
        if self._refused is not None:
            pid, event, before = self._refused
            self._refused = None
            if event == number - 1 and states.at_test(pid) == before:
                self.new_idle.append(before)
                memory.idle.add(before)
        idle = []
        for one in refusals:
            state = states.at_test(one.pid)
            if state is not None and memory.leads_back(state):
                idle.append(one.name)
        if memory.knows(digest) or digest in self._own:
            if len(refusals) < len(options):
                self.met = digest
                self._stop()
            return None, idle
        self._own.add(digest)
        return digest, idle

    def _same_but_for_ranks(
        self, options: Sequence[Alternative]
    ) -> tuple[dict[str, str], dict[str, str]]:
        """Of the messages for one receive, those whose senders differ only by their numbers.

        If no decision so far has involved these ranks, no rank holds anything of their order. For
        others the search asks whether the order makes a difference.
        """
        states = self._states
        twins: dict[str, str] = {}
        asked: dict[str, str] = {}
        if not self.symmetric or states is None:
            return twins, asked
        involved = {pid for event in self.events for pid in event.pids}
        exchangeable = states.described() and all(map(self._of_everyone, self.events))
        distinct: dict[Receive, list[Alternative]] = {}
        for option in options:
            receive = option.receive
            if receive is None or option.passed is not None:
                continue
            if receive.context.members[receive.destination].pid == option.pid:
                continue
            others = distinct.setdefault(receive, [])
            same = [other for other in others if states.alike(other.pid, option.pid)]
            new = [one for one in same if not {one.pid, option.pid} & involved]
            if new:
                twins[option.name] = new[0].name
                continue
            if same and exchangeable:
                asked[option.name] = same[0].name
            others.append(option)
        return twins, asked

    def _of_everyone(self, event: Decision) -> bool:
        """Whether an event is a match or a probe among all ranks, which have their own numbers."""
        assert self.universe is not None
        everyone = ",".join(str(rank.pid) for rank in self.universe.ranks)
        label = f"{crc32(everyone.encode()) & 0xFFFFF:x}."
        return event.kind in (MATCH, PROBE) and event.place.startswith(label)

    def _choose(
        self, number: int, events: list[Decision], options: Sequence[Alternative], idle: list[str]
    ) -> int:
        if self.prefix is None:
            return 0
        if number < len(self.prefix):
            for i, event in enumerate(events):
                if event.name == self.prefix[number]:
                    return i
            if self.diverged is None:
                self.diverged = number, self.prefix[number], events[0].name
            self._stop()
            return 0
        if self.strategy is not None:
            return self.strategy.pick(options[0].kind, options) if len(options) > 1 else 0
        awake: Sequence[int] = range(len(events))
        if self.reduce and self.sleep:
            awake = [i for i, event in enumerate(events) if event.name not in self.sleep]
            busy = [i for i in awake if events[i].name not in idle]
            awake = busy or (awake if len(awake) == len(events) else [])
            if not awake:
                self.redundant = True
                self._stop()
                return 0
        chosen = next((i for i in awake if events[i].pids[-1] not in self.delayed), awake[0])
        if self.reduce and self.sleep:
            taken = events[chosen]
            self.sleep = {
                name: other for name, other in self.sleep.items() if not dependent(other, taken)
            }
        return chosen

    def _stop(self) -> None:
        assert self.control is not None
        self.control.engine.stop()

    def _happens(self, number: int, option: Alternative, event: Decision) -> None:
        bit = 1 << number
        self._now = number
        send, receive, gate = option.send, option.receive, option.gate
        states = self._states
        if gate is not None:
            process = gate.process
            if gate.act is not None:
                before = self._accesses.get((process, gate.place), 0)
                past = self._of.get(gate.request, 0) | before
                self.pasts.append(past)
                past |= bit | self._places.get(gate.place, 0)
                self._places[gate.place] = past
                self._of[gate.request] = self._accesses[process, gate.place] = past
                return
            self._answered = gate.request
            if states is not None:
                if gate.kind == TEST and option.answer == NO:
                    state = states.refused(process.pid)
                    if state is not None:
                        self._refused = process.pid, number, state
                states.changed.add(process.pid)
                if gate.requests is None and event.place.startswith(("test ", "any ")):
                    self._vague = True
            past = self._past.get(process, 0)
            for request in gate.needed(option.answer):
                past |= self._of.get(request, 0)
            self.pasts.append(past)
            past |= bit
            if event.kind == TURN:
                past |= self._places.get(event.place, 0)
                self._places[event.place] = past
            self._past[process] = past
            return
        assert send is not None and receive is not None
        self._taken = receive if event.kind == MATCH else None
        self.pasts.append(self._of.get(send, 0) | self._of.get(receive, 0))
        if event.kind == PROBE:
            self._of[receive] = self.pasts[-1] | bit

    def _site(self, option: Alternative) -> str:
        """A description of an event for people: its effect and its line."""
        send, receive, gate = option.send, option.receive, option.gate
        if gate is not None:
            pid = gate.process.pid
            answer = f" -> {option.answer}" if option.answer else ""
            return f"rank {pid} {self._call(pid)[0]}{answer}"
        assert send is not None and receive is not None
        receiver = receive.context.members[receive.destination].pid
        sender = send.sender().pid
        line, sent = self._lines.get(receive, ("",))[0], self._lines[send][0]
        text = f"rank {receiver} {line} takes the message of rank {sender} {sent}"
        if option.passed is not None:
            seen = option.passed.sender().pid
            text += f"; its probe saw that of rank {seen}: receive it with Mprobe and Mrecv"
        return text

    def _call(self, pid: int) -> Call:
        """The call that a rank is in."""
        assert self._calls is not None
        return self._calls.call_of(pid)

    def _history(self, pid: int) -> object:
        """The events in the past of a rank, and in those of its complete requests."""
        if self._vague or self.universe is None:
            return None
        process = self.universe.processes[pid]
        past = self._past.get(process, 0) | self._collective.get(process, 0)
        found = [self._names(past)]
        for request, other in self._of.items():
            owner: AbstractProcess | None = None
            if isinstance(request, Receive):
                owner = request.context.members[request.destination]
            elif isinstance(request, Send) and request.done:
                owner = request.sender()
            if owner is process and other:
                found.append(self._names(other))
        return sorted(found)

    def _names(self, past: int) -> list[str]:
        return sorted(event.name for i, event in enumerate(self.events) if past >> i & 1)

    # Events between decisions.

    def _arrives(self, offer: Offer) -> None:
        self.arrivals.append(offer)
        self.moments.append(len(self.events))

    def _changes(self, process: AbstractProcess) -> None:
        if self._states is not None:
            self._states.changed.add(process.pid)

    def posted(self, send: Send) -> None:
        """A message is sent."""
        process = send.sender()
        self._changes(process)
        past = self._past.get(process, 0) | self._collective.get(process, 0)
        self._of[send] = past
        if self.sites is not None and send.payload is not None:
            self._lines[send] = self._call(process.pid)
        if send.payload is not None:
            control = self.control
            assert control is not None
            receiver = send.context.members[send.destination].pid
            place = f"{control.label(send.context)}:{send.destination}"
            self._arrives(Offer(place, receiver, send.tag, send.source, past))

    def received(self, receive: Receive) -> None:
        """A receive or a probe begins."""
        process = receive.context.members[receive.destination]
        self._changes(process)
        self._of[receive] = self._past.get(process, 0)
        if self.sites is not None:
            self._lines[receive] = self._call(process.pid)
            self._posted[receive] = len(self._posted)

    def parked(self, gate: Gate) -> None:
        """A process waits for a decision."""
        past = self._past.get(gate.process, 0)
        if gate.act is not None:
            self._of[gate.request] = past
        self._arrives(Offer(gate.place, -1, -1, -1, past))
        self._changes(gate.process)

    def settled(self, process: AbstractProcess, place: str, reached: bool) -> None:
        """A process knows that its accesses at a place, or those that reached it, are over."""
        past = self._past.get(process, 0)
        for (origin, where), done in self._accesses.items():
            if where == place and (reached or origin is process):
                past |= done
        if past:
            self._past[process] = past

    def matched(self, send: Send, receive: Receive) -> None:
        """A message and a receive match, by a decision or as the only possibility."""
        sender = self._of.get(send, 0)
        receiver = receive.context.members[receive.destination]
        self._changes(receiver)
        self._changes(send.sender())
        mine = self._of.get(receive, 0)
        if self._now >= 0 and self.control is not None and self.control.deciding:
            sender |= 1 << self._now
            mine |= 1 << self._now
        self._of[receive] = sender
        if send.payload is None:
            self._collective[receiver] = self._collective.get(receiver, 0) | sender
            if sender:  # it may complete a collective operation for which the receiver tests
                self._arrives(Offer("", receiver.pid, -1, -1, sender))
            return
        if self.sites is not None:
            self._note(send, receive, receiver.pid)
        past = sender | mine
        control = self.control
        assert control is not None
        self._arrives(Offer(control.watched(receive), receiver.pid, -1, -1, past))
        if not send.detached:
            self._of[send] = mine
            owner = send.sender().pid
            self._arrives(Offer(control.watched(send), owner, -1, -1, past))

    def _note(self, send: Send, receive: Receive, receiver: int) -> None:
        """Record a match with its lines."""
        pid = send.sender().pid
        sent = self._lines.get(send) or self._call(pid)
        taken = self._lines.get(receive) or self._call(receiver)
        decided = receive is self._taken and self.control is not None and self.control.deciding
        self.matches.append(
            LocatedMatch(
                pid,
                *sent,
                receiver,
                *taken,
                self._posted.get(receive, 0),
                send.source,
                send.tag,
                receive.tag,
                self._now if decided else -1,
            )  # fmt: skip
        )

    def waited(self, process: AbstractProcess, requests: Sequence[KernelRequest]) -> None:
        """A process has waited for requests, or has ended a collective operation."""
        self._changes(process)
        past = self._past.get(process, 0)
        found = past | self._collective.pop(process, 0)
        for request in requests:
            if type(request) is KernelRequest and request is not self._answered:
                self._vague = True
            if isinstance(request.payload, RemoteAccess) and request.payload.gate is not None:
                found |= self._of.get(request.payload.gate.request, 0)
            found |= self._of.pop(request, 0)
        if found != past:
            self._past[process] = found
