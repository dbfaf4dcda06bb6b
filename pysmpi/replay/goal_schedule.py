"""The operations of one rank in a schedule of GOAL."""

from __future__ import annotations

CALC, SEND, RECV = range(3)


class GoalSchedule:
    """The graph of one rank: columns of its operations, by their numbers.

    `amounts` are nanoseconds of a compute and bytes of a message. `after_end` and `after_start`
    hold the operations that an operation releases by its end and by its start.
    """

    def __init__(self) -> None:
        self.kinds: list[int] = []
        self.amounts: list[int] = []
        self.peers: list[int] = []
        self.tags: list[int] = []
        self.cpus: list[int] = []
        self.unit = "line"  # of the numbers in `lines`
        self.lines: list[int] = []  # of the file
        self.missing: list[int] = []  # how many other operations an operation requires
        self.after_end: dict[int, list[int]] = {}
        self.after_start: dict[int, list[int]] = {}

    def __len__(self) -> int:
        return len(self.kinds)
