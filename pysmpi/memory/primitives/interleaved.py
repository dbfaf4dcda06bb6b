"""The size of the complete system: every beginning and end of an access is a step.

A chain has no states between the end of one access and the beginning of the next, because no time
passes between them. The paper's labelled transition system has these states, in every order.
"""

from __future__ import annotations

from pysmpi.errors import UsageError
from pysmpi.memory.primitives.machine import PrimitiveMachine
from pysmpi.memory.primitives.placement import HIT
from pysmpi.text import count

# The next step of a process: begin an access, let (the first part of) its transfer pass, change
# the caches, let the second part pass, end the access.
_BEGIN, _PASS, _UPDATE, _PASS_ON, _END = range(5)


def interleaved(machine: PrimitiveMachine, limit: int = 2_000_000) -> tuple[int, int]:
    """The numbers of states and transitions. Raises UsageError above `limit` states."""
    processes = len(machine.program.processes)
    first = tuple((each.first.number, _BEGIN, 0) for each in machine.locals)
    start = (first, machine.first_memory, machine.first_caches)
    seen = {start}
    stack = [start]
    transitions = 0
    while stack:
        parts, memory, caches = stack.pop()
        for process in range(processes):
            new = _step(machine, process, parts[process], memory, caches)
            if new is None:
                continue
            transitions += 1
            part, new_memory, new_caches = new
            state = ((*parts[:process], part, *parts[process + 1 :]), new_memory, new_caches)
            if state not in seen:
                if len(seen) >= limit:
                    raise UsageError(
                        f"program {machine.program.name}: expected at most "
                        f"{count(limit, 'state')}, got more (--limit raises that)"
                    )
                seen.add(state)
                stack.append(state)
    return len(seen), transitions


def _step(
    machine: PrimitiveMachine, process: int, part: tuple[int, int, int], memory: int, caches: int
) -> tuple[tuple[int, int, int], int, int] | None:
    """The next step of a process; None if it has ended."""
    local, phase, access = part
    if phase == _BEGIN:
        begun = machine.begin(process, local, memory, caches)
        if begun is None:
            return None
        access = machine.without_start(begun.access)
        return (begun.local, _PASS, access), begun.memory, begun.caches
    if phase == _PASS:
        at_once = machine.updates_at_once
        if at_once or machine.accesses.values[access].type.kind == HIT:
            return (local, _END, 0), memory, caches
        return (local, _UPDATE, access), memory, caches
    if phase == _UPDATE:
        return (local, _PASS_ON, access), memory, machine.update(caches, access)
    if phase == _PASS_ON:
        return (local, _END, 0), memory, caches
    return (local, _BEGIN, 0), memory, caches
