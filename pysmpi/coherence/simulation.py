"""The same program as a discrete-event simulation, on the clock of pysmpi's kernel.

The simulation uses only the machine of the chain: each access is a piece of work that takes a
random time. It checks the results of the chain, and allows other distributions.
"""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pysmpi.errors import UsageError
from pysmpi.kernel.engine import Engine
from pysmpi.kernel.events import INFINITY
from pysmpi.kernel.plan import Transport
from pysmpi.kernel.work import Work
from pysmpi.memory.primitives.machine import Access, PrimitiveMachine
from pysmpi.memory.primitives.placement import HIT

# Student's t for a 99 % interval over this many batches.
BATCHES = 20
_T99 = 2.861

EXPONENTIAL, CONSTANT = "exponential", "constant"


@dataclass(frozen=True)
class Simulated:
    """Figures of a simulation.

    latency: mean time of a message (s), within `error` of the true one with 99 % confidence.
    counts: how often each access began in the measured part; turns: of process 0, in this part.
    """

    latency: float
    error: float
    counts: dict[Access, int]
    turns: int
    seconds: float


def simulate(
    machine: PrimitiveMachine,
    turns: int = 2_000,
    seed: int = 0,
    distribution: str = EXPONENTIAL,
) -> Simulated:
    """Run until process 0 has begun `turns` turns, after a tenth as many to warm up.

    distribution: exponential, as in the chain, or constant latencies. Raises UsageError if the
    program ends.
    """
    return _Simulation(machine, max(turns, BATCHES), seed, distribution).run()


class _Simulation:
    def __init__(self, machine: PrimitiveMachine, turns: int, seed: int, distribution: str) -> None:
        self.machine = machine
        self.wanted = turns
        self.warmup = max(1, turns // 10)
        self.draw: Callable[[float], float] = _drawn(random.Random(seed), distribution)
        # No messages are sent: the kernel is used for its clock.
        self.engine = Engine(Transport(), 1)
        self.memory = machine.first_memory
        self.caches = machine.first_caches
        self.dates: list[float] = []
        self.counts: dict[int, int] = defaultdict(int)

    def run(self) -> Simulated:
        for process, states in enumerate(self.machine.locals):
            self.begin(process, states.first.number)
        self.engine.run()
        needed = self.warmup + self.wanted + 1
        if len(self.dates) < needed:
            raise UsageError(
                f"program {self.machine.program.name}: expected process 0 to begin "
                f"{needed:,} turns, got {len(self.dates):,} before nothing could happen any more"
            )
        latency, error = self.batches(self.dates[self.warmup :])
        accesses = self.machine.accesses.values
        counts = {accesses[number]: times for number, times in self.counts.items()}
        return Simulated(latency, error, counts, self.wanted, self.engine.now)

    def begin(self, process: int, local: int) -> None:
        """Begin the next access of a process now, and continue when it is done."""
        begun = self.machine.begin(process, local, self.memory, self.caches)
        if begun is None:
            return
        self.memory, self.caches = begun.memory, begun.caches
        access = self.machine.accesses.values[begun.access]
        if access.process == 0 and access.starts:
            self.dates += [self.engine.now] * access.starts
            if len(self.dates) > self.warmup + self.wanted:
                self.engine.stop()
        if self.warmup < len(self.dates) <= self.warmup + self.wanted:
            self.counts[begun.access] += 1
        seconds = self.machine.latencies.of(access.type)
        if self.machine.updates_at_once or access.type.kind == HIT:
            self.after(self.draw(seconds), lambda: self.begin(process, begun.local))
            return

        def update() -> None:
            self.caches = self.machine.update(self.caches, begun.access)
            self.after(self.draw(seconds / 2), lambda: self.begin(process, begun.local))

        self.after(self.draw(seconds / 2), update)

    def after(self, seconds: float, then: Callable[[], None]) -> None:
        Work(self.engine, seconds, 0.0, INFINITY, [], [], then).start()

    def batches(self, dates: Sequence[float]) -> tuple[float, float]:
        """The mean time a message (s) and half its 99 % interval, by the method of batch means."""
        size = self.wanted // BATCHES
        messages = self.machine.program.messages
        means = [
            (dates[(i + 1) * size] - dates[i * size]) / size / messages for i in range(BATCHES)
        ]
        mean = math.fsum(means) / BATCHES
        variance = math.fsum((value - mean) ** 2 for value in means) / (BATCHES - 1)
        return mean, _T99 * math.sqrt(variance / BATCHES)


def _drawn(generator: random.Random, distribution: str) -> Callable[[float], float]:
    if distribution == CONSTANT:
        return lambda mean: mean
    return lambda mean: generator.expovariate(1.0 / mean)
