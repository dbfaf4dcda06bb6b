"""The measures of one kind of pass."""

from __future__ import annotations

import math
from random import Random

from pysmpi.shadow.estimate import Estimate
from pysmpi.shadow.outputs import Outputs


class Entry:
    """One kind of pass: its measures, and the outputs of the last executed pass."""

    __slots__ = (
        "estimate", "done", "left", "outputs", "written", "host", "random", "shares", "blocks",
        "skipped", "value", "owed", "kind", "trend", "again", "cold",
        "least", "greatest", "norm", "norms", "missed", "waits", "at", "short",
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
        self.missed: dict[int, int] = {}  # skipped passes of each rank
        self.value = 0.0  # current charge of each skipped pass
        self.owed = 0.0  # too little charged so far, if positive
        self.trend: float | None = None  # relative change of the time of passes, if there is one
        self.again = 0  # measures after which the trend is looked for again
        self.least, self.greatest = math.inf, 0.0  # norms of the arrays that passes read
        self.norm = 0.0  # that of the last one
        self.norms = 0  # number of changes of the norm
        self.cold = False  # whether passes were skipped before the next one, which is not measured
        self.waits: dict[int, int] = {}  # blocks of compute of each rank that have skipped passes
        self.short = False  # whether a pass is too short to be skipped
        self.at = -1.0  # the date of the last of them

    def note_norm(self, norm: float | None) -> None:
        """Note the norm of the arrays that a pass reads."""
        if norm is not None and norm > 0.0:
            self.least, self.greatest = min(self.least, norm), max(self.greatest, norm)
            self.norms += norm != self.norm
            self.norm = norm

    def resembles(self, norm: float | None, around: float) -> bool:
        """Whether a pass reads arrays of about the norm of those that were measured.

        Passes that have all read the same say nothing about others.
        """
        if norm is None or not self.greatest:
            return True
        if self.norms == 1:
            return norm == self.norm
        return self.least / around <= norm <= self.greatest * around

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
