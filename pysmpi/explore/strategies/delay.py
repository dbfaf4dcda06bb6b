"""`delay:D`: the default order, except that D events are delayed (delay-bounded scheduling).

At D random steps the event that is due waits, and the one after it happens instead (Emmi, Qadeer
and Rakamaric, Delay-Bounded Scheduling, POPL 2011). Most failures need one or two delays.
"""

from __future__ import annotations

from collections.abc import Sequence

from pysmpi.explore.strategy import Seeded, depth, strategy
from pysmpi.kernel.choices import Alternative

STEPS = 50  # the assumed steps of a run, as long as none is known


class Delays(Seeded):
    """Delays the events of some steps."""

    def __init__(self, seed: int, depth: int) -> None:
        super().__init__(seed)
        self.depth = depth
        self._known = 0
        self._step = 0
        self._delays: list[int] = []
        self._delayed: set[str] = set()

    def start(self, run: int) -> None:
        self._step = 0
        length = max(self._known or STEPS, self.depth)
        self._delays = sorted(self.random.choices(range(length), k=self.depth))
        self._delayed = set()

    def step(self, options: Sequence[Alternative]) -> int:
        order = [i for i, option in enumerate(options) if option.name not in self._delayed]
        while len(order) > 1 and self._step in self._delays:
            self._delays.remove(self._step)
            self._delayed.add(options[order.pop(0)].name)
        self._step += 1
        return order[0] if order else 0

    def end(self, pids: Sequence[int]) -> str:
        self._known = max(self._known, len(pids))
        return ""


@strategy("delay", "delay:D: the default order with D delayed events")
def _make(argument: str | None, seed: int) -> Delays:
    return Delays(seed, depth(argument, "delay", 2))
