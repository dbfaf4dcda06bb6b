"""The language of primitives: shared variables, and generators that yield accesses to them.

    flag = Variable("flag", 0, kind="pointer", home=1)

    def receiver():
        while True:
            yield start()
            while (yield load(flag)) == 0:
                pass
            yield mark("received")
            yield store(flag, 0)

A generator's state is in its local variables: numbers, texts, tuples, lists, variables.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pysmpi.errors import UsageError

LOAD, STORE, TEST_AND_SET, SWAP = "load", "store", "test-and-set", "swap"
FETCH_AND_ADD, COMPARE_AND_SWAP = "fetch-and-add", "compare-and-swap"
START, MARK, ENTER, LEAVE = "start", "mark", "enter", "leave"

# These take no time: they mark the position of a process.
MARKS = frozenset((START, MARK, ENTER, LEAVE))

Value = Hashable


@dataclass(frozen=True, slots=True)
class Variable:
    """A shared variable, alone in its cache line.

    kind: the category of its misses, such as packet, pointer or lock. home: the process whose node
    holds its memory.
    """

    name: str
    initial: Value = 0
    kind: str = "data"
    home: int = 0


class Operation(NamedTuple):
    """A request of a process: one of the operations below."""

    name: str
    variable: Variable | None = None
    argument: Any = None

    @property
    def writes(self) -> bool:
        """Whether the cache needs the line for itself."""
        return self.name != LOAD


Process = Callable[[], Generator[Operation, object, object]]


def load(variable: Variable) -> Operation:
    """Read; the yield gives the value."""
    return Operation(LOAD, variable)


def store(variable: Variable, value: Value) -> Operation:
    """Write."""
    return Operation(STORE, variable, value)


def test_and_set(variable: Variable) -> Operation:
    """Write 1 and return the old value, in one step."""
    return Operation(TEST_AND_SET, variable)


def swap(variable: Variable, value: Value) -> Operation:
    """Write and return the old value, in one step."""
    return Operation(SWAP, variable, value)


def fetch_and_add(variable: Variable, amount: int) -> Operation:
    """Add and return the old value, in one step."""
    return Operation(FETCH_AND_ADD, variable, amount)


def compare_and_swap(variable: Variable, expected: Value, value: Value) -> Operation:
    """Write if the variable has the expected value; return the old value, in one step."""
    return Operation(COMPARE_AND_SWAP, variable, (expected, value))


def start() -> Operation:
    """Begin another turn of the loop that is measured."""
    return Operation(START)


def mark(label: str) -> Operation:
    """Pass an event of the specification, such as receiving a message."""
    return Operation(MARK, None, label)


def enter(section: str) -> Operation:
    """Begin a critical section: no other process may be in it."""
    return Operation(ENTER, None, section)


def leave(section: str) -> Operation:
    """End a critical section."""
    return Operation(LEAVE, None, section)


def acquire(lock: Variable) -> Generator[Operation, object, None]:
    """Take a lock by test-and-set, as often as it needs: `yield from acquire(lock)`."""
    while (yield test_and_set(lock)):
        pass
    yield enter(lock.name)


def release(lock: Variable) -> Generator[Operation, object, None]:
    """Give a lock back."""
    yield leave(lock.name)
    yield store(lock, 0)


def outcome(operation: Operation, old: object) -> tuple[object, object]:
    """The result of an access, and the variable's new value, if its value was `old`."""
    match operation.name:
        case "load":
            return old, old
        case "store":
            return None, operation.argument
        case "test-and-set":
            return old, 1
        case "swap":
            return old, operation.argument
        case "fetch-and-add":
            return old, old + operation.argument
        case "compare-and-swap":
            expected, value = operation.argument
            return old, value if old == expected else old
    raise ValueError(operation.name)


@dataclass(frozen=True)
class Program:
    """Processes over shared variables.

    processes: for each a function that makes its generator, which should loop for ever and yield
    `start()` once in each turn. messages: the number of messages in a turn; unit: their name, such
    as barrier; lines: cache lines of the contents of a message, 0 for none. specification: the
    allowed marks, as a mapping from a state to the allowed labels and the next states; the first
    state is the initial one.
    """

    name: str
    variables: Sequence[Variable]
    processes: Sequence[Process]
    messages: int = 1
    unit: str = "message"
    specification: Mapping[Hashable, Mapping[str, Hashable]] | None = None
    description: str = ""
    lines: int = 0

    def __post_init__(self) -> None:
        where = f"program {self.name}"
        if not self.processes:
            raise UsageError(f"{where}: expected at least one process, got none")
        if self.messages < 1:
            raise UsageError(f"{where}: expected at least 1 message a turn, got {self.messages}")
        if self.lines < 0:
            raise UsageError(f"{where}: expected 0 or more lines a message, got {self.lines}")
        seen: set[str] = set()
        for variable in self.variables:
            if not isinstance(variable, Variable):
                raise UsageError(f"{where}: expected variables, got {variable!r} among them")
            if variable.name in seen:
                raise UsageError(f'{where}: expected one variable "{variable.name}", got two')
            seen.add(variable.name)
            if not 0 <= variable.home < len(self.processes):
                raise UsageError(
                    f'{where}: variable "{variable.name}": expected a process among 0 to '
                    f"{len(self.processes) - 1} as home, got {variable.home}"
                )
        if self.specification is not None:
            _check_specification(where, self.specification)


def _check_specification(
    where: str, specification: Mapping[Hashable, Mapping[str, Hashable]]
) -> None:
    if not specification:
        raise UsageError(f"{where}: specification: expected at least one state, got none")
    for state, leaving in specification.items():
        for label, target in leaving.items():
            if target not in specification:
                raise UsageError(
                    f'{where}: specification: expected a state after "{label}" in {state!r}, '
                    f"got {target!r}, which is not one"
                )
