"""Temporal properties of a program, over the actions of its processes.

An action is written `PROCESS: OPERATION [NAME]`, such as `0: store flag`, `1: start`,
`0: enter lock` or `1: mark received`. A property names actions by patterns (`*` matches any text):

    never A                     no process ever does A
    A precedes B                B never happens before an A
    A alternates with B         between two A there is a B, and A comes first
    A leads to B                from any place after an A a B remains possible, until it comes
    always possible A           from every state a state can be reached where A happens

The last two are those that hold of all fair executions. The patterns are after Dwyer, Avrunin and
Corbett: Patterns in Property Specifications for Finite-State Verification. ICSE 1999.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TextIO

from pysmpi.errors import UsageError
from pysmpi.memory.primitives.functional import Check, TransitionSystem
from pysmpi.memory.primitives.machine import PrimitiveMachine
from pysmpi.text import count

_SHOWN = 12
_FORMS = (
    ("never", re.compile(r"never (?P<a>.+)")),
    ("precedes", re.compile(r"(?P<a>.+) precedes (?P<b>.+)")),
    ("alternates", re.compile(r"(?P<a>.+) alternates with (?P<b>.+)")),
    ("leads", re.compile(r"(?P<a>.+) leads to (?P<b>.+)")),
    ("possible", re.compile(r"always possible (?P<a>.+)")),
)
EXPECTED = '"never A", "A precedes B", "A alternates with B", "A leads to B" or "always possible A"'


@dataclass(frozen=True)
class Property:
    """A property: its text, its form, and the patterns of its actions."""

    text: str
    form: str
    first: str
    second: str = ""


def parse_property(text: str) -> Property:
    """The property that a text states. Raises UsageError."""
    for form, pattern in _FORMS:
        found = pattern.fullmatch(text.strip())
        if found:
            parts = found.groupdict()
            return Property(text.strip(), form, parts["a"].strip(), parts.get("b", "").strip())
    raise UsageError(f'--property: expected {EXPECTED}, got "{text}"')


def action(machine: PrimitiveMachine, process: int, local: int) -> str:
    """The name of the action of a process in a local state, for properties and exports."""
    operation = machine.locals[process].states[local].operation
    assert operation is not None
    what = operation.variable.name if operation.variable is not None else operation.argument
    return f"{process}: {operation.name}" + (f" {what}" if what is not None else "")


class Actions:
    """The transitions of a system with the numbers of their actions."""

    def __init__(self, machine: PrimitiveMachine, system: TransitionSystem) -> None:
        self.system = system
        self.names: list[str] = []
        self.numbers: dict[tuple[int, int], int] = {}  # by process and local state
        known: dict[str, int] = {}
        for process, states in enumerate(machine.locals):
            for local in states.states:
                if local.operation is not None:
                    name = action(machine, process, local.number)
                    if name not in known:
                        known[name] = len(self.names)
                        self.names.append(name)
                    self.numbers[process, local.number] = known[name]

    def leaving(self, state: int) -> Iterator[tuple[int, int]]:
        """The action and the target of each transition of a state."""
        locals_ = self.system.states[state]
        for _, target, process in self.system.transitions[state]:
            yield self.numbers[process, locals_[process]], target

    def matching(self, pattern: str) -> frozenset[int]:
        """The actions that a pattern names. Raises UsageError if there is none."""
        # Names have brackets, so only * is special.
        like = re.compile(".*".join(map(re.escape, pattern.split("*"))))
        found = frozenset(i for i, name in enumerate(self.names) if like.fullmatch(name))
        if not found:
            raise UsageError(
                f'--property: expected an action of the program, such as "{self.names[0]}", got '
                f'"{pattern}"'
            )
        return found


def check_property(actions: Actions, wanted: Property) -> Check:
    """Whether a property holds of all executions. Raises UsageError for an unknown action."""
    first = actions.matching(wanted.first)
    second = actions.matching(wanted.second) if wanted.second else frozenset()
    if wanted.form == "never":
        return _safety(actions, wanted, lambda state, act: -1 if act in first else 0)
    if wanted.form == "precedes":
        # 1: an A has happened.
        return _safety(
            actions, wanted,
            lambda state, act: 1 if state or act in first else -1 if act in second else 0,
        )  # fmt: skip
    if wanted.form == "alternates":

        def step(state: int, act: int) -> int:
            """1: an A awaits its B."""
            if act in first:
                return -1 if state else 1
            if act in second:
                return 0 if state else -1
            return state

        return _safety(actions, wanted, step)
    if wanted.form == "leads":
        return _possible(actions, wanted, second, first)
    return _possible(actions, wanted, first, None)


def _safety(actions: Actions, wanted: Property, step: Callable[[int, int], int]) -> Check:
    """Follow an automaton of few states along all executions; -1 is a violation."""
    start = (0, 0)
    before: dict[tuple[int, int], tuple[tuple[int, int], int] | None] = {start: None}
    queue = deque([start])
    while queue:
        at = queue.popleft()
        for act, target in actions.leaving(at[0]):
            after = step(at[1], act)
            if after < 0:
                return Check(wanted.text, False, _trace(actions, before, at, act))
            new = (target, after)
            if new not in before:
                before[new] = (at, act)
                queue.append(new)
    return Check(wanted.text, True, count(len(before), "state"))


def _trace(
    actions: Actions,
    before: dict[tuple[int, int], tuple[tuple[int, int], int] | None],
    at: tuple[int, int],
    act: int,
) -> str:
    """The end of a shortest execution to a violation."""
    done = [actions.names[act]]
    step = before[at]
    while step is not None:
        done.append(actions.names[step[1]])
        step = before[step[0]]
    shown = ", ".join(done[_SHOWN - 1 :: -1])
    return f"after {'..., ' if len(done) > _SHOWN else ''}{shown}"


def _possible(
    actions: Actions, wanted: Property, goal: frozenset[int], after: frozenset[int] | None
) -> Check:
    """From every state, or from those after an action, a transition of the goal can be reached."""
    system = actions.system
    into: list[list[int]] = [[] for _ in system.states]
    alive: set[int] = set()
    asked: dict[int, int] = {}
    for state in range(len(system.states)):
        for act, target in actions.leaving(state):
            into[target].append(state)
            if act in goal:
                alive.add(state)
            if after is not None and act in after:
                asked.setdefault(target, act)
    queue = deque(alive)
    while queue:
        for source in into[queue.popleft()]:
            if source not in alive:
                alive.add(source)
                queue.append(source)
    if after is None:
        lost = next((state for state in range(len(system.states)) if state not in alive), None)
        detail = "in some state it can never happen again"
    else:
        # All that follows an A without a B in between.
        seen = dict(asked)
        pending = deque(seen)
        while pending:
            state = pending.popleft()
            for act, target in actions.leaving(state):
                if act not in goal and target not in seen:
                    seen[target] = seen[state]
                    pending.append(target)
        lost = next((state for state in seen if state not in alive), None)
        detail = "" if lost is None else f"after {actions.names[seen[lost]]} it may never come"
    if lost is not None:
        return Check(wanted.text, False, detail)
    return Check(wanted.text, True, count(len(system.states), "state"))


def write_aldebaran(stream: TextIO, actions: Actions) -> None:
    """Write a transition system in Aldebaran's format (.aut), which CADP and mCRL2 read.

    The labels are the actions. The text is written a state at a time.
    """
    system = actions.system
    stream.write(f"des (0, {system.size}, {len(system.states)})\n")
    for state in range(len(system.states)):
        for act, target in actions.leaving(state):
            label = actions.names[act].replace('"', "'")
            stream.write(f'({state}, "{label}", {target})\n')
