"""Algorithms that decide while they run: who has arrived is known only then.

Such an algorithm is a generator `def name(c: Call, look: Lookout) -> Iterator[Builder]`. Each
part that it begins (`look.begin`) and yields is executed before it goes on, so between two of
them it may look which messages have come. Ranks of one call tell each other what a message would
carry, such as the list of those who have arrived, through the lookout's board.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pysmpi.collectives import registry
from pysmpi.collectives.building import LOOK, REST, Builder, later
from pysmpi.collectives.call import Call
from pysmpi.collectives.selection import DEFAULT, resolve, split
from pysmpi.kernel.matching import ANY
from pysmpi.kernel.requests import Context, Receive
from pysmpi.kernel.schedule import Schedule

Notes = dict[tuple[int, int], Sequence[int]]
Running = Callable[[Call, "Lookout"], Iterator[Schedule]]
NO_CALL = Call("barrier", 0, 1)


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

    def begin(self, c: Call) -> Builder:
        """Begin a part of what the rank does, to be yielded."""
        return Builder(Schedule(), c)

    def pause(self) -> Builder:
        """The time that the next look takes, to be yielded before `seen`."""
        s = Builder(Schedule(), NO_CALL)
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

    def call(self, c: Call, op: str, name: str | None = None, **changes: Any) -> Iterator[Builder]:
        """The parts of another collective of the same communicator, as `Builder.call`.

        Its messages are not taken for those of the call that ends with it.
        """
        inner = replace(c, op=op, parts=(), **changes)
        live = _live(inner, name)
        if live is not None:
            parts = live(inner, self.further())
        else:
            part = self.begin(inner)
            part.perform(inner, name)
            parts = iter((part,))
        for part in parts:
            later(part.schedule)
            yield part


def find_live(c: Call, name: str | None = None) -> Running | None:
    """What executes the algorithm that is chosen, if it decides while it runs."""
    live = _live(c, name)
    if live is None:
        return None

    def run(c: Call, look: Lookout) -> Iterator[Schedule]:
        for part in live(c, look):
            yield part.schedule

    return run


def _live(c: Call, name: str | None) -> registry.Live | None:
    if c.size <= 1 or not registry.has_live(c.op):
        return None
    if name is None:
        name = (c.selection or DEFAULT).start(c.op, c.nonblocking)
    return registry.find(c.op, split(resolve(c, name))[0]).live
