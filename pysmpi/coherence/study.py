"""A study of one program on one machine: checks, sizes, latency, misses a variable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TextIO

from pysmpi.coherence.interleaved import interleaved
from pysmpi.coherence.properties import Actions, Property, check_property, write_aldebaran
from pysmpi.coherence.simulation import EXPONENTIAL, simulate
from pysmpi.memory.coherence import Protocol
from pysmpi.memory.primitives.functional import Check
from pysmpi.memory.primitives.machine import PrimitiveMachine
from pysmpi.memory.primitives.operations import Program
from pysmpi.memory.primitives.placement import Latencies, Position
from pysmpi.memory.primitives.solution import LIMIT, Figures, figures_from, solution

ATOMIC, TWO_PHASE = "atomic", "two-phase"


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
    limit: int = LIMIT,
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
    found = solution(machine, limit)
    functional, chain, lumped = found.functional, found.chain, found.lumped
    actions = Actions(machine, functional) if properties or export is not None else None
    more = [check_property(actions, each) for each in properties] if actions is not None else []
    if actions is not None and export is not None:
        write_aldebaran(export, actions)
    sizes = Sizes(
        len(functional.states),
        functional.size,
        chain.states,
        chain.transitions,
        lumped.states,
        lumped.transitions,
        interleaved(machine, limit) if count_interleaved else None,
    )
    checks = [*found.checks, *more]
    # If a property does not hold, the study ends here.
    ok = all(each.holds for each in checks)
    solved = found.figures() if ok and solve else None
    simulated = None
    if ok and turns:
        run = simulate(machine, turns, seed, distribution)
        messages = run.turns * program.messages
        rates = {access: times / messages for access, times in run.counts.items()}
        simulated = figures_from(machine, run.latency, rates, run.error)
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
