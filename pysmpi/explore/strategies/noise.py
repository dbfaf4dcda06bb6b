"""`noise:PERCENT`: the clock decides, with perturbed latencies and compute.

The latency between each pair of cores is longer by a random factor, and before each call a rank
computes for a random time. Both depend on the seed only. So the machine is a slightly different one
in each run, and messages overtake others that are almost as fast.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from pysmpi.explore.strategy import Seeded, strategy
from pysmpi.kernel.choices import Alternative
from pysmpi.kernel.plan import Plan, Transport
from pysmpi.text import real
from pysmpi.time.timing import ConstantTimer, NoTiming

COMPUTE = 1e-5  # mean seconds before a call, at 100 percent


class Noise(Seeded):
    """Perturbs a run by a percentage."""

    def __init__(self, seed: int, percent: float) -> None:
        super().__init__(seed)
        self.share = percent / 100.0

    def step(self, options: Sequence[Alternative]) -> int:
        return 0

    def transport(self, usual: Transport) -> Transport:
        """The transport of the perturbed machine."""
        return NoisyTransport(usual, self.share, self.random.random())

    def timing(self) -> NoisyTiming:
        """The timing of the perturbed machine."""
        return NoisyTiming(self.share * COMPUTE, self.random.random())


class NoisyTransport(Transport):
    """A transport with longer latencies, each pair its own."""

    def __init__(self, usual: Transport, share: float, seed: float) -> None:
        self._usual = usual
        self._share = share
        self._seed = seed

    def plan(self, source: int, destination: int, nbytes: int) -> Plan:
        plan = self._usual.plan(source, destination, nbytes)
        late = Random(f"{self._seed}/{source}/{destination}").expovariate(1.0)
        return plan.copy(1.0 + self._share * late, plan.pricing)


class NoisyTiming(NoTiming):
    """Blocks of compute take random times."""

    def __init__(self, mean: float, seed: float) -> None:
        super().__init__()
        self._mean = mean
        self._seed = seed

    def timer(self, pid: int, speed: float | None) -> ConstantTimer:  # type: ignore[override]
        return NoisyTimer(self._mean, Random(f"{self._seed}/{pid}"))


class NoisyTimer(ConstantTimer):
    """Gives every block a random time."""

    __slots__ = ("_mean", "_random")

    def __init__(self, mean: float, random: Random) -> None:
        super().__init__(mean)
        self._mean = mean
        self._random = random

    def start(self) -> None:
        super().start()
        self._seconds = self._random.expovariate(1.0 / self._mean)


@strategy("noise", "noise:PERCENT: the clock decides; perturbed latencies, compute", noise=True)
def _make(argument: str | None, seed: int) -> Noise:
    percent = 100.0 if argument is None else real(argument.removesuffix("%")) or 0.0
    if not 0.0 < percent < 1e6:
        raise ValueError(f"expected noise:PERCENT such as noise:50, got {argument!r}")
    return Noise(seed, percent)
