"""`random`: every option is equally likely at every step."""

from __future__ import annotations

from collections.abc import Sequence

from pysmpi.explore.strategy import Seeded, no_argument, strategy
from pysmpi.kernel.choices import Alternative


class RandomWalk(Seeded):
    """Picks any option."""

    def step(self, options: Sequence[Alternative]) -> int:
        return self.random.randrange(len(options))


@strategy("random", "every option is equally likely at every step")
def _make(argument: str | None, seed: int) -> RandomWalk:
    no_argument(argument, "random")
    return RandomWalk(seed)
