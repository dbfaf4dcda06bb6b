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
from dataclasses import dataclass
from typing import Any

from pysmpi.explore.events import Decision, Trace, concerns, decision_of, dependent
from pysmpi.explore.observer import Observer

REDUCTIONS = ("source", "sleep", "none")


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

    __slots__ = ("parent", "event", "depth", "options", "sleep", "branches", "children")

    def __init__(self, parent: SearchState | None, event: Decision | None) -> None:
        self.parent = parent
        self.event = event  # that led here
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.options: dict[str, Decision] = {}
        self.sleep: list[Decision] = []
        self.branches: dict[str, Decision] = {}
        self.children: dict[str, SearchState] = {}

    def path(self) -> list[str]:
        """The names of the events from the root to here."""
        names: list[str] = []
        node: SearchState | None = self
        while node is not None and node.event is not None:
            names.append(node.event.name)
            node = node.parent
        names.reverse()
        return names

    def child(self, event: Decision) -> SearchState:
        """The state after an event."""
        found = self.children.get(event.name)
        if found is None:
            found = self.children[event.name] = SearchState(self, event)
        return found


@dataclass(frozen=True)
class Task:
    """A branch to explore: the path to it, and the events that are asleep after it."""

    node: SearchState  # after the branch
    sleep: tuple[Decision, ...]
    deviations: int
    buffered: bool

    def prefix(self) -> list[str]:
        """The names of the events to begin with."""
        return self.node.path()


class SearchTree:
    """The tree of executions under one rule for standard sends and one order of ranks between
    decisions, and the branches to explore."""

    def __init__(self, reduction: str = "source", buffered: bool = True, order: int = 0) -> None:
        self.reduction = reduction
        self.order = order
        self.buffered = buffered
        self.root = SearchState(None, None)
        self.executions = 0  # complete ones
        self.redundant = 0
        self.states = 1
        self.fraction = 0.0  # of the tree that is explored, as far as it is known
        self._count = 0
        self._tasks: list[tuple[int, int, Task]] = []
        self._add(Task(self.root, (), 0, buffered))

    def _add(self, task: Task) -> None:
        self._count += 1
        # Few deviations come first: most failures need few, and are then easy to understand.
        heapq.heappush(self._tasks, (task.deviations, self._count, task))

    @property
    def left(self) -> int:
        """Branches that are known and not explored."""
        return len(self._tasks)

    def next(self) -> Task | None:
        """The next branch to explore."""
        return heapq.heappop(self._tasks)[2] if self._tasks else None

    def dump(self) -> list[object]:
        """The tree as data for JSON, without references between nodes; `load` restores it."""
        numbers: dict[int, int] = {}
        rows: list[list[object]] = []
        stack: list[tuple[SearchState, int]] = [(self.root, -1)]
        while stack:
            node, parent = stack.pop()
            number = numbers[id(node)] = len(rows)
            options, branches = list(node.options.values()), list(node.branches.values())
            rows.append([parent, node.event, options, node.sleep, branches])
            stack += [(child, number) for child in node.children.values()]
        tasks = [
            [deviations, count, numbers[id(task.node)], task.sleep]
            for deviations, count, task in self._tasks
        ]
        figures = [self.executions, self.redundant, self.states, self.fraction, self._count]
        return [self.reduction, self.buffered, self.order, rows, tasks, figures]

    @classmethod
    def load(cls, data: Any) -> SearchTree:
        """The tree that `dump` described; ValueError or TypeError for other data."""
        reduction, buffered, order, rows, tasks, figures = data
        if reduction not in REDUCTIONS or type(buffered) is not bool:
            raise ValueError
        tree = cls(reduction, buffered, _whole(order))
        nodes: list[SearchState] = []
        for parent, event, options, sleep, branches in rows:
            node = tree.root
            if nodes:
                node = nodes[_index(parent, nodes)].child(decision_of(event))
            node.options = {one.name: one for one in map(decision_of, options)}
            node.sleep = list(map(decision_of, sleep))
            node.branches = {one.name: one for one in map(decision_of, branches)}
            nodes.append(node)
        tree._tasks = [
            (_whole(deviations), _whole(count), Task(
                nodes[_index(number, nodes)], tuple(map(decision_of, sleep)), deviations, buffered
            ))
            for deviations, count, number, sleep in tasks
        ]  # fmt: skip
        heapq.heapify(tree._tasks)
        executions, redundant, states, fraction, count = figures
        tree.executions, tree.redundant = _whole(executions), _whole(redundant)
        tree.states, tree.fraction, tree._count = _whole(states), float(fraction), _whole(count)
        return tree

    def put_back(self, task: Task) -> None:
        """A branch was not explored after all."""
        self._add(task)

    def observer(self, task: Task) -> Observer:
        """The decider of the execution that explores a branch."""
        return Observer(
            task.prefix(), task.sleep, task.buffered, self.reduction != "none", order=self.order
        )

    def estimate(self) -> float | None:
        """About how many executions the whole tree has; None if that is not known."""
        if not self.left:
            return float(self.executions)
        if self.executions < 2 or self.fraction <= 0.0:
            return None
        return max(self.executions + self.left, self.executions / min(1.0, self.fraction))

    def learn(self, task: Task, trace: Trace) -> None:
        """Take in an execution, and find the branches that it shows."""
        if trace.diverged is not None:
            return
        nodes = list(self._nodes(task, trace))
        if trace.redundant:
            self.redundant += 1
        else:
            self.executions += 1
        deviations = 0
        counts = []
        for node, event in zip(nodes, trace.events):
            deviations += next(iter(node.options), "") != event.name
            counts.append(deviations)
        for i in range(len(trace.events)):
            before = counts[i - 1] if i else 0
            for event in self._branches(i, nodes[i], trace):
                self._branch(nodes[i], event, before)
        if not trace.redundant:
            share = 1.0
            for node in nodes:
                share /= max(1, len(node.branches))
            self.fraction += share

    def _nodes(self, task: Task, trace: Trace) -> Iterator[SearchState]:
        """The states of an execution; new ones are added to the tree."""
        node = self.root
        begin = task.node.depth
        for i, event in enumerate(trace.events):
            if not node.options:
                node.options = {option.name: option for option in trace.options[i]}
                if i >= begin:
                    node.sleep = trace.asleep[i]
                self.states += 1
            node.branches.setdefault(event.name, event)
            yield node
            node = node.child(event)

    def _branch(self, node: SearchState, event: Decision, deviations: int) -> None:
        if event.name in node.branches:
            return
        sleep: tuple[Decision, ...] = ()
        if self.reduction != "none":
            if any(event.name == other.name for other in node.sleep):
                return
            known = [*node.sleep, *node.branches.values()]
            sleep = tuple(other for other in known if not dependent(other, event))
        node.branches[event.name] = event
        deviates = next(iter(node.options)) != event.name
        self._add(Task(node.child(event), sleep, deviations + deviates, self.buffered))

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
