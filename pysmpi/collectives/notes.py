"""What an algorithm says about the data of its steps, for those who follow it.

Schedules hold sizes only. To follow what is combined with what, one must know a little more:
which part of the vector a message carries, and where a reduction does not simply combine what
has just come with what the rank has. Algorithms say so through `Call.carries`, `Call.own_last`,
`Call.result_apart` and `Call.also_result`, which cost nothing unless somebody listens: then the
call has `Notes`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

CARRIES = "carries"
OWN_LAST = "own last"
RESULT_APART = "result apart"
ALSO_RESULT = "also result"
COLLECTIVE = "collective"

WHOLE, NOTHING, RECEIVED = -1, -2, -3  # in the place of an offset

Span = tuple[int, int]  # bytes of the vector of the outermost call: first, and behind the last


@dataclass(slots=True)
class Remark:
    """Something that holds from step `at` of a schedule on, or happens just before it.

    By `kind`: `carries` has the offsets at which what is sent and received begins (or
    `WHOLE`: the vector `span`; `NOTHING`; `RECEIVED`: what came last); `result apart` whether
    the result begins with the own vector; `collective` the operation, its ranks and root, and
    the bytes of a block.
    """

    at: int
    kind: str
    span: Span = (0, 0)
    send: int = WHOLE
    receive: int = WHOLE
    own: bool = False
    op: str = ""
    ranks: tuple[int, ...] = ()
    root: int = 0
    nbytes: int = 0


@dataclass(slots=True)
class Notes:
    """The remarks of one rank's algorithm, by schedule while the schedules are put together."""

    remarks: dict[int, list[Remark]] = field(default_factory=dict)

    def add(self, schedule: object, remark: Remark) -> None:
        """Note a remark about a schedule."""
        self.remarks.setdefault(id(schedule), []).append(remark)

    def of(self, schedule: object) -> list[Remark]:
        """The remarks about a schedule, in order."""
        return self.remarks.get(id(schedule), [])

    def moved(self, part: object, whole: object, by: int, ranks: Sequence[int]) -> None:
        """The steps of `part` are put behind the first `by` steps of `whole`."""
        for remark in self.remarks.pop(id(part), []):
            remark.at += by
            remark.ranks = tuple(ranks[rank] for rank in remark.ranks)
            self.add(whole, remark)
