"""The measures of one kind of pass."""

from __future__ import annotations

from random import Random

from pysmpi.shadow.estimate import Estimate
from pysmpi.shadow.outputs import Outputs


class Entry:
    """One kind of pass: its measures, and the outputs of the last executed pass."""

    __slots__ = (
        "estimate", "done", "left", "outputs", "written", "host", "random", "shares", "blocks",
        "skipped", "value", "owed", "kind",
    )  # fmt: skip

    def __init__(self, kind: int = 0) -> None:
        self.kind = kind  # number of earlier kinds of passes of the rank
        self.estimate = Estimate()
        self.done = False  # whether the next pass can be skipped
        self.left = 0  # passes to skip before one is measured again; negative: all
        self.outputs: Outputs | None = None
        self.written: list[object] | None = None  # places of arrays that a pass writes to
        self.host = 0  # ns of this machine that the passes took
        self.random: Random | None = None
        # Of collective passes: simulated seconds of compute, communication and overhead in those
        # that were measured, and the blocks of compute in the last one.
        self.shares: list[float] | None = None
        self.blocks = 0
        self.skipped = 0
        self.value = 0.0  # current charge of each skipped pass
        self.owed = 0.0  # too little charged so far, if positive

    def cost(self, passes: int, value: float) -> float:
        """The total charge of skipped passes if each takes `value`.

        It includes a correction of earlier charges, so that a late measure counts as much as an
        early one.
        """
        if value != self.value:
            self.owed += self.skipped * (value - self.value)
            self.value = value
        self.skipped += passes
        cost = passes * value + self.owed
        self.owed = min(0.0, cost)
        return max(0.0, cost)
