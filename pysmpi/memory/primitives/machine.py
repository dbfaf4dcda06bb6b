"""A program on caches: the effect of an access of a process on memory and every cache.

States of the parts are numbered, so that a state of the whole is a short tuple of integers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Generic, NamedTuple, TypeVar

from pysmpi.errors import UsageError
from pysmpi.memory.coherence import Protocol, States
from pysmpi.memory.coherence.protocol import READ, WRITE
from pysmpi.memory.primitives.localstates import LocalState, LocalStates
from pysmpi.memory.primitives.operations import MARKS, START, Program, outcome
from pysmpi.memory.primitives.placement import (
    HIT,
    Latencies,
    Position,
    TransferType,
    type_of,
)
from pysmpi.text import count

_T = TypeVar("_T")


class Numbering(Generic[_T]):
    """Values, numbered in the order of their first use."""

    def __init__(self, *values: _T) -> None:
        self.values: list[_T] = []
        self._numbers: dict[_T, int] = {}
        for value in values:
            self.of(value)

    def of(self, value: _T) -> int:
        """The number of a value, a new one if it is new."""
        number = self._numbers.get(value)
        if number is None:
            number = self._numbers[value] = len(self.values)
            self.values.append(value)
        return number

    def __len__(self) -> int:
        return len(self.values)


class Access(NamedTuple):
    """A beginning access: its variable, whether it writes, its transfer, whether a turn begins."""

    process: int
    variable: int
    writes: bool
    type: TransferType
    starts: int


@dataclass(frozen=True)
class Begun:
    """After a process has begun its next access: numbers of its state, memory, caches, access."""

    local: int
    memory: int
    caches: int
    access: int


class PrimitiveMachine:
    """A program, a protocol, and the place of each process.

    `updates_at_once`: whether a transfer changes the caches when it begins (atomic), or when
    `update` is called (two-phase). A hit, which transfers nothing, always changes them at once.
    `homes` moves variables to the node of another process, by patterns such as `header[*]`; the
    last matching pattern applies.
    """

    def __init__(
        self,
        program: Program,
        protocol: Protocol,
        positions: Sequence[Position],
        latencies: Latencies,
        updates_at_once: bool = True,
        homes: Mapping[str, int] | None = None,
    ) -> None:
        if len(positions) != len(program.processes):
            raise UsageError(
                f"mapping: expected {len(program.processes)} positions for program "
                f"{program.name}, got {len(positions)}"
            )
        self.program = program
        self.protocol = protocol
        self.positions = tuple(positions)
        self.latencies = latencies
        self.updates_at_once = updates_at_once
        self.locals = [
            LocalStates(make, i, program.name) for i, make in enumerate(program.processes)
        ]
        self.variables = list(program.variables)
        self.homes = _homes(program, homes or {})
        self._index = {variable.name: i for i, variable in enumerate(self.variables)}
        self.memories: Numbering[tuple[object, ...]] = Numbering()
        self.caches: Numbering[tuple[States, ...]] = Numbering()
        self.accesses: Numbering[Access] = Numbering()
        nowhere = protocol.initial(len(program.processes))
        self.first_memory = self.memories.of(tuple(v.initial for v in self.variables))
        self.first_caches = self.caches.of((nowhere,) * len(self.variables))
        self._begun: dict[tuple[int, int, int, int], Begun | None] = {}
        self._updated: dict[tuple[int, int], int] = {}

    def merge(self) -> None:
        """Merge equivalent local states of a process; see `LocalStates.merge`."""
        for states in self.locals:
            states.merge()

    def begin(self, process: int, local: int, memory: int, caches: int) -> Begun | None:
        """Let a process pass its marks and begin its next access; None if it has ended."""
        key = (process, local, memory, caches)
        if key not in self._begun:
            self._begun[key] = self._begin(*key)
        return self._begun[key]

    def check_size(self, states: int, limit: int) -> None:
        """Raise UsageError if there are more states than the limit."""
        if states > limit:
            raise UsageError(
                f"program {self.program.name}: expected at most {count(limit, 'state')}, got more "
                "(--limit raises that)"
            )

    def without_start(self, access: int) -> int:
        """The number of the same access, not counted as the beginning of a turn."""
        return self.accesses.of(self.accesses.values[access]._replace(starts=0))

    def update(self, caches: int, access: int) -> int:
        """The contents of caches after the transfer of an access that began earlier."""
        key = (caches, access)
        result = self._updated.get(key)
        if result is None:
            done = self.accesses.values[access]
            result = self._updated[key] = self._change(caches, done)[0]
        return result

    def touch(self, process: int, state: LocalState, memory: int) -> tuple[int, object, int]:
        """The effect of a process's next access on memory, without any cache.

        Returns its variable's number, its result, and the number of the new memory.

        Raises UsageError for a variable that the program does not list, or a value that the
        operation does not accept.
        """
        operation = state.operation
        assert operation is not None and operation.variable is not None
        asked = operation.variable
        where = f"{state.place}: {self.locals[process].where}"
        variable = self._index.get(asked.name)
        if variable is None or self.variables[variable] != asked:
            raise UsageError(
                f'{where}: expected a variable of the program, got "{asked.name}", which is not '
                "among its variables"
            )
        values = self.memories.values[memory]
        try:
            answer, new = outcome(operation, values[variable])
        except TypeError as error:
            raise UsageError(f"{where}: {operation.name} of {asked.name}: {error}") from None
        if new != values[variable]:
            memory = self.memories.of((*values[:variable], new, *values[variable + 1 :]))
        return variable, answer, memory

    def _begin(self, process: int, local: int, memory: int, caches: int) -> Begun | None:
        states = self.locals[process]
        state = states.states[local]
        starts = 0
        passed: set[int] = set()
        while state.operation is not None and state.operation.name in MARKS:
            if state.number in passed:
                raise UsageError(
                    f"{state.place}: {states.where}: expected an access between two passes of a "
                    "loop, got marks only: the loop takes no time"
                )
            passed.add(state.number)
            starts += state.operation.name == START
            state = states.next(state, None)
        operation = state.operation
        if operation is None or operation.variable is None:
            return None
        variable, answer, memory = self.touch(process, state, memory)
        access = Access(process, variable, operation.writes, TransferType(HIT), starts)
        after, kind = self._change(caches, access)
        access = access._replace(type=kind)
        if self.updates_at_once or kind.kind == HIT:
            caches = after
        return Begun(states.next(state, answer).number, memory, caches, self.accesses.of(access))

    def _change(self, caches: int, access: Access) -> tuple[int, TransferType]:
        """The caches after an access, and the type of its transfer."""
        lines = self.caches.values[caches]
        operation = WRITE if access.writes else READ
        line, transfer = self.protocol.access(operation, lines[access.variable], access.process)
        home = self.homes[access.variable]
        kind = type_of(transfer, access.process, home, self.positions)
        if line == lines[access.variable]:
            return caches, kind
        changed = (*lines[: access.variable], line, *lines[access.variable + 1 :])
        return self.caches.of(changed), kind


def _homes(program: Program, patterns: Mapping[str, int]) -> list[int]:
    """The home of each variable of a program. Raises UsageError for a pattern without a match."""
    homes = [variable.home for variable in program.variables]
    for pattern, home in patterns.items():
        if not 0 <= home < len(program.processes):
            raise UsageError(
                f"home of {pattern}: expected a process among 0 to {len(program.processes) - 1}, "
                f"got {home}"
            )
        # Brackets are part of names here, so only * and ? are wildcards.
        escaped = pattern.replace("[", "[[]")
        fitting = [i for i, v in enumerate(program.variables) if fnmatchcase(v.name, escaped)]
        if not fitting:
            names = ", ".join(variable.name for variable in program.variables)
            raise UsageError(f'home: expected a variable among {names}, got "{pattern}"')
        for i in fitting:
            homes[i] = home
    return homes
