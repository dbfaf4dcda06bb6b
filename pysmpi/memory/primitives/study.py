"""A study of one program on one machine: checks, sizes, latency, misses a variable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TextIO

from pysmpi.errors import UsageError
from pysmpi.memory.coherence import Protocol
from pysmpi.memory.primitives.chain import Chain, generate
from pysmpi.memory.primitives.functional import Check, check, model
from pysmpi.memory.primitives.interleaved import interleaved
from pysmpi.memory.primitives.lumping import lump
from pysmpi.memory.primitives.machine import Access, PrimitiveMachine
from pysmpi.memory.primitives.operations import Program
from pysmpi.memory.primitives.placement import HIT, Latencies, Position
from pysmpi.memory.primitives.properties import (
    Actions,
    Property,
    check_property,
    write_aldebaran,
)
from pysmpi.memory.primitives.simulation import EXPONENTIAL, simulate
from pysmpi.memory.primitives.steady import steady_state, throughputs

ATOMIC, TWO_PHASE = "atomic", "two-phase"
TRANSFERS = (ATOMIC, TWO_PHASE)


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
class Sizes:
    """States and transitions: of the functional model, the chain, and the chain when lumped.

    interleaved: of the system with every beginning and end of an access, if it was counted.
    """

    functional_states: int
    functional_transitions: int
    chain_states: int
    chain_transitions: int
    lumped_states: int
    lumped_transitions: int
    interleaved: tuple[int, int] | None = None


@dataclass(frozen=True)
class Study:
    """The results of a study. `solved` or `simulated` is None if it was not requested.

    bytes: the size of the contents of a message.
    """

    program: str
    protocol: str
    latencies: str
    positions: tuple[Position, ...]
    transfers: str
    checks: tuple[Check, ...]
    sizes: Sizes
    solved: Figures | None
    simulated: Figures | None
    unit: str
    bytes: int = 0

    def bandwidth(self, figures: Figures) -> float:
        """Bytes/s of contents that messages carry: their size over the time of one message.

        0 if messages have no contents. In a ping-pong one message is on its way at a time; a
        program that streams has the bandwidth of messages that overlap.
        """
        return self.bytes / figures.latency

    @property
    def ok(self) -> bool:
        """Whether every property holds."""
        return all(each.holds for each in self.checks)

    def as_json(self) -> dict[str, object]:
        """The figures as plain values: seconds, counts a message."""
        found = asdict(self)
        found["ok"] = self.ok
        for name in ("solved", "simulated"):
            figures = getattr(self, name)
            if figures is not None:
                found[name] |= {
                    "total_misses": figures.total,
                    "by_kind": figures.by_kind,
                    "bandwidth": self.bandwidth(figures),
                }
        return found


def study(
    program: Program,
    protocol: Protocol,
    positions: Sequence[Position],
    latencies: Latencies,
    transfers: str = ATOMIC,
    *,
    solve: bool = True,
    turns: int = 0,
    seed: int = 0,
    distribution: str = EXPONENTIAL,
    limit: int = 2_000_000,
    count_interleaved: bool = False,
    homes: Mapping[str, int] | None = None,
    properties: Sequence[Property] = (),
    export: TextIO | None = None,
) -> Study:
    """Check a program, solve its chain, and simulate `turns` turns of process 0 if not 0.

    transfers: atomic (caches change at the beginning of a transfer) or two-phase (caches change in
    its middle). limit: largest number of states. homes: as for `PrimitiveMachine`. properties:
    checked besides the general ones. export: gets the functional model in Aldebaran's format.
    Raises UsageError for a wrong program, mapping or property.
    """
    machine = PrimitiveMachine(program, protocol, positions, latencies, transfers == ATOMIC, homes)
    # When every local state is known, equivalent states are merged.
    model(machine, limit)
    machine.merge()
    functional = model(machine, limit)
    actions = Actions(machine, functional) if properties or export is not None else None
    more = [check_property(actions, each) for each in properties] if actions is not None else []
    if actions is not None and export is not None:
        write_aldebaran(export, actions)
    chain = generate(machine, limit)
    lumped, _ = lump(chain)
    sizes = Sizes(
        len(functional.states),
        functional.size,
        chain.states,
        chain.transitions,
        lumped.states,
        lumped.transitions,
        interleaved(machine, limit) if count_interleaved else None,
    )
    checks = [*check(machine, functional), *more]
    # If a property does not hold, the study ends here: a steady state may not even exist.
    ok = all(each.holds for each in checks)
    solved = figures_of(machine, lumped) if ok and solve else None
    simulated = None
    if ok and turns:
        run = simulate(machine, turns, seed, distribution)
        messages = run.turns * program.messages
        rates = {access: times / messages for access, times in run.counts.items()}
        simulated = _figures(machine, run.latency, rates, run.error)
    return Study(
        program.name,
        protocol.name,
        latencies.name,
        machine.positions,
        transfers,
        tuple(checks),
        sizes,
        solved,
        simulated,
        program.unit,
        program.lines * latencies.line,
    )


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
    return _figures(machine, 1.0 / messages, each, 0.0)


def _figures(
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
