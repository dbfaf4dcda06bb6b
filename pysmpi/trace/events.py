"""The records of a run, and the interface of a format. Times are in seconds.

Every record that has a `number` is referred to by it. Operations of calls are tuples; the first
element says which:

| operation | elements after the first |
| --- | --- |
| `COMPUTE` | seconds of the core |
| `PASS` | seconds that pass otherwise: a sleep, a poll, a wait for a file, a lock, a window |
| `SEND` | request, context, source, destination, tag, bytes, mode of the kernel, non-blocking |
| `RECEIVE` | request, context, source, destination, tag, bytes [, source, tag, bytes] |
| `TRANSFER` | request, context, source, destination, bytes: one-sided communication |
| `COLLECTIVE` | collective call, context, tag, background (bool), its arguments (a dict) |
| `STEPS` | context, rank, tag, codes, peers, sizes, tags, amounts of a kernel schedule |
| `WAIT` | numbers of requests, whether all are awaited |

Requests are numbered over the whole run. A wait for the collective call N in the background has the
number -N. Sources and destinations are ranks of the context. A receive with a wildcard, or without
a limit of its buffer, has the source, tag and bytes of its message at its end, if they were known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, Protocol

COMPUTE: Final = "compute"
PASS: Final = "pass"
SEND: Final = "send"
RECEIVE: Final = "receive"
TRANSFER: Final = "transfer"
COLLECTIVE: Final = "collective"
STEPS: Final = "steps"
WAIT: Final = "wait"

Operation = tuple[Any, ...]


class RankPlace(NamedTuple):
    """A rank, the host and core it runs on, and the speed of the core (flop/s)."""

    rank: int
    host: str
    core: int = 0
    speed: float = 0.0


class TracedCommunicator(NamedTuple):
    """A communication context, and the communicator that has it.

    A communicator has several contexts, one of which has its number. `members` are the ranks of the
    run by their rank in the context.
    """

    number: int
    communicator: int
    name: str
    members: tuple[int, ...]


class TracedCall:
    """One MPI call of one thread of a rank.

    `thread` is 0 for the main one. `sent` counts the bytes of the messages that the call started,
    `received` those of the messages that it completed; `peers` holds its `dest`, `source` or `root`
    as the program gave them, `site` the line of the program. `communicator` is 0 if the call used
    none, `algorithm` the algorithm of a collective call. `operations` are what the call did, in
    order; the first is usually the compute before the call, which ends at `start`. `details` holds
    datatypes, window epochs and accesses to files.

    A call without a name is time between two calls: a sleep, a wait for a thread.
    """

    __slots__ = (
        "number", "name", "rank", "thread", "start", "end", "sent", "received", "peers", "site",
        "communicator", "algorithm", "operations", "details",
    )  # fmt: skip

    def __init__(self, name: str, rank: int, thread: int, site: str) -> None:
        self.number = 0
        self.name = name
        self.rank = rank
        self.thread = thread
        self.start = 0.0
        self.end = 0.0
        self.sent = 0
        self.received = 0
        self.peers: tuple[tuple[str, int], ...] = ()
        self.site = site
        self.communicator = 0
        self.algorithm = ""
        self.operations: list[Operation] = []
        self.details: dict[str, Any] = {}

    def __repr__(self) -> str:
        return f"<{self.name or 'time'} of rank {self.rank}, {self.start:.9g} to {self.end:.9g} s>"


class TracedMessage(NamedTuple):
    """One message on its way, from rank to rank.

    `number` is the request of its send, `receive` that of its receive (0 for one-sided
    communication). It was sent at `posted` by the call `send_call`, and the receive was posted at
    `ready` by `receive_call`; its bytes flowed from `start` to `end`. `collective` is the
    collective call that it belongs to, 0 for point-to-point messages.
    """

    number: int
    source: int
    destination: int
    tag: int
    nbytes: int
    start: float
    end: float
    posted: float = 0.0
    ready: float = 0.0
    send_call: int = 0
    receive_call: int = 0
    receive: int = 0
    communicator: int = 0
    collective: int = 0


class TracedWait(NamedTuple):
    """A rank was blocked from `start` to `end`, in `call`.

    `request` is the request whose completion ended the wait: that of a receive (the last byte of
    `message` arrived) or of a send (likewise), or -N for the collective call N; 0 for anything
    else. `collective` is the collective call whose messages were awaited: in the background if its
    `call` has ended before.
    """

    rank: int
    call: int
    start: float
    end: float
    request: int
    message: int
    collective: int = 0


class TracedMatch(NamedTuple):
    """The source (a rank of the context), tag and bytes of the message that a non-blocking receive
    with a wildcard has taken.
    """

    receive: int
    source: int
    tag: int
    nbytes: int


class Format(Protocol):
    """A writer of timelines. Calls and transfers come in the order in which they end.

    A format may have further methods, called if it has them: `describe(facts)` first, with facts of
    the run as plain data; `choose(selection)` with its collective algorithms;
    `communicator(TracedCommunicator)` before the first record that refers to it;
    `wait(TracedWait)`; `match(TracedMatch)`; `between(TracedCall)` for time between calls.
    """

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
