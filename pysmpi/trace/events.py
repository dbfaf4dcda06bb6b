"""The records of a timeline, and the interface of a format. Times are in seconds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class RankPlace(NamedTuple):
    """A rank and the host it runs on."""

    rank: int
    host: str


class TracedCall:
    """One MPI call of one thread of a rank.

    `thread` is 0 for the main one. `sent` counts the bytes of the messages that the call started,
    `received` those of the messages that it completed; `peers` holds its `dest`, `source` or `root`
    as the program gave them, `site` the line of the program.
    """

    __slots__ = ("name", "rank", "thread", "start", "end", "sent", "received", "peers", "site")

    def __init__(self, name: str, rank: int, thread: int, site: str) -> None:
        self.name = name
        self.rank = rank
        self.thread = thread
        self.start = 0.0
        self.end = 0.0
        self.sent = 0
        self.received = 0
        self.peers: tuple[tuple[str, int], ...] = ()
        self.site = site


class TracedMessage(NamedTuple):
    """One message on its way, from rank to rank; `number` counts the messages of the run."""

    number: int
    source: int
    destination: int
    tag: int
    nbytes: int
    start: float
    end: float


class Format(Protocol):
    """A writer of timelines. Calls and transfers come in the order in which they end."""

    def begin(self, places: Sequence[RankPlace]) -> None:
        """Ranks were started; called again for those that a program spawns."""

    def call(self, call: TracedCall) -> None:
        """A call is over."""

    def transfer(self, transfer: TracedMessage) -> None:
        """A message has arrived."""

    def end(self, ends: Sequence[float]) -> None:
        """The run is over; `ends` are the dates at which the ranks ended."""

    def close(self) -> None:
        """Close the file, also after an aborted run."""
