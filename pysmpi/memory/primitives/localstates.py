"""The states that one process can be in, found by running its generator.

A generator cannot be copied, but it can be created again and given the same answers. Two such runs
have reached the same state if the generator, and the generators to which it delegates, are at the
same instruction with the same values in their local variables and on their stacks.
"""

from __future__ import annotations

import gc
import inspect
from collections.abc import Generator, Hashable
from types import CellType, FunctionType, GeneratorType
from typing import Any

from pysmpi.errors import UsageError
from pysmpi.memory.primitives import operations
from pysmpi.memory.primitives.operations import (
    ENTER,
    LEAVE,
    MARK,
    START,
    Operation,
    Process,
    Variable,
)
from pysmpi.text import count

# A process with more local states than this counts something without end.
LIMIT = 10_000

_PLAIN = (type(None), bool, int, float, complex, str, bytes)
_FINISHED: Hashable = ("finished",)


class LocalState:
    """The position of a process: its number, its next operation (None at its end), its sections.

    place: the file and line of the operation.
    """

    __slots__ = ("number", "operation", "inside", "before", "answer", "after", "live", "place")

    def __init__(
        self,
        number: int,
        operation: Operation | None,
        inside: frozenset[str],
        before: LocalState | None,
        answer: object,
        live: Generator[Operation, object, object] | None,
        place: str,
    ) -> None:
        self.number = number
        self.operation = operation
        self.inside = inside
        self.before = before
        self.answer = answer
        self.after: dict[object, LocalState] = {}
        self.live = live
        self.place = place


class LocalStates:
    """All states of process `index` of a program that have been reached so far."""

    def __init__(self, make: Process, index: int, program: str) -> None:
        self.make = make
        self.index = index
        self.where = f"program {program}, process {index}"
        self.states: list[LocalState] = []
        self._known: dict[Hashable, LocalState] = {}
        self._kept: dict[int, object] = {}
        self._merged: dict[int, LocalState] = {}
        self.first = self._reach(self._made(), None, None, frozenset())

    def next(self, state: LocalState, answer: object) -> LocalState:
        """The state after `state` if its operation gave `answer`."""
        following = state.after.get(answer)
        if following is not None:
            return self._merged.get(following.number, following)
        live, state.live = state.live, None
        if live is None:
            live = self._again(state)
        inside = state.inside
        operation = state.operation
        if operation is not None and operation.name == ENTER:
            inside |= {operation.argument}
        elif operation is not None and operation.name == LEAVE:
            inside -= {operation.argument}
        reached = self._reach(live, state, answer, inside)
        state.after[answer] = reached
        return reached

    def merge(self) -> None:
        """Merge states that differ only in unused values.

        A variable keeps its value after its last use; how long depends on the compiler. Two states
        are merged if they have the same operation and, for every answer, the same next state.
        """
        classes: dict[int, int] = {}
        keys: dict[int, Hashable] = {
            state.number: (state.operation, state.inside, frozenset(state.after))
            for state in self.states
        }
        count = 0
        while True:
            numbers: dict[Hashable, int] = {}
            classes = {n: numbers.setdefault(key, len(numbers)) for n, key in keys.items()}
            if len(numbers) == count:
                break
            count = len(numbers)
            for state in self.states:
                after = [(answer, classes[to.number]) for answer, to in state.after.items()]
                keys[state.number] = (classes[state.number], frozenset(after))
        first: dict[int, LocalState] = {}
        for state in self.states:
            self._merged[state.number] = first.setdefault(classes[state.number], state)

    def _made(self) -> Generator[Operation, object, object]:
        result = self._guard(self.make)
        if not isinstance(result, GeneratorType):
            raise UsageError(
                f"{self.where}: expected a generator function, got one that returns "
                f"{type(result).__name__}"
            )
        return result

    def _again(self, state: LocalState) -> Generator[Operation, object, object]:
        """A generator that has been brought to `state`."""
        route = [state]
        while route[-1].before is not None:
            route.append(route[-1].before)
        live = self._made()
        for step in reversed(route):
            try:
                asked = self._guard(live.send, step.answer)
            except StopIteration:
                asked = None
            if asked != step.operation:
                raise UsageError(
                    f"{step.place}: {self.where}: expected the same program on every run, got "
                    "another one: it depends on something other than its local variables"
                )
        return live

    def _reach(
        self,
        live: Generator[Operation, Any, Any],
        before: LocalState | None,
        answer: object,
        inside: frozenset[str],
    ) -> LocalState:
        operation: Operation | None = None
        line, place = "its end", _FINISHED
        try:
            operation = self._guard(live.send, answer)
        except StopIteration:
            pass
        else:
            line = _line(live)
            self._check(operation, line)
            place = self._place(live)
        key = (operation, inside, place)
        result = self._known.get(key)
        if result is not None:
            if result.live is None:
                result.live = live
            return result
        if len(self.states) == LIMIT:
            raise UsageError(
                f"{self.where}: expected a finite number of local states, got more than "
                f"{count(LIMIT, 'state')}: is there a local variable that only grows?"
            )
        state = LocalState(len(self.states), operation, inside, before, answer, live, line)
        self.states.append(state)
        self._known[key] = state
        return state

    def _guard(self, call: Any, *arguments: Any) -> Any:
        try:
            return call(*arguments)
        except (StopIteration, UsageError):
            raise
        except Exception as error:
            trace = error.__traceback__
            while trace is not None and trace.tb_next is not None:
                trace = trace.tb_next
            assert trace is not None
            line = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
            raise UsageError(
                f"{line}: {self.where}: {type(error).__name__}: {error or 'no message'}"
            ) from error

    def _check(self, operation: object, line: str) -> None:
        where = f"{line}: {self.where}"
        if not isinstance(operation, Operation):
            raise UsageError(
                f"{where}: expected an operation such as load(x) to be yielded, got {operation!r} "
                "(a helper generator needs `yield from`)"
            )
        name, argument = operation.name, operation.argument
        if name in (MARK, ENTER, LEAVE):
            if not isinstance(argument, str) or not argument:
                raise UsageError(f"{where}: {name}: expected a text, got {argument!r}")
        elif name != START:
            if not isinstance(operation.variable, Variable):
                raise UsageError(
                    f"{where}: expected a Variable to {name}, got {operation.variable!r}"
                )
            try:
                hash(argument)
            except TypeError:
                raise UsageError(
                    f"{where}: expected a number, a text or a tuple to {name}, got a "
                    f"{type(argument).__name__}"
                ) from None

    def _place(self, live: Any) -> Hashable:
        """The identity of a generator's state."""
        frame = live.gi_frame
        if frame is None:
            return _FINISHED
        variables = tuple(
            (name, self._plain(value))
            for name, value in sorted(inspect.getgeneratorlocals(live).items())
        )
        # A loop's iterator, or the first term of a sum, is on the stack only.
        stack = tuple(self._plain(value) for value in gc.get_referents(live) if value is not frame)
        return (id(frame.f_code), frame.f_lasti, variables, stack)

    def _plain(self, value: object) -> Hashable:
        """A value that can be compared with the value of any other run at the same place."""
        if isinstance(value, _PLAIN):
            return (type(value).__name__, value)
        if isinstance(value, GeneratorType):
            return self._place(value)
        if isinstance(value, Operation):
            return ("operation", *map(self._plain, value))
        if isinstance(value, (tuple, list)):
            return (type(value).__name__, *map(self._plain, value))
        if isinstance(value, dict):
            items = [(self._plain(k), self._plain(v)) for k, v in value.items()]
            return ("dict", *items)
        if isinstance(value, (set, frozenset)):
            return ("set", frozenset(map(self._plain, value)))
        if isinstance(value, CellType):
            try:
                return ("cell", self._plain(value.cell_contents))
            except ValueError:
                return ("cell",)
        if hasattr(value, "__next__"):
            try:
                return (type(value).__name__, self._plain(value.__reduce__()))
            except TypeError:
                pass
        if isinstance(value, FunctionType):
            cells = [cell.cell_contents for cell in value.__closure__ or ()]
            free = [v.__code__ if isinstance(v, FunctionType) else v for v in cells]
            return ("function", id(value.__code__), *map(self._plain, free))
        try:
            hash(value)
        except TypeError:
            # Only the same object is equal. Kept alive, so that no other object gets its identity.
            self._kept[id(value)] = value
            return ("object", id(value))
        return (type(value).__name__, value)


def _line(live: Any) -> str:
    """The file and line at which a generator stands: the innermost outside of pysmpi."""
    frame = live.gi_frame
    while isinstance(live.gi_yieldfrom, GeneratorType):
        live = live.gi_yieldfrom
        if live.gi_code.co_filename != operations.__file__:
            frame = live.gi_frame
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
