"""The solution of one program on one machine: whether it is right, its latency and its misses."""

from __future__ import annotations

from dataclasses import dataclass

from pysmpi.errors import UsageError
from pysmpi.memory.primitives.chain import Chain, generate
from pysmpi.memory.primitives.functional import Check, TransitionSystem, check, model
from pysmpi.memory.primitives.lumping import lump
from pysmpi.memory.primitives.machine import Access, PrimitiveMachine
from pysmpi.memory.primitives.placement import HIT
from pysmpi.memory.primitives.steady import steady_state, throughputs

LIMIT = 2_000_000  # states


@dataclass(frozen=True)
class Misses:
    """Misses a message on one variable: by all processes, and by each."""

    variable: str
    kind: str
    total: float
    by_process: tuple[float, ...]


@dataclass(frozen=True)
class Figures:
    """The cost of one message: mean latency (s), misses, and transfers by type (hits included).

    `error`: half the 99 % interval of a simulated latency (s), 0 for the chain's.
    """

    latency: float
    misses: tuple[Misses, ...]
    transfers: dict[str, float]
    error: float = 0.0

    @property
    def total(self) -> float:
        """Misses a message."""
        return sum(each.total for each in self.misses)

    @property
    def by_kind(self) -> dict[str, float]:
        """Misses a message by kind of variable."""
        kinds: dict[str, float] = {}
        for each in self.misses:
            kinds[each.kind] = kinds.get(each.kind, 0.0) + each.total
        return kinds


@dataclass(frozen=True)
class Solution:
    """The models of a program on a machine, and the properties that every program should have."""

    machine: PrimitiveMachine
    functional: TransitionSystem
    chain: Chain
    lumped: Chain
    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        """Whether every property holds; if not, a steady state may not even exist."""
        return all(each.holds for each in self.checks)

    def figures(self) -> Figures:
        """The figures of the steady state."""
        return figures_of(self.machine, self.lumped)


def solution(machine: PrimitiveMachine, limit: int = LIMIT) -> Solution:
    """Generate the models of a machine. Raises UsageError above `limit` states."""
    # When every local state is known, equivalent states are merged.
    model(machine, limit)
    machine.merge()
    functional = model(machine, limit)
    chain = generate(machine, limit)
    lumped, _ = lump(chain)
    checks = tuple(check(machine, functional))
    return Solution(machine, functional, chain, lumped, checks)


def figures_of(machine: PrimitiveMachine, chain: Chain) -> Figures:
    """Latency L = 1 / (m F), and misses F(V, p) / (m F): F is the throughput of process 0's turns.

    A turn has m messages. Source: section 4.1 of the paper; there m is 2, and misses are those of
    one process in a turn. In ping-pong these equal the misses of both processes in a message.
    """
    accesses = machine.accesses.values
    rate = throughputs(chain, steady_state(chain), len(accesses))
    turns = sum(
        access.starts * float(rate[number])
        for number, access in enumerate(accesses)
        if access.process == 0
    )
    if turns <= 0.0:
        raise UsageError(
            f"program {machine.program.name}: expected process 0 to yield start() once a turn, got "
            "a program in which it never does"
        )
    messages = turns * machine.program.messages
    each = {access: float(rate[number]) / messages for number, access in enumerate(accesses)}
    return figures_from(machine, 1.0 / messages, each, 0.0)


def figures_from(
    machine: PrimitiveMachine, latency: float, rates: dict[Access, float], error: float
) -> Figures:
    processes = len(machine.program.processes)
    misses = [[0.0] * processes for _ in machine.variables]
    transfers: dict[str, float] = {}
    for access, times in rates.items():
        name = str(access.type)
        transfers[name] = transfers.get(name, 0.0) + times
        if access.type.kind != HIT:
            misses[access.variable][access.process] += times
    return Figures(
        latency,
        tuple(
            Misses(variable.name, variable.kind, sum(by), tuple(by))
            for variable, by in zip(machine.variables, misses)
        ),
        {name: times for name, times in sorted(transfers.items()) if times > 0.0},
        error,
    )
