"""Algorithms that decide while they run, from the ranks that have arrived.

Such an algorithm is a generator `def name(c: Call, look: Lookout) -> Iterator[Builder]`. Each part
that it begins (`look.begin`) and yields is executed before it continues. Between two parts it may
check for messages. The lookout's `notes` hold data that a message would carry between ranks of a
call, such as the list of ranks that have arrived.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pysmpi.collectives import registry
from pysmpi.collectives.building import LOOK, REST, Builder, later
from pysmpi.collectives.call import Call
from pysmpi.collectives.registry import split
from pysmpi.collectives.selection import default, resolve
from pysmpi.kernel.matching import ANY, mailbox_at
from pysmpi.kernel.requests import Context, Receive
from pysmpi.kernel.schedule import Schedule
from pysmpi.python.records import record

Notes = dict[tuple[int, int], Sequence[int]]
Running = Callable[[Call, "Lookout"], Iterator[Schedule]]
NO_CALL = Call("barrier", 0, 1)


@record
class Patience:
    """The cost of a look: `seconds`, times one more for each look in a row without success.

    SMPI counts over all ranks and calls (`smpi/grow-injected-times`).
    """

    seconds: float = LOOK
    grows: bool = True
    failures: int = 0


class Lookout:
    """The view of a rank while its algorithm runs.

    `notes` are shared by the ranks of the call; `tag` identifies the messages of the call.
    """

    __slots__ = ("notes", "context", "patience", "rank", "tag")

    def __init__(
        self, context: Context, rank: int, tag: int, notes: Notes, patience: Patience
    ) -> None:
        self.context = context
        self.rank = rank
        self.tag = tag
        self.notes = notes
        self.patience = patience

    def begin(self, c: Call) -> Builder:
        """Begin a part of the rank's steps, to be yielded."""
        return Builder(Schedule(), c)

    def pause(self) -> Builder:
        """The time that the next look takes, to be yielded before `seen`."""
        s = Builder(Schedule(), NO_CALL)
        patience = self.patience
        s.sleep(patience.seconds * (1 + patience.failures if patience.grows else 1))
        return s

    def seen(self, peer: int) -> bool:
        """Whether a message from `peer` is waiting to be received."""
        box = mailbox_at(self.context, self.rank)
        result = box is not None and (
            box.peek(Receive(self.context, peer, self.rank, self.tag, 0)) is not None
        )
        self.patience.failures = 0 if result else self.patience.failures + 1
        return result

    def publish(self, group: Sequence[int]) -> None:
        """Put a list of ranks into the notes, for each of them."""
        for rank in group:
            self.notes[self.tag, rank] = group

    def published(self, rank: int) -> Sequence[int] | None:
        """The list that contains `rank`, or None."""
        return self.notes.get((self.tag, rank))

    def leave(self) -> None:
        """Remove the entries of this rank from the notes, at the end of the call."""
        for tag in (self.tag, self.tag + REST):
            self.notes.pop((tag, self.rank), None)

    def further(self) -> Lookout:
        """The view of a second part of the call; its messages have other tags."""
        return Lookout(self.context, self.rank, self.tag + REST, self.notes, self.patience)

    def before(self, rank: int) -> int:
        """The rank before `rank` on its list (0 for the first); `ANY` if it is not yet known."""
        group = self.published(rank)
        if group is None:
            return ANY
        place = group.index(rank)
        return group[place - 1] if place else 0

    def call(self, c: Call, op: str, name: str | None = None, **changes: Any) -> Iterator[Builder]:
        """The parts of another collective of the same communicator, as `Builder.call`.

        Its messages do not match those of the call that ends with it.
        """
        inner = c._replace(op=op, parts=(), **changes)
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
    """The executor of the chosen algorithm, if it decides while it runs."""
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
        name = (c.selection or default()).start(c.op, c.nonblocking)
    return registry.find(c.op, split(resolve(c, name))[0]).live
