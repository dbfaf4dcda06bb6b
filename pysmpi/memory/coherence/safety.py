"""Check of a table: explores every state that small systems can reach.

The system has one line, some caches, and memory. In each state every cache may read, write or
evict. In addition to the states of the protocol, the search tracks the copies that hold the last
written value, which hardware does not. It therefore detects a stale read at the access itself.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from pysmpi.memory.coherence.protocol import (
    CACHE,
    EVICT,
    OWN,
    WRITE,
    LineTransfer,
    Protocol,
    ProtocolError,
    States,
)


@dataclass(frozen=True, slots=True)
class Line:
    """A line everywhere: its letters, and whether each copy and memory have the last written value.

    A cache that does not have the line has no copy that could be stale: it counts as False.
    """

    states: States
    fresh: tuple[bool, ...]
    memory: bool = True


@dataclass(frozen=True, slots=True)
class Violation:
    """A violation, and the accesses that lead to it from a line in no cache."""

    problem: str
    steps: tuple[tuple[str, int], ...]
    line: Line

    def __str__(self) -> str:
        route = ", ".join(f"cache {who} {operation}s" for operation, who in self.steps)
        return f"{self.problem} (after {route or 'nothing'}: {' '.join(self.line.states)})"


@dataclass(frozen=True, slots=True)
class Exploration:
    """The result of a search: the numbers of states and accesses, and the first violation."""

    caches: int
    states: int
    accesses: int
    violation: Violation | None


def explore(protocol: Protocol, caches: int) -> Exploration:
    """Look at every state of one line in `caches` caches; breadth first, so the way is short.

    Safe means: at most one owner; an exclusive line is nowhere else; no cache reads or sends a
    line that is not the last written; memory or a dirty copy has the last written line.
    """
    start = Line(protocol.initial(caches), (False,) * caches)
    reached: dict[Line, tuple[Line, str, int] | None] = {start: None}
    queue = deque([start])
    accesses = 0
    while queue:
        line = queue.popleft()
        problem = problem_of(protocol, line)
        if problem:
            return Exploration(
                caches, len(reached), accesses, Violation(problem, _way(reached, line), line)
            )
        for operation in protocol.operations:
            for who in range(caches):
                if operation == EVICT and line.states[who] == protocol.invalid:
                    continue
                accesses += 1
                new, problem = step(protocol, line, operation, who)
                if problem:
                    route = (*_way(reached, line), (operation, who))
                    return Exploration(
                        caches, len(reached), accesses, Violation(problem, route, line)
                    )
                if new not in reached:
                    reached[new] = (line, operation, who)
                    queue.append(new)
    return Exploration(caches, len(reached), accesses, None)


def met(protocol: Protocol, caches: int = 3) -> set[tuple[str, str, str]]:
    """The rules that this number of caches uses: (operation, own state, strongest other state)."""
    start = protocol.initial(caches)
    seen = {start}
    queue = deque([start])
    used = set()
    while queue:
        states = queue.popleft()
        for operation in protocol.operations:
            for who in range(caches):
                if operation == EVICT and states[who] == protocol.invalid:
                    continue
                rule = protocol.rule(operation, states, who)
                used.add((operation, rule.own, rule.other))
                new, _ = protocol.access(operation, states, who)
                if new not in seen:
                    seen.add(new)
                    queue.append(new)
    return used


def _way(
    reached: dict[Line, tuple[Line, str, int] | None], line: Line
) -> tuple[tuple[str, int], ...]:
    steps = []
    before = reached[line]
    while before is not None:
        line, operation, who = before
        steps.append((operation, who))
        before = reached[line]
    return tuple(reversed(steps))


def conflict(protocol: Protocol, states: States) -> str | None:
    """A violation in the states of a line, if any: two owners, or a shared exclusive line."""
    kinds = [protocol.states[letter] for letter in states]
    valid = [i for i, kind in enumerate(kinds) if not kind.invalid]
    owners = [i for i in valid if kinds[i].owner or kinds[i].exclusive]
    if len(owners) > 1:
        return f"two owners: caches {owners[0]} and {owners[1]}"
    for i in valid:
        if kinds[i].exclusive and len(valid) > 1:
            other = next(k for k in valid if k != i)
            return f"an exclusive line is shared: caches {i} and {other}"
    return None


def problem_of(protocol: Protocol, line: Line) -> str | None:
    """A violation in a line, if any."""
    problem = conflict(protocol, line.states)
    if problem:
        return problem
    valid = [i for i, letter in enumerate(line.states) if letter != protocol.invalid]
    for i in valid:
        if not line.fresh[i]:
            return f"a stale copy: cache {i}"
    if not line.memory and not any(protocol.states[line.states[i]].dirty for i in valid):
        return "a lost write: memory has an old line, and no cache is to write the new one"
    return None


def step(protocol: Protocol, line: Line, operation: str, who: int) -> tuple[Line, str | None]:
    """The new state of a line after an access, and the violation, if any."""
    try:
        states, transfer = protocol.access(operation, line.states, who)
    except ProtocolError as error:
        return line, str(error)
    memory, fresh = line.memory, list(line.fresh)
    if transfer.write_back is not None:
        memory = fresh[transfer.write_back]
    problem = None
    if operation != EVICT:
        fresh[who], origin = _arriving(transfer, line, memory, who)
        if not fresh[who]:
            problem = f"a stale {operation}: cache {who} takes an old line from {origin}"
    if operation == WRITE:
        memory = transfer.write_back is not None and bool(transfer.updated)
        fresh = [i == who or i in transfer.updated for i in range(len(states))]
    # A cache that lost the line has no copy that could be fresh.
    held = tuple(f and state != protocol.invalid for f, state in zip(fresh, states))
    return Line(states, held, memory), problem


def _arriving(transfer: LineTransfer, line: Line, memory: bool, who: int) -> tuple[bool, str]:
    """Whether an access uses the last written line, and the source of the line."""
    if transfer.source == OWN:
        return line.fresh[who], "itself"
    if transfer.source == CACHE and transfer.provider is not None:
        return line.fresh[transfer.provider], f"cache {transfer.provider}"
    return memory, "memory"
