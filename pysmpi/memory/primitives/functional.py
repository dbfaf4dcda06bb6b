"""Correctness of a program for every order in which its processes run.

The functional model has no time and no caches: in each step one process makes one access or passes
one mark. All its states are explored.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Mapping
from dataclasses import dataclass

from pysmpi.memory.coherence.safety import conflict, explore
from pysmpi.memory.primitives.bisimulation import TAU, Transitions, equivalent
from pysmpi.memory.primitives.machine import Numbering, PrimitiveMachine
from pysmpi.memory.primitives.operations import MARK, MARKS, START
from pysmpi.text import count

_SHOWN = 12


@dataclass(frozen=True)
class Check:
    """A checked property: its name, whether it holds, and the reason or the number of cases."""

    name: str
    holds: bool
    detail: str


@dataclass(frozen=True)
class TransitionSystem:
    """The labelled transition system of a program; state 0 is the initial one.

    states: each process's local state, and memory, by number. transitions: for each state the label
    (TAU without a mark), the target and the process. starts: for each process, the states in which
    it begins a turn.
    """

    states: list[tuple[int, ...]]
    transitions: list[list[tuple[str, int, int]]]
    starts: list[set[int]]

    @property
    def size(self) -> int:
        """The number of transitions."""
        return sum(map(len, self.transitions))


def model(machine: PrimitiveMachine, limit: int = 2_000_000) -> TransitionSystem:
    """All states of the functional model, breadth first. Raises UsageError above `limit`."""
    processes = len(machine.program.processes)
    first = (*(each.first.number for each in machine.locals), machine.first_memory)
    states = Numbering(first)
    transitions: list[list[tuple[str, int, int]]] = []
    starts: list[set[int]] = [set() for _ in range(processes)]
    for number, state in enumerate(states.values):
        leaving = []
        for process in range(processes):
            local = machine.locals[process].states[state[process]]
            operation = local.operation
            if operation is None:
                continue
            label, answer, memory = TAU, None, state[-1]
            if operation.name not in MARKS:
                _, answer, memory = machine.touch(process, local, memory)
            elif operation.name == MARK:
                label = operation.argument
            elif operation.name == START:
                starts[process].add(number)
            after = machine.locals[process].next(local, answer).number
            new = (*state[:process], after, *state[process + 1 : -1], memory)
            leaving.append((label, states.of(new), process))
        transitions.append(leaving)
        machine.check_size(len(states), limit)
    return TransitionSystem(states.values, transitions, starts)


def check(machine: PrimitiveMachine, found: TransitionSystem) -> list[Check]:
    """Mutual exclusion, no livelock, coherence, and the specification if the program has one."""
    checks = [mutual_exclusion(machine, found), progress(machine, found), coherence(machine)]
    if machine.program.specification is not None:
        checks.append(as_specified(machine, found))
    return checks


def mutual_exclusion(machine: PrimitiveMachine, found: TransitionSystem) -> Check:
    """Never two processes in one critical section."""
    name = "mutual exclusion"
    sections = set()
    for state in found.states:
        inside: dict[str, int] = {}
        for process, states in enumerate(machine.locals):
            for section in states.states[state[process]].inside:
                sections.add(section)
                if section in inside:
                    both = f"processes {inside[section]} and {process} are both in {section}"
                    return Check(name, False, f"{both}: {_situation(machine, state)}")
                inside[section] = process
    return Check(name, True, f"{count(len(sections), 'section')}")


def progress(machine: PrimitiveMachine, found: TransitionSystem) -> Check:
    """From every state each process can reach the beginning of another turn."""
    name = "no deadlock or livelock"
    into: list[list[int]] = [[] for _ in found.states]
    for number, leaving in enumerate(found.transitions):
        for _, target, _ in leaving:
            into[target].append(number)
    for process, starts in enumerate(found.starts):
        alive = set(starts)
        queue = deque(starts)
        while queue:
            for before in into[queue.popleft()]:
                if before not in alive:
                    alive.add(before)
                    queue.append(before)
        if len(alive) < len(found.states):
            stuck = next(i for i in range(len(found.states)) if i not in alive)
            detail = f"process {process} never begins another turn from where "
            return Check(name, False, detail + _situation(machine, found.states[stuck]))
    return Check(name, True, f"{len(found.starts)} processes, {count(len(found.states), 'state')}")


def _situation(machine: PrimitiveMachine, state: tuple[int, ...]) -> str:
    """The position of each process in its program, and the contents of memory."""
    places = [
        f"process {process} at {states.states[number].place}"
        for process, (states, number) in enumerate(zip(machine.locals, state))
    ]
    values = machine.memories.values[state[-1]]
    held = [f"{variable.name} = {value}" for variable, value in zip(machine.variables, values)]
    more = ["..."] if len(held) > _SHOWN else []
    return ", ".join([*places, *held[:_SHOWN], *more])


def coherence(machine: PrimitiveMachine) -> Check:
    """The table is safe for this number of caches, and no reached state has two owners."""
    name = "coherence"
    protocol = machine.protocol
    explored = explore(protocol, len(machine.program.processes))
    if explored.violation is not None:
        return Check(name, False, f"{protocol.name}: {explored.violation}")
    for lines in machine.caches.values:
        for variable, states in zip(machine.variables, lines):
            problem = conflict(protocol, states)
            if problem:
                return Check(name, False, f"{variable.name}: {problem}")
    return Check(
        name, True,
        f"{protocol.name}: {count(explored.states, 'state')} of a line, "
        f"{count(len(machine.caches), 'state')} of all caches",
    )  # fmt: skip


def as_specified(machine: PrimitiveMachine, found: TransitionSystem) -> Check:
    """The marks, all else hidden, are branching bisimilar to the specification."""
    name = "equivalence with the specification"
    specification = machine.program.specification
    assert specification is not None
    trace = _forbidden(found, specification)
    if trace is not None:
        shown = ", ".join(trace[-_SHOWN:])
        before = "..., " if len(trace) > _SHOWN else ""
        return Check(name, False, f"it does not allow: {before}{shown}")
    numbers = {state: i for i, state in enumerate(specification)}
    wanted: Transitions = [
        [(label, numbers[target]) for label, target in leaving.items()]
        for leaving in specification.values()
    ]
    actual: Transitions = [
        [(label, target) for label, target, _ in leaving] for leaving in found.transitions
    ]
    same, blocks = equivalent(actual, wanted)
    if not same:
        return Check(name, False, "in some state an allowed mark is no longer possible")
    return Check(name, True, f"branching bisimulation, {blocks} classes of states")


def _forbidden(
    found: TransitionSystem, specification: Mapping[Hashable, Mapping[str, Hashable]]
) -> list[str] | None:
    """The shortest sequence of marks that the specification does not allow, or None."""
    start = (0, next(iter(specification)))
    before: dict[tuple[int, Hashable], tuple[tuple[int, Hashable], str] | None] = {start: None}
    queue = deque([start])
    while queue:
        at = queue.popleft()
        number, wanted = at
        for label, target, _ in found.transitions[number]:
            if label == TAU:
                new = (target, wanted)
            elif label in specification[wanted]:
                new = (target, specification[wanted][label])
            else:
                trace = [label]
                step = before[at]
                while step is not None:
                    if step[1] != TAU:
                        trace.append(step[1])
                    step = before[step[0]]
                return trace[::-1]
            if new not in before:
                before[new] = (at, label)
                queue.append(new)
    return None
