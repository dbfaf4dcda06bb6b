"""Algorithms that decide while they run: who has arrived is known only then.

Such an algorithm is a generator `def name(c: Call, look: Lookout) -> Iterator[Schedule]`. Each
schedule that it yields is executed before it goes on, so between two of them it may look which
messages have come. Ranks of one call tell each other what a message would carry, such as the
list of those who have arrived, through the lookout's board.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pysmpi.collectives import registry
from pysmpi.collectives.call import Call, append
from pysmpi.collectives.selection import DEFAULT, build, resolve, split
from pysmpi.kernel.matching import ANY
from pysmpi.kernel.requests import Context, Receive
from pysmpi.kernel.schedule import Schedule

LOOK = 1e-4  # seconds of a look for a message (SMPI's option smpi/iprobe)
REST = 1  # how far the tags of a second part are from those of the first

Notes = dict[tuple[int, int], Sequence[int]]


@dataclass(slots=True)
class Patience:
    """What a look costs: `seconds`, times one more for each look in a row that found nothing.

    SMPI counts over all ranks and calls (`smpi/grow-injected-times`).
    """

    seconds: float = LOOK
    grows: bool = True
    failures: int = 0


class Lookout:
    """What a rank sees while its algorithm runs.

    `board` is shared by the ranks of the call; `tag` tells the messages of the call from others.
    """

    __slots__ = ("board", "context", "patience", "rank", "tag")

    def __init__(
        self, context: Context, rank: int, tag: int, board: Notes, patience: Patience
    ) -> None:
        self.context = context
        self.rank = rank
        self.tag = tag
        self.board = board
        self.patience = patience

    def pause(self) -> Schedule:
        """The time that the next look takes, to be yielded before `seen`."""
        s = Schedule()
        patience = self.patience
        s.sleep(patience.seconds * (1 + patience.failures if patience.grows else 1))
        return s

    def seen(self, peer: int) -> bool:
        """Whether a message from `peer` is waiting to be received."""
        box = self.context.mailboxes.get(self.rank)
        found = box is not None and (
            box.peek(Receive(self.context, peer, self.rank, self.tag, 0)) is not None
        )
        self.patience.failures = 0 if found else self.patience.failures + 1
        return found

    def tell(self, group: Sequence[int]) -> None:
        """Put a list of ranks on the board, for each of them."""
        for rank in group:
            self.board[self.tag, rank] = group

    def told(self, rank: int) -> Sequence[int] | None:
        """The list on which `rank` is, once there is one."""
        return self.board.get((self.tag, rank))

    def leave(self) -> None:
        """Take what concerns this rank off the board, at the end of the call."""
        for tag in (self.tag, self.tag + REST):
            self.board.pop((tag, self.rank), None)

    def further(self) -> Lookout:
        """The view of a second part of the call, whose messages have other tags."""
        return Lookout(self.context, self.rank, self.tag + REST, self.board, self.patience)

    def before(self, rank: int) -> int:
        """Who comes before `rank` on its list (0 for the first); `ANY` before that is known."""
        group = self.told(rank)
        if group is None:
            return ANY
        place = group.index(rank)
        return group[place - 1] if place else 0


class Everybody(Lookout):
    """The view in which all ranks have arrived, for schedules that are made before they run."""

    __slots__ = ("group",)

    def __init__(self, size: int) -> None:
        super().__init__(Context(0, []), 0, 0, {}, Patience())
        self.group = range(1, size)

    def further(self) -> Lookout:
        """Everybody is there too."""
        return self

    def seen(self, peer: int) -> bool:
        """Everybody is there."""
        return True

    def told(self, rank: int) -> Sequence[int] | None:
        """All but rank 0 are on one list."""
        return self.group


def in_advance(function: registry.Live) -> registry.Builder:
    """The schedule that results if everybody has arrived, for use inside other algorithms."""

    def build_in_advance(s: Schedule, c: Call) -> None:
        for part in function(c, Everybody(c.size)):
            append(s, part, range(c.size), c.notes)

    build_in_advance.__doc__ = function.__doc__
    return build_in_advance


def call(c: Call, look: Lookout, op: str, name: str | None = None, **changes: Any) -> Any:
    """The parts of another collective of the same communicator, as `Call.call`.

    Its messages are not taken for those of the call that ends with it.
    """
    inner = replace(c, op=op, parts=(), **changes)
    live = find_live(inner, name)
    if live is None:
        s = Schedule()
        inner.carries(s)
        build(s, inner, name)
        parts: Iterable[Schedule] = [s]
    else:
        parts = live(inner, look.further())
    for part in parts:
        part.tags = [tag + REST for tag in part.tags]
        yield part


def find_live(c: Call, name: str | None = None) -> registry.Live | None:
    """The generator of the algorithm that is chosen, if it decides while it runs."""
    if c.size <= 1 or not registry.has_live(c.op):
        return None
    if name is None:
        name = (c.selection or DEFAULT).start(c.op, c.nonblocking)
    return registry.find(c.op, split(resolve(c, name))[0]).live
