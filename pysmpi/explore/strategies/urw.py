"""`urw`: every interleaving is about equally likely.

A plain random walk prefers interleavings in which a rank with few events is early. Here a rank is
picked in proportion to the events that it still has to do (Zhao and others, Selectively Uniform
Concurrency Testing, ASPLOS 2025). Their numbers are those of the run before; the first run knows
none, and is a plain random walk.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from pysmpi.explore.strategy import Seeded, no_argument, strategy
from pysmpi.kernel.choices import Alternative


class UniformWalk(Seeded):
    """Picks ranks in proportion to the events that they still have to do."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._known: Counter[int] = Counter()
        self._done: Counter[int] = Counter()

    def start(self, run: int) -> None:
        self._done = Counter()

    def step(self, options: Sequence[Alternative]) -> int:
        pids = list(dict.fromkeys(option.pid for option in options))
        left = [max(1, self._known[pid] - self._done[pid]) for pid in pids]
        pid = self.random.choices(pids, left)[0]
        self._done[pid] += 1
        own = [i for i, option in enumerate(options) if option.pid == pid]
        return self.random.choice(own)

    def end(self, pids: Sequence[int]) -> str:
        for pid, count in Counter(pids).items():
            self._known[pid] = max(self._known[pid], count)
        return ""


@strategy("urw", "every interleaving is about equally likely")
def _make(argument: str | None, seed: int) -> UniformWalk:
    no_argument(argument, "urw")
    return UniformWalk(seed)
