"""The size of the complete system: every beginning and end of an access is a step.

A chain has no states between the end of one access and the beginning of the next, because no time
passes between them. The paper's labelled transition system has these states, in every order.
"""

from __future__ import annotations

from pysmpi.memory.primitives.machine import PrimitiveMachine
from pysmpi.memory.primitives.placement import HIT

# The next step of a process: begin an access, let (the first part of) its transfer pass, change
# the caches, let the second part pass, end the access.
_BEGIN, _PASS, _UPDATE, _PASS_ON, _END = range(5)

# Bits of the parts of a state: numbers of accesses, memories, caches; phases; local states.
_NUMBER, _PHASE, _LOCAL = 32, 3, 16
_PART = _LOCAL + _PHASE + _NUMBER
_NUMBERS, _PHASES, _PARTS = (1 << _NUMBER) - 1, (1 << _PHASE) - 1, (1 << _PART) - 1


def interleaved(machine: PrimitiveMachine, limit: int = 2_000_000) -> tuple[int, int]:
    """The numbers of states and transitions. Raises UsageError above `limit` states."""
    processes = len(machine.program.processes)
    # A state is one number, which takes a fraction of the memory of its parts.
    start = machine.first_memory << _NUMBER | machine.first_caches
    for each in machine.locals:
        start = start << _PART | _packed(each.first.number, _BEGIN, 0)
    shifts = [_PART * (processes - 1 - process) for process in range(processes)]
    whole = _PART * processes
    seen = {start}
    stack = [start]
    transitions = 0
    while stack:
        state = stack.pop()
        memory, caches = state >> whole + _NUMBER, state >> whole & _NUMBERS
        for process, shift in enumerate(shifts):
            old = state >> shift & _PARTS
            unpacked = old >> _PHASE + _NUMBER, old >> _NUMBER & _PHASES, old & _NUMBERS
            new = _step(machine, process, unpacked, memory, caches)
            if new is None:
                continue
            transitions += 1
            part, new_memory, new_caches = new
            after = state ^ (old ^ _packed(*part)) << shift
            after ^= ((memory ^ new_memory) << _NUMBER | caches ^ new_caches) << whole
            if after not in seen:
                seen.add(after)
                stack.append(after)
        machine.check_size(len(seen), limit)
    return len(seen), transitions


def _packed(local: int, phase: int, access: int) -> int:
    """The part of a process in a state."""
    return (local << _PHASE | phase) << _NUMBER | access


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
