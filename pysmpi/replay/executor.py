"""Processes of the kernel that execute the actions of a trace, without a schedule in between.

Compiled. A line of a trace is one `Action`, or a chain of them. Equal lines of a rank are read once
and share their actions, so most lines cost a look into a dictionary.
"""

from __future__ import annotations

from typing import Any, Final, Optional

from pysmpi.kernel.core import Core
from pysmpi.kernel.plan import Plan
from pysmpi.kernel.process import Process
from pysmpi.kernel.requests import AbstractEngine, Context, KernelRequest
from pysmpi.kernel.schedule import MOST_TAGS, Schedule
from pysmpi.kernel.steps import FRESH, NO_PLANS, POSTED

# Kinds of actions.
SENDS: Final = 0  # a blocking send
ISENDS: Final = 1
RECEIVES: Final = 2  # a blocking receive
IRECEIVES: Final = 3
COMPUTES: Final = 4
SLEEPS: Final = 5
AWAITS: Final = 6  # waits for the oldest requests of a key, if there are any
AWAITS_ALL: Final = 7
TESTS: Final = 8  # releases the oldest request of a key if it is complete
COLLECTIVE: Final = 9
NOTHING: Final = 10
FORGETS: Final = 11  # later lines have another meaning

KNOWN: Final = 1 << 14  # different lines of a rank that are kept
BLOCKS: Final = 1 << 12  # of these, blocks of compute, which often differ from each other
STEPS: Final = 1 << 22  # of the schedules that the actions of a trace keep
INFINITY: Final = float("inf")
NOTHING_TAKEN: Final[list[KernelRequest]] = []


class Shelf:
    """The requests of a key that nothing has awaited yet, the oldest first."""

    def __init__(self) -> None:
        self.requests: list[KernelRequest] = NOTHING_TAKEN
        self.listed: bool = False  # whether an action that awaits all finds it


class Action:
    """The action of a line: its kind and name, and the figures of this kind.

    `key` names the request of a message that does not block, and its `shelf` holds the requests of
    this key; an action that awaits takes `count` of them. `amount` is flops or seconds. `next`
    follows at once.
    """

    def __init__(self, kind: int, name: str) -> None:
        # Those that most actions need are first, and share a line of the processor's cache.
        self.kind: int = kind
        self.peer: int = 0
        self.tag: int = 0
        self.nbytes: int = 0
        self.plan: Optional[Plan] = None  # of its message
        self.next: Optional[Action] = None
        self.shelf: Optional[Shelf] = None
        self.amount: float = 0.0
        self.count: int = 1
        self.key: object = None
        self.name: str = name
        # A collective call, the number of its operation, and its schedule if the node-level
        # communicators `ready` exist before it, with the plans of its messages.
        self.call: Any = None
        self.operation: int = 0
        self.schedule: Optional[Schedule] = None
        self.plans: list[Optional[Plan]] = NO_PLANS
        self.ready: object = None


class Meeting:
    """A collective call that some ranks have still to make: its operation, the first caller."""

    def __init__(self, operation: int, caller: TracedProcess) -> None:
        self.operation: int = operation
        self.caller: TracedProcess = caller
        self.where: int = caller.line()
        self.count: int = 0


class Common:
    """The state that the processes of one trace share.

    `mismatch(process, operation, meeting)` raises the error of a rank that makes another collective
    call than the first caller. `schedule(process, action, ready)` returns the schedule of a
    collective call.
    """

    def __init__(self, size: int, operations: int) -> None:
        self.size: int = size
        self.operations: int = operations
        self.messages: Context
        self.collective: Context
        self.mismatch: Any = None
        self.schedule: Any = None
        self.meetings: dict[int, Meeting] = {}
        # The node-level communicators that exist after a collective call, by its number.
        self.ready: list[tuple[int, object]] = []
        self.steps: int = 0  # of the schedules that actions keep

    def tag(self, number: int, operation: int) -> int:
        """The first tag of a collective call's messages."""
        return (number * self.operations + operation) * MOST_TAGS

    def ready_before(self, number: int) -> object:
        """The node-level communicators that the collective calls before a call have made."""
        found: object = None
        for order, ready in self.ready:
            if order < number:
                found = ready
        return found

    def meet(self, number: int, operation: int, process: TracedProcess) -> None:
        """A rank makes a collective call."""
        meeting = self.meetings.get(number)
        if meeting is None:
            if self.size == 1:
                return
            meeting = Meeting(operation, process)
            self.meetings[number] = meeting
        elif meeting.operation != operation:
            self.mismatch(process, operation, meeting)
        meeting.count += 1
        if meeting.count == self.size:
            del self.meetings[number]


class TracedProcess(Process):
    """Executes the actions of a rank.

    `blocks` yields lines of the rank: the number of the first, the lines, the number of times that
    they follow each other. `parse(number, line)` returns the action of a line. With an `observer`,
    its methods `begin(action)` and `end(action, requests)` are called, the latter with the requests
    that the action has started or awaited. `ended` says that the rank is done, at `date` (s).
    """

    def __init__(
        self, engine: AbstractEngine, pid: int, slot: int, core: Core, common: Common, rank: int
    ) -> None:
        super().__init__(engine, pid, slot, core)
        self.common: Common = common
        self.rank = rank
        self.blocks: Any = None
        self.parse: Any = None
        self.observer: Any = None
        self.ended: bool = False
        self.date: float = 0.0
        self.own: bytes = str(rank).encode()
        self.first: int = 1  # number of the first line of the block
        self.actions: list[Action] = []  # of its lines
        self.at: int = 0  # the next of them
        self.repetitions: int = 0  # of the block, after this one
        self.changed: bool = False  # whether a line of the block has changed the meaning of lines
        self.action: Optional[Action] = None  # that is executed
        self.calls: int = 0  # collective calls
        self.known: dict[bytes, Action] = {}
        self.computes: int = 0  # of the known lines
        self.shelves: dict[object, Shelf] = {}  # by the keys of known lines
        self.used: list[Shelf] = []  # those that have had a request since all were awaited
        self.taken: list[KernelRequest] = NOTHING_TAKEN  # by the action that is executed

    def line(self) -> int:
        """The number of the line that is executed."""
        return self.first + self.at

    def begin(self, seconds: float) -> None:
        """Begin at a date (s)."""
        self.context = self.common.messages
        if seconds > 0.0:
            self.engine.queue.push(seconds, self)
        else:
            self.launch()

    def run(self) -> None:
        """Go on; called by the engine when the process is ready."""
        action = self.action
        while True:
            if action is None:
                if self.at >= len(self.actions) and not self._load():
                    self.ended = True
                    self.date = self.engine.now
                    return
                action = self.actions[self.at]
                if self.observer is not None:
                    self.action = action
                    self.observer.begin(action)
            if not self._do(action):
                self.action = action
                return
            self.stage = FRESH
            if self.observer is not None:
                self.observer.end(action, self.taken)
                self.taken = NOTHING_TAKEN
            action = action.next
            if action is None:
                self.at += 1
                self.action = None
            elif self.observer is not None:
                self.action = action
                self.observer.begin(action)

    def _do(self, action: Action) -> bool:
        """Go on with an action; True when it is done."""
        kind = action.kind
        if kind <= ISENDS:
            if self.stage != FRESH:
                if not self._continue_send(kind == ISENDS):
                    return False
            else:
                peer = action.peer
                nbytes = action.nbytes
                plan = action.plan
                if plan is None:
                    plan = self.plan_to(self.common.messages, peer, nbytes)
                    if plan.turns is None:
                        action.plan = plan
                if not self._send(kind == ISENDS, peer, nbytes, action.tag, plan):
                    return False
            self._began(action, kind == ISENDS)
            return True
        if kind <= IRECEIVES:
            if not self._receive(kind == IRECEIVES, action.peer, action.nbytes, action.tag):
                return False
            self._began(action, kind == IRECEIVES)
            return True
        if kind == COLLECTIVE:
            return self._do_collective(action)
        if self.stage != FRESH:
            if kind == TESTS:
                self._test(action)
            return True
        self.stage = POSTED
        if kind == COMPUTES:
            return self._compute(action.amount / self.core.speed)
        if kind == SLEEPS:
            return self._hold(action.amount)
        if kind == AWAITS:
            return self._await(action)
        if kind == AWAITS_ALL:
            requests: list[KernelRequest] = []
            for shelf in self.used:
                requests.extend(shelf.requests)
                shelf.requests = NOTHING_TAKEN
                shelf.listed = False
            self.used.clear()
            return self._await_all(requests)
        if kind == TESTS and not self._hold(action.amount):
            return False
        if kind == TESTS:
            self._test(action)
        return True

    def _began(self, action: Action, stays_open: bool) -> None:
        """A message has been sent or received, or is under way."""
        request = self.blocked
        assert request is not None
        self.blocked = None
        if self.observer is not None:
            self.taken = [request]
        if stays_open:
            shelf = action.shelf
            assert shelf is not None
            if len(shelf.requests) > 0:
                shelf.requests.append(request)
            else:
                shelf.requests = [request]
                if not shelf.listed:
                    shelf.listed = True
                    self.used.append(shelf)

    def _await(self, action: Action) -> bool:
        shelf = action.shelf
        assert shelf is not None
        requests = shelf.requests
        if len(requests) == 0:
            return True  # a test has found it complete
        if len(requests) == action.count:
            shelf.requests = NOTHING_TAKEN
        else:
            shelf.requests = requests[action.count :]
            requests = requests[: action.count]
        return self._await_all(requests)

    def _await_all(self, requests: list[KernelRequest]) -> bool:
        """Wait for requests, and pay their finish costs in their order."""
        if self.observer is not None:
            self.taken = requests
        self.waits = requests
        self.all = True
        done = self._await_requests()
        self.waits = NOTHING_TAKEN
        return done

    def _test(self, action: Action) -> None:
        """Release the request of a test if it is complete."""
        shelf = action.shelf
        assert shelf is not None
        if len(shelf.requests) > 0 and shelf.requests[0].done:
            shelf.requests = shelf.requests[1:]

    def _do_collective(self, action: Action) -> bool:
        schedule = self.schedule
        if schedule is None:
            common = self.common
            number = self.calls
            self.calls += 1
            common.meet(number, action.operation, self)
            ready = common.ready_before(number)
            schedule = action.schedule
            if schedule is None or action.ready is not ready:
                made: Schedule = common.schedule(self, action, number)
                if common.steps + len(made.codes) <= STEPS:
                    common.steps += len(made.codes)
                    action.schedule = made
                    action.ready = ready
                    action.plans = [None] * len(made.codes)
                schedule = made
            if action.schedule is schedule:
                self.plans = action.plans
            tag = common.tag(number, action.operation)
            self.prepare(schedule, common.collective, self.rank, tag)
        if not self._execute(schedule):
            return False
        self.schedule = None
        self.plans = NO_PLANS
        self.context = self.common.messages
        return True

    def _load(self) -> bool:
        """Read the next lines; False at the end of the trace."""
        self.first += len(self.actions)
        self.at = 0
        if self.repetitions > 0:
            self.repetitions -= 1
            return True
        self.actions = []
        for first, lines, times in self.blocks:
            self.first = first
            self._read(first, lines)
            if self.changed:
                # The lines have another meaning when they are repeated.
                self.changed = False
                for _ in range(1, times):
                    self._read(first, lines)
            else:
                self.repetitions = times - 1
            if len(self.actions) > 0:
                return True
        return False

    def _read(self, first: int, lines: list[bytes]) -> None:
        known = self.known
        actions = self.actions
        for line in lines:
            action = known.get(line)
            if action is None:
                action = self._computation(line)
                if action is None:
                    action = self._other(first + len(actions), line)
            actions.append(action)

    def _computation(self, line: bytes) -> Optional[Action]:
        """The action of a line that computes; None for all others, and for wrong ones."""
        words = line.split()
        if len(words) != 3 or words[1] != b"compute" or words[0] != self.own:
            return None
        try:
            amount = float(words[2])
        except ValueError:
            return None
        if not 0.0 <= amount < INFINITY:
            return None
        action = Action(COMPUTES, "compute")
        action.amount = amount
        if self.computes < BLOCKS:
            self.computes += 1
            self.known[line] = action
        return action

    def _other(self, number: int, line: bytes) -> Action:
        """The action of any line."""
        action: Action = self.parse(number, line)
        if action.kind == FORGETS:
            self.changed = True
            self._forget()
        else:
            if len(self.known) >= KNOWN:
                self._forget()
            self.known[line] = action
        one: Optional[Action] = action
        while one is not None:
            if one.key is not None:
                shelf = self.shelves.get(one.key)
                if shelf is None:
                    shelf = Shelf()
                    self.shelves[one.key] = shelf
                one.shelf = shelf
            one = one.next
        return action

    def _forget(self) -> None:
        """Forget the known lines, and the shelves that hold nothing and that no action needs."""
        self.known.clear()
        self.computes = 0
        needed: dict[object, Shelf] = {}
        for key, shelf in self.shelves.items():
            if len(shelf.requests) > 0:
                needed[key] = shelf
        for action in self.actions:
            one: Optional[Action] = action
            while one is not None:
                if one.shelf is not None:
                    needed[one.key] = one.shelf
                one = one.next
        self.shelves = needed
        for shelf in self.used:
            shelf.listed = len(shelf.requests) > 0
        self.used = [shelf for shelf in self.used if shelf.listed]
