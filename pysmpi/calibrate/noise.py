"""The detours of this computer's cores, by a fixed quantum of work.

Each core does the same small work again and again. The time of a quantum above the usual one is a
detour: an interrupt, or another process. The detours are counted by their length, a kind for each
half of a decade; all of a kind have its mean.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pysmpi.calibrate.pinned import together
from pysmpi.faults.specification import Detours

SHORTEST = 1e-6  # s of a detour; also at least a tenth of a quantum, as quanta differ themselves
PART = 0.1

# Starts when it reads a line. Prints the number of quanta, their usual time, and the detours (s).
_PROGRAM = """
import array, gc, json, os, sys, time
seconds, shortest, part, cpu = *map(float, sys.argv[1:4]), int(sys.argv[4])
os.sched_setaffinity(0, {cpu})
gc.disable()
work, clock = list(range(600)), time.perf_counter
times = array.array("d")
print("ready", flush=True)
sys.stdin.readline()
last = clock()
end = last + seconds
while last < end:
    sum(work)
    now = clock()
    times.append(now - last)
    last = now
usual = sorted(times)[len(times) // 2]
limit = usual + max(shortest, part * usual)
print(json.dumps([len(times), usual, [one - usual for one in times if one > limit]]))
"""


@dataclass(frozen=True)
class CoreNoise:
    """The quanta of a core: their number, their usual time (s), and its detours (s)."""

    quanta: int
    usual: float
    detours: tuple[float, ...]

    @property
    def work(self) -> float:
        """The seconds of work."""
        return self.quanta * self.usual

    @property
    def share(self) -> float:
        """The part of the time that detours take."""
        lost = math.fsum(self.detours)
        return lost / (self.work + lost)


def measure(cpus: Sequence[int], seconds: float) -> list[CoreNoise]:
    """The noise of some cores, which work together for so many seconds."""
    measured = together(_PROGRAM, (seconds, SHORTEST, PART), cpus)
    return [CoreNoise(quanta, usual, tuple(detours)) for quanta, usual, detours in measured]


def kinds(cores: Sequence[CoreNoise]) -> list[Detours]:
    """The detours of a core on average, by length: a kind for each half of a decade."""
    work = math.fsum(core.work for core in cores)
    groups: dict[int, list[float]] = {}
    for core in cores:
        for one in core.detours:
            groups.setdefault(math.floor(2.0 * math.log10(one)), []).append(one)
    return [
        Detours(len(times) / work, math.fsum(times) / len(times), constant=True)
        for _, times in sorted(groups.items())
    ]
