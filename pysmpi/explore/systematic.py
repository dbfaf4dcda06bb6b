"""Systematic exploration: every relevantly different order of events, each once.

Executions form a tree: a node is a state in which something is decided, its branches are the
options that are explored. Nothing of a state is stored; a branch is explored by a new execution
that follows the path to it. An execution shows which other branches matter:

- without reduction (`none`) all options of each node;
- with sleep sets (`sleep`) all options, but no order that only exchanges independent events of an
  explored one;
- with source sets (`source`) only options that depend on the taken one, and first events of a path
to a further option (Abdulla and others, Optimal Dynamic Partial Order Reduction, POPL
  2014). A message that is sent later, and could have been sent earlier, is such an option.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pysmpi.explore.events import (
    Decision,
    Offer,
    Trace,
    concerns,
    decision_of,
    dependent,
    exchanged,
    offer_of,
)
from pysmpi.explore.observer import KnownStates, Observer
from pysmpi.explore.remedies import Remedy

REDUCTIONS = ("source", "sleep", "none")
_SIMPLE = 24  # tasks of few deviations, before every other one is chosen in another way
_SCATTER, _MODULUS = 2_654_435_761, 1 << 32  # they put numbers in an order without a pattern


def _whole(value: object) -> int:
    if type(value) is not int or value < 0:
        raise ValueError
    return value


def _index(value: object, members: Sequence[object]) -> int:
    if _whole(value) >= len(members):
        raise ValueError
    return _whole(value)


class SearchState:
    """A state: its options, and the branches that are or will be explored."""

    __slots__ = (
        "parent", "event", "depth", "options", "sleep", "branches", "children", "digest", "idle",
        "entries", "future", "beyond", "full", "twins", "symmetric", "asked", "waiting",
    )  # fmt: skip

    def __init__(self, parent: SearchState | None, event: Decision | None) -> None:
        self.parent = parent
        self.event = event  # that led here
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.options: dict[str, Decision] = {}
        self.sleep: list[Decision] = []
        self.branches: dict[str, Decision] = {}
        self.children: dict[str, SearchState] = {}
        self.digest: bytes | None = None
        self.idle: frozenset[str] = frozenset()  # options that lead back to this state
        # Where other executions meet this state: the states before, and the events.
        self.entries: list[tuple[SearchState, Decision]] = []
        # What can follow: in executions through this state, and beyond states that these meet.
        self.future: set[Decision | Offer] = set()
        self.beyond: set[Decision | Offer] = set()
        self.full: bool = False  # whether all options are explored
        # Options, and others in their place that differ only by numbers of ranks.
        self.twins: dict[str, str] = {}
        self.symmetric: bool = False  # whether this state or a later one has twins
        # Options that may be in place of others, and those for which an execution will tell.
        self.asked: dict[str, str] = {}
        self.waiting: set[str] = set()

    def steps(self) -> list[tuple[SearchState, Decision]]:
        """The states from the root to here, each with the event that follows it."""
        found: list[tuple[SearchState, Decision]] = []
        node = self
        while node.parent is not None and node.event is not None:
            found.append((node.parent, node.event))
            node = node.parent
        found.reverse()
        return found

    @property
    def first(self) -> str:
        """The name of the event that the first execution through this state took."""
        return next(iter(self.branches), "")

    def cost_of(self, event: Decision, before: tuple[int, int]) -> tuple[int, int]:
        """The cost of a path that goes on from here by an event (see `Task`)."""
        default = next(iter(self.options), "")
        return before[0] + (default != event.name), before[1] + (self.first != event.name)

    def delayed(self) -> set[int]:
        """The processes that caused the first events in place of which the path took others.

        A process is no longer delayed once the path takes an event of it.
        """
        found: set[int] = set()
        for node, event in self.steps():
            if node.first != event.name:
                found.add(node.branches[node.first].pids[-1])
            found.discard(event.pids[-1])
        return found

    def child(self, event: Decision) -> SearchState:
        """The state after an event."""
        found = self.children.get(event.name)
        if found is None:
            found = self.children[event.name] = SearchState(self, event)
        return found


@dataclass(frozen=True)
class Task:
    """A branch to explore: the path to it, and the events that are asleep after it.

    `cost` has two numbers: of events on the path that are not the default of their state, and of
    those that are not the first that was taken in it. If it is `delaying`, the processes that
    caused the latter come last after the path. If an option is `asked`, the execution follows the
    path to `node` with two ranks exchanged, and tells whether this leads to the same state.
    """

    node: SearchState  # after the branch
    sleep: tuple[Decision, ...]
    cost: tuple[int, int]
    delaying: bool = False
    asked: str = ""

    def prefix(self) -> list[str]:
        """The names of the events to begin with."""
        events = [event for _, event in self.node.steps()]
        if not self.asked:
            return [event.name for event in events]
        options = self.node.options
        ranks = [options[name].pids[1] for name in (self.asked, self.node.asked[self.asked])]
        return [exchanged(event, *ranks) for event in events]


class SearchTree:
    """The tree of executions under one rule for standard sends and one order of ranks between
    decisions, and the branches to explore."""

    def __init__(
        self,
        reduction: str = "source",
        buffered: bool = True,
        order: int = 0,
        symmetric: bool = False,
        remedy: Remedy | None = None,
    ) -> None:
        self.remedy = remedy  # a change of the program
        self.symmetric = symmetric
        self.alike: set[int] = set()  # ranks that were taken as equal but for their numbers
        self.reduction = reduction
        self.order = order
        self.buffered = buffered
        self.root = SearchState(None, None)
        self.executions = 0  # complete ones
        self.redundant = 0
        self.meetings = 0  # executions that ended at a state that was met before
        self.memory = KnownStates()
        self.states = 1
        self.fraction = 0.0  # of the tree that is explored, as far as it is known
        self._count = 0
        self._taken = 0  # tasks
        self._tasks: dict[int, Task] = {}
        self._queues: tuple[list[tuple[int, int, int]], ...] = [], []
        self._add(Task(self.root, (), (0, 0)))

    def _add(self, task: Task) -> None:
        self._count += 1
        self._queue(self._count, task)

    def _queue(self, number: int, task: Task) -> None:
        # Few deviations come first: most failures need few, and are then easy to understand. In
        # turn with these come few processes that are late: some failures need one that is late for
        # many events, each of which is a deviation. Tasks of one cost come from everywhere in the
        # tree.
        self._tasks[number] = task
        place = number * _SCATTER % _MODULUS
        for queue, cost in zip(self._queues, task.cost):
            heapq.heappush(queue, (cost, place, number))

    @property
    def left(self) -> int:
        """Branches that are known and not explored."""
        return len(self._tasks)

    def next(self) -> Task | None:
        """The next branch to explore."""
        if not self._tasks:
            return None
        delaying = self._taken >= _SIMPLE and self._taken % 2 == 1
        self._taken += 1
        queue = self._queues[delaying]
        while (number := heapq.heappop(queue)[2]) not in self._tasks:
            pass  # it was taken from the other queue
        return replace(self._tasks.pop(number), delaying=delaying)

    def dump(self) -> list[object]:
        """The tree as data for JSON, without references between nodes; `load` restores it."""
        numbers: dict[int, int] = {}
        rows: list[list[object]] = []
        stack: list[tuple[SearchState, int]] = [(self.root, -1)]
        while stack:
            node, parent = stack.pop()
            number = numbers[id(node)] = len(rows)
            options, branches = list(node.options.values()), list(node.branches.values())
            digest = None if node.digest is None else node.digest.hex()
            rows.append([
                parent, node.event, options, node.sleep, branches, digest, sorted(node.idle),
                node.full, _dumped(node.future), _dumped(node.beyond), node.twins,
                node.symmetric, node.asked, node.entries,
            ])  # fmt: skip
            stack += [(child, number) for child in node.children.values()]
        tasks = [
            [number, task.cost, numbers[id(task.node)], task.sleep, task.asked]
            for number, task in self._tasks.items()
        ]
        for row in rows:
            entries: Any = row[-1]
            row[-1] = [(numbers[id(before)], event) for before, event in entries]
        figures = [
            self.executions, self.redundant, self.states, self.fraction, self._count, self.meetings,
            self._taken,
        ]  # fmt: skip
        idle = sorted(state.hex() for state in self.memory.idle)
        alike = sorted(self.alike)
        return [
            self.reduction, self.buffered, self.order, self.symmetric, alike, rows, tasks, figures,
            idle,
        ]  # fmt: skip

    @classmethod
    def load(cls, data: Any) -> SearchTree:
        """The tree that `dump` described; ValueError or TypeError for other data."""
        reduction, buffered, order, symmetric, alike, rows, tasks, figures, idle = data
        if reduction not in REDUCTIONS or type(buffered) is not bool or type(symmetric) is not bool:
            raise ValueError
        tree = cls(reduction, buffered, _whole(order), symmetric)
        tree.alike = set(map(_whole, alike))
        nodes: list[SearchState] = []
        tree.memory.idle = set(map(bytes.fromhex, idle))
        for row in rows:
            parent, event, options, sleep, branches, digest, leads, full, future, beyond = row[:10]
            twins, shared, asked, _ = row[10:]
            node = tree.root
            if nodes:
                node = nodes[_index(parent, nodes)].child(decision_of(event))
            node.options = {one.name: one for one in map(decision_of, options)}
            node.sleep = list(map(decision_of, sleep))
            node.branches = {one.name: one for one in map(decision_of, branches)}
            node.idle = frozenset(map(str, leads))
            node.full = full is True
            node.twins = {str(one): str(other) for one, other in twins.items()}
            node.symmetric = shared is True
            node.asked = {str(one): str(other) for one, other in asked.items()}
            node.future, node.beyond = _loaded(future), _loaded(beyond)
            if digest is not None:
                node.digest = bytes.fromhex(digest)
                tree.memory.states[node.digest] = node
            nodes.append(node)
        for node, row in zip(nodes, rows):
            node.entries = [(nodes[_index(one, nodes)], decision_of(led)) for one, led in row[-1]]
        tree._tasks.clear()
        for queue in tree._queues:
            queue.clear()
        for number, (deviations, late), place, sleep, name in tasks:
            cost = _whole(deviations), _whole(late)
            events = tuple(map(decision_of, sleep))
            node = nodes[_index(place, nodes)]
            if name:
                node.waiting.add(name)
            tree._queue(_whole(number), Task(node, events, cost, asked=str(name)))
        executions, redundant, states, fraction, count, meetings, taken = figures
        tree.executions, tree.redundant = _whole(executions), _whole(redundant)
        tree.states, tree.fraction, tree._count = _whole(states), float(fraction), _whole(count)
        tree.meetings, tree._taken = _whole(meetings), _whole(taken)
        return tree

    def put_back(self, task: Task) -> None:
        """A branch was not explored after all."""
        self._add(task)

    def observer(self, task: Task) -> Observer:
        """The decider of the execution that explores a branch."""
        return Observer(
            task.prefix(), task.sleep, self.buffered, self.reduction != "none", order=self.order,
            memory=self.memory if self.reduction == "source" else None, searching=True,
            symmetric=self.symmetric, delayed=task.node.delayed() if task.delaying else (),
            remedy=self.remedy, asking=bool(task.asked),
        )  # fmt: skip

    def estimate(self) -> float | None:
        """About how many executions the whole tree has; None if that is not known."""
        if not self.left:
            return float(self.executions + self.meetings)
        done = self.executions + self.meetings
        if done < 2 or self.fraction <= 0.0:
            return None
        return max(done + self.left, done / min(1.0, self.fraction))

    def learn(self, task: Task, trace: Trace) -> None:
        """Take in an execution, and find the branches that it shows."""
        if task.asked:
            self._answered(task, trace)
            return
        if trace.diverged is not None:
            return
        self.memory.idle.update(trace.new_idle)
        nodes, met = self._path(task, trace)
        events = trace.events[: len(nodes)]
        if trace.met is not None:
            self.meetings += 1
        elif trace.redundant:
            self.redundant += 1
        else:
            self.executions += 1
        costs = [(0, 0)]
        for node, event in zip(nodes, events):
            costs.append(node.cost_of(event, costs[-1]))
        if len(events) < len(trace.events):
            trace = _first_part(trace, len(events))
        for i in range(len(events)):
            for event in self._branches(i, nodes[i], trace):
                self._branch(nodes[i], event, costs[i])
        if self.reduction == "source":
            self._follow(nodes, trace)
            if met is not None:
                last = len(events) - 1
                asleep: Sequence[Decision] = task.sleep
                if last >= task.node.depth:
                    asleep = [one for one in trace.asleep[last] if not dependent(one, events[last])]
                self._meet(nodes[last], events[last], met, {one.name for one in asleep})
        for node in nodes:
            if node.twins:
                self._explore_before(node)
        if not trace.redundant:
            share = 1.0
            for node in nodes:
                share /= max(1, len(node.branches))
            self.fraction += share

    def _answered(self, task: Task, trace: Trace) -> None:
        """An execution tells whether an order with two ranks exchanged leads to the same state.

        If it does, and if the program treats these ranks alike, one of their messages in this state
        is enough.
        """
        node, name = task.node, task.asked
        node.waiting.discard(name)
        other = node.asked.pop(name)
        if trace.met is None or trace.met != node.digest:
            self.redundant += trace.met is not None
            self._branch(node, node.options[name], self._cost(node))
            return
        self.meetings += 1
        node.twins[name] = other
        self._branch(node, node.options[name], self._cost(node))
        self._explore_before(node)

    def _path(self, task: Task, trace: Trace) -> tuple[list[SearchState], SearchState | None]:
        """The states of an execution before its events, and the known state at which it ends."""
        nodes: list[SearchState] = []
        known = self.memory.states
        for i, node in enumerate(self._nodes(task, trace)):
            digest = trace.digests[i] if i < len(trace.digests) else None
            if digest is not None and node.digest is None:
                other = known.setdefault(digest, node)
                if other is not node:
                    # Two executions at the same time have come to one state.
                    node.options = {}
                    node.branches = {}
                    self.states -= 1
                    return nodes, other
                node.digest = digest
            nodes.append(node)
        if trace.met is not None and trace.events:
            return nodes, known[trace.met]
        return nodes, None

    # States that executions meet.

    def _follow(self, nodes: list[SearchState], trace: Trace) -> None:
        """Note what has followed the states of an execution."""
        following: set[Decision | Offer] = set()
        arrivals = sorted(zip(trace.moments, trace.arrivals), key=_moment)
        for i in range(len(nodes) - 1, -1, -1):
            following.add(_anywhere(trace.events[i]))
            while arrivals and arrivals[-1][0] > i:
                following.add(arrivals.pop()[1]._replace(past=0))
            node = nodes[i]
            new = following - node.future
            if new:
                node.future |= new
                for before, event in node.entries:
                    self._extend(before, event, new)

    def _meet(self, node: SearchState, event: Decision, met: SearchState, asleep: set[str]) -> None:
        """An execution has come from a state to a known one by an event; some events are asleep."""
        met.entries.append((node, event))
        if met.symmetric:
            self._explore_before(node)
        if met.depth <= node.depth:
            self._explore_all(met)
        woken = [one for one in met.sleep if one.name not in asleep]
        met.sleep = [one for one in met.sleep if one.name in asleep]
        for one in woken:
            if one.name in met.options:
                self._branch(met, met.options[one.name], self._cost(met))
        self._extend(node, event, met.future | met.beyond)

    def _extend(self, node: SearchState, event: Decision, new: set[Decision | Offer]) -> None:
        """More can follow a known state to which an event leads from a state."""
        work = [(node, event, new)]
        while work:
            node, event, new = work.pop()
            if not node.full and _competes(_anywhere(event), new):
                self._explore_all(node)
            more = new - node.beyond
            if not more:
                continue
            node.beyond |= more
            if node.parent is not None and node.event is not None:
                work.append((node.parent, node.event, more))
            work += [(before, led, more) for before, led in node.entries]

    def _explore_all(self, node: SearchState) -> None:
        if node.full:
            return
        node.full = True
        cost = self._cost(node)
        for option in list(node.options.values()):
            self._branch(node, option, cost)

    def _explore_before(self, node: SearchState) -> None:
        """Options of a state are left out: explore all others there, and in all states before.

        What follows an option that is left out is not seen, so it cannot tell which options of
        earlier states matter.
        """
        work = [node]
        while work:
            node = work.pop()
            if node.symmetric:
                continue
            node.symmetric = True
            self._explore_all(node)
            if node.parent is not None:
                work.append(node.parent)
            work += [before for before, _ in node.entries]

    @staticmethod
    def _cost(node: SearchState) -> tuple[int, int]:
        cost = 0, 0
        for before, event in node.steps():
            cost = before.cost_of(event, cost)
        return cost

    def _nodes(self, task: Task, trace: Trace) -> Iterator[SearchState]:
        """The states of an execution; new ones are added to the tree."""
        node = self.root
        begin = task.node.depth
        for i, event in enumerate(trace.events):
            if not node.options:
                node.options = {option.name: option for option in trace.options[i]}
                if i >= begin:
                    node.sleep = trace.asleep[i]
                    node.idle = frozenset(trace.idle[i])
                    node.twins, node.asked = trace.twins[i], dict(trace.asked[i])
                self.states += 1
            node.branches.setdefault(event.name, event)
            yield node
            node = node.child(event)

    def _branch(self, node: SearchState, event: Decision, cost: tuple[int, int]) -> None:
        twin = node.twins.get(event.name)
        if twin is not None:
            self.alike.update((event.pids[1], node.options[twin].pids[1]))
            event = node.options[twin]
        if event.name in node.branches or event.name in node.idle or event.name in node.waiting:
            return
        sleep: tuple[Decision, ...] = ()
        if self.reduction != "none":
            if any(event.name == other.name for other in node.sleep):
                return
            known = [*node.sleep, *node.branches.values()]
            sleep = tuple(other for other in known if not dependent(other, event))
        if event.name in node.asked:
            node.waiting.add(event.name)
            self._add(Task(node, (), node.cost_of(event, cost), asked=event.name))
            return
        node.branches[event.name] = event
        self._add(Task(node.child(event), sleep, node.cost_of(event, cost)))

    def _branches(self, i: int, node: SearchState, trace: Trace) -> Iterator[Decision]:
        """The options of a state that matter after this execution."""
        taken = trace.events[i]
        if self.reduction != "source":
            yield from node.options.values()
            return
        for option in node.options.values():
            if option.name != taken.name and dependent(option, taken):
                yield option
        bit = 1 << i
        for j in range(i + 1, len(trace.events)):
            if not trace.pasts[j] & bit and dependent(taken, trace.events[j]):
                yield from self._first(i, node, trace, trace.pasts[j], trace.events[j])
        for arrival in trace.arrivals:
            if arrival.past >> (i + 1) and not arrival.past & bit and concerns(arrival, taken):
                yield from self._first(i, node, trace, arrival.past, None)

    def _first(
        self, i: int, node: SearchState, trace: Trace, past: int, last: Decision | None
    ) -> Sequence[Decision]:
        """An event with which something of this past can begin in a state, if none is explored."""
        later = past >> (i + 1)
        firsts: list[Decision] = []
        j = i + 1
        while later:
            if later & 1 and not trace.pasts[j] >> (i + 1):
                firsts.append(trace.events[j])
            later >>= 1
            j += 1
        if not firsts and last is not None:
            firsts = [last]
        names = {event.name for event in firsts}
        if names & node.branches.keys() or any(event.name in names for event in node.sleep):
            return ()
        possible = [event for event in firsts if event.name in node.options]
        return possible[:1] or list(node.options.values())


def _dumped(items: set[Decision | Offer]) -> list[list[Any]]:
    return sorted((list(one) for one in items), key=repr)


def _loaded(rows: Any) -> set[Decision | Offer]:
    return {
        decision_of(row) if len(row) == len(Decision._fields) else offer_of(row) for row in rows
    }


def _moment(arrival: tuple[int, Offer]) -> int:
    return arrival[0]


def _anywhere(event: Decision) -> Decision:
    """An event without the names that depend on the path to it."""
    return event._replace(name="", receipt="", watched=None)


def _competes(event: Decision, others: set[Decision | Offer]) -> bool:
    """Whether one of some events or arrivals could change places with an event."""
    return any(
        dependent(event, one) if isinstance(one, Decision) else concerns(one, event)
        for one in others
    )


def _first_part(trace: Trace, count: int) -> Trace:
    """The first events of an execution, and the arrivals that depend on these only."""
    arrivals = [
        (moment, one)
        for moment, one in zip(trace.moments, trace.arrivals)
        if moment <= count and not one.past >> count
    ]
    return replace(
        trace, events=trace.events[:count], pasts=trace.pasts[:count],
        arrivals=[one for _, one in arrivals], moments=[moment for moment, _ in arrivals],
    )  # fmt: skip


def predictions(trace: Trace) -> list[tuple[int, Decision]]:
    """The other options that one execution shows: numbers of events, and events in their place.

    Nothing is executed for this.
    """
    tree = SearchTree()
    task = tree.next()
    assert task is not None
    found: list[tuple[int, Decision]] = []
    nodes = list(tree._nodes(task, trace))
    for i, node in enumerate(nodes):
        seen = {trace.events[i].name}
        for event in tree._branches(i, node, trace):
            if event.name not in seen:
                seen.add(event.name)
                found.append((i, event))
    return found
