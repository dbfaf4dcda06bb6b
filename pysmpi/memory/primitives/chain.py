"""The Markov chain of a machine: its reachable states, and the rates of their transitions.

A state holds, for each process, its position and the transfer that it waits for; and the contents
of memory and of every cache. A transfer of mean latency L ends at rate 1 / L. With two phases, each
has mean L / 2, and the caches change between them. At the end of a transfer the process begins its
next access at once, so a state has one transition for each process.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pysmpi.memory.primitives.machine import Numbering, PrimitiveMachine
from pysmpi.memory.primitives.placement import HIT, TransferType

NO_LABEL = -1


@dataclass(frozen=True)
class Chain:
    """Transitions of a chain of `states` states, state 0 the initial one.

    source, target: int64 state numbers; rate: 1/s; label: the number of the access that begins at
    the transition, NO_LABEL for none. Each array has one entry for each transition.
    """

    states: int
    source: NDArray[np.int64]
    target: NDArray[np.int64]
    rate: NDArray[np.float64]
    label: NDArray[np.int64]

    @property
    def transitions(self) -> int:
        """The number of transitions."""
        return len(self.source)


# For each process its local state and its wait; then memory and caches; by number.
State = tuple[int, ...]

# In the place of a wait: the process has ended. In a wait: the caches are up to date.
ENDED = SETTLED = -1


def generate(machine: PrimitiveMachine, limit: int = 2_000_000) -> Chain:
    """Every state that the machine can reach, breadth first.

    Raises UsageError if there are more than `limit` states.
    """
    builder = _Builder(machine)
    states = Numbering(builder.initial())
    source, target, label = array("q"), array("q"), array("q")
    rate = array("d")
    for number, state in enumerate(states.values):
        for new, speed, begun in builder.leaving(state):
            source.append(number)
            target.append(states.of(new))
            rate.append(speed)
            label.append(begun)
        machine.check_size(len(states), limit)
    return Chain(
        len(states),
        np.array(source, np.int64),
        np.array(target, np.int64),
        np.array(rate, np.float64),
        np.array(label, np.int64),
    )


class _Builder:
    """Creates states and their transitions."""

    def __init__(self, machine: PrimitiveMachine) -> None:
        self.machine = machine
        self.processes = len(machine.program.processes)
        # The wait of a process: a transfer, and the access whose change of the caches is due.
        self.waits: Numbering[tuple[TransferType, int]] = Numbering()
        self.rates: list[float] = []

    def initial(self) -> State:
        """Every process has just begun its first access, in the order of their numbers."""
        machine = self.machine
        memory, caches = machine.first_memory, machine.first_caches
        parts: list[int] = []
        for process in range(self.processes):
            begun = machine.begin(process, machine.locals[process].first.number, memory, caches)
            if begun is None:
                parts += (0, ENDED)
                continue
            memory, caches = begun.memory, begun.caches
            parts += (begun.local, self.first_wait(begun.access))
        return (*parts, memory, caches)

    def first_wait(self, access: int) -> int:
        """The wait of a process that has just begun an access."""
        kind = self.machine.accesses.values[access].type
        due = SETTLED
        if kind.kind != HIT and not self.machine.updates_at_once:
            due = self.machine.without_start(access)
        return self.wait(kind, due)

    def wait(self, kind: TransferType, due: int) -> int:
        """The number of a wait."""
        number = self.waits.of((kind, due))
        if number == len(self.rates):
            phases = 1 if self.machine.updates_at_once or kind.kind == HIT else 2
            self.rates.append(phases / self.machine.latencies.of(kind))
        return number

    def leaving(self, state: State) -> Iterator[tuple[State, float, int]]:
        """For each process, the state after its wait, the rate (1/s) and the label."""
        machine = self.machine
        memory, caches = state[-2:]
        for process in range(self.processes):
            local, wait = state[2 * process : 2 * process + 2]
            if wait == ENDED:
                continue
            head, tail = state[: 2 * process], state[2 * process + 2 : -2]
            kind, due = self.waits.values[wait]
            if due != SETTLED:
                new = (local, self.wait(kind, SETTLED), *tail, memory, machine.update(caches, due))
                yield (*head, *new), self.rates[wait], NO_LABEL
                continue
            begun = machine.begin(process, local, memory, caches)
            if begun is None:
                yield (*head, local, ENDED, *tail, memory, caches), self.rates[wait], NO_LABEL
                continue
            new = (begun.local, self.first_wait(begun.access), *tail, begun.memory, begun.caches)
            yield (*head, *new), self.rates[wait], begun.access
