"""`pct:D`: priorities of ranks with D-1 changes, with a guarantee.

Each rank has a random priority; the option of the highest rank is taken. At D-1 random steps the
rank that would continue gets the lowest priority. A failure that needs D events in a certain order
is found by one run with a probability of at least 1/(n k^(D-1)), for n ranks and k steps
(Burckhardt and others, A Randomized Scheduler with Probabilistic Guarantees of Finding Bugs, ASPLOS
2010). Only steps with several options count. The number k is that of the longest run so far.
"""

from __future__ import annotations

from collections.abc import Sequence

from pysmpi.explore.strategy import Seeded, depth, strategy
from pysmpi.kernel.choices import Alternative

# Steps in a row after which a rank gets the lowest priority: it may wait in a loop for the others.
SPINS = 100
STEPS = 50  # the assumed steps of a run, as long as none is known


class Priorities(Seeded):
    """Picks the option of the rank with the highest priority."""

    def __init__(self, seed: int, depth: int) -> None:
        super().__init__(seed)
        self.depth = depth
        self.known = 0  # steps of the longest run so far
        self.runs = 0
        self._step = 0
        self._changes: set[int] = set()
        self._priority: dict[int, float] = {}
        self._lowest = 0.0
        self._last = self._alone = -1

    def start(self, run: int) -> None:
        self._step = 0
        length = max(self.known or STEPS, self.depth)
        self._changes = set(self.random.sample(range(length), self.depth - 1))
        self._priority = {}
        self._lowest = 0.0
        self._last = self._alone = -1

    def _first(self, options: Sequence[Alternative]) -> int:
        for pid in sorted({option.pid for option in options}):
            if pid not in self._priority:
                self._priority[pid] = self.random.random()
        return max(range(len(options)), key=lambda i: (self._priority[options[i].pid], -i))

    def step(self, options: Sequence[Alternative]) -> int:
        i = self._first(options)
        if self._step in self._changes:
            self._lowest -= 1.0
            self._priority[options[i].pid] = self._lowest
            i = self._first(options)
        pid = options[i].pid
        self._alone = self._alone + 1 if pid == self._last else 0
        self._last = pid
        if self._alone >= SPINS:
            # It waits in a loop for something that only others can do.
            self._alone = 0
            self._lowest -= 1.0
            self._priority[pid] = self._lowest
        self._step += 1
        own = [j for j, option in enumerate(options) if option.pid == options[i].pid]
        return self.random.choice(own)

    def end(self, pids: Sequence[int]) -> str:
        self.known = max(self.known, len(pids))
        self.runs += 1
        bound = self.bound()
        many = f"{self.runs:,} runs" if self.runs > 1 else "one run"
        return (
            f"pct: depth {self.depth}, n={self.ranks} ranks, k={self.known} steps: {many} would "
            f"miss a failure of this depth with a probability of at most {bound:.4g}"
        )

    def bound(self) -> float:
        """An upper bound of the probability that all runs so far miss a failure of this depth."""
        found = 1.0 / (self.ranks * max(1, self.known) ** (self.depth - 1))
        missed: float = (1.0 - found) ** self.runs
        return missed


@strategy("pct", "pct:D: random priorities of ranks, D-1 changes; with a guarantee")
def _make(argument: str | None, seed: int) -> Priorities:
    return Priorities(seed, depth(argument, "pct", 3))
