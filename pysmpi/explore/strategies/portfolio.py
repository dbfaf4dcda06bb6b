"""`portfolio`: the other strategies in turn, one a run."""

from __future__ import annotations

from collections.abc import Sequence

from pysmpi.explore.strategies.delay import Delays
from pysmpi.explore.strategies.pct import Priorities
from pysmpi.explore.strategies.random import RandomWalk
from pysmpi.explore.strategies.urw import UniformWalk
from pysmpi.explore.strategy import Strategy, no_argument, strategy
from pysmpi.kernel.choices import Alternative


class Portfolio:
    """Lets a different strategy decide each run."""

    def __init__(self, seed: int) -> None:
        self._members: list[Strategy] = [
            Priorities(seed, 2), RandomWalk(seed), Delays(seed, 2), Priorities(seed, 3),
            UniformWalk(seed), Delays(seed, 1),
        ]  # fmt: skip
        self._seed = seed
        self._member = self._members[0]

    def begin(self, run: int, ranks: int) -> None:
        """Take the next member."""
        self._member = self._members[(self._seed + run) % len(self._members)]
        self._member.begin(run, ranks)

    def pick(self, kind: str, options: Sequence[Alternative]) -> int:
        """Decide as this run's member does."""
        return self._member.pick(kind, options)

    def end(self, pids: Sequence[int]) -> str:
        """Notes of single members would not hold for all runs."""
        self._member.end(pids)
        return ""


@strategy("portfolio", "the other strategies in turn, one a run")
def _make(argument: str | None, seed: int) -> Portfolio:
    no_argument(argument, "portfolio")
    return Portfolio(seed)
