"""The records of a run, and the interface of a format. Times are in seconds.

A recording has two layers. Its calls hold the operations of each rank, which a replay executes
again. Its events are rows of numbers with dates, in the order of time.

Every record that has a `number` is referred to by it. Operations of calls are tuples; the first
element names the operation:

| operation | elements after the first |
| --- | --- |
| `COMPUTE` | seconds of the core |
| `PASS` | seconds that pass otherwise: a sleep, a poll, a wait for a file, a lock, a window |
| `SEND` | request, context, source, destination, tag, bytes, mode of the kernel, non-blocking |
| `RECEIVE` | request, context, source, destination, tag, bytes [, source, tag, bytes] |
| `TRANSFER` | request, context, source, destination, bytes: one-sided communication |
| `COLLECTIVE` | collective call, context, tag, background (bool), its arguments (a dict) |
| `STEPS` | context, rank, tag, codes, peers, sizes, tags, amounts of a kernel schedule |
| `LATE` | request: another rank posts it with `POST`; its `SEND` or `RECEIVE` follows |
| `POST` | request: that of a `LATE` of another rank |
| `JOIN` | request, the first request of its joint operation, number of those that follow |
| `WAIT` | numbers of requests, whether all are awaited |
| `PROBE` | context, source, destination, tag: a wait for a message that stays in its queue |

Requests are numbered over the whole run. A wait for the collective call N in the background has the
number -N. Joint requests complete together, as those of a partitioned operation; a process in the
background pays for their ends. Sources and destinations are ranks of the context. A receive with a
wildcard, or without a limit of its buffer, has the source, tag and bytes of its message at its end,
if they were known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

if TYPE_CHECKING:  # numpy takes long to load, and replays do without
    from pysmpi.trace.columns import Floats, Integers

COMPUTE: Final = "compute"
PASS: Final = "pass"
SEND: Final = "send"
RECEIVE: Final = "receive"
TRANSFER: Final = "transfer"
COLLECTIVE: Final = "collective"
STEPS: Final = "steps"
LATE: Final = "late"
POST: Final = "post"
JOIN: Final = "join"
WAIT: Final = "wait"
PROBE: Final = "probe"

Operation = tuple[Any, ...]

# Kinds of events, with the meaning of the columns a, b and x. Those of the kinds MATCH, DEPART,
# ARRIVE and COMPLETE belong to no process: theirs is 0.
PROCESS: Final = 0  # a: rank, b: MAIN, THREAD or BACKGROUND, x: collective call; the first event
CALL: Final = 1  # a call begins; a: its number
RETURN: Final = 2  # the call ends; a: its number
START_SEND: Final = 3  # a: message, b: bytes, x: start cost (s)
START_RECEIVE: Final = 4  # a: receive, b: bytes of its buffer
MATCH: Final = 5  # a: message, b: receive
DEPART: Final = 6  # the transfer starts; a: message, b: latency (s), x: seconds without contention
ARRIVE: Final = 7  # the transfer ends; a: message
COMPLETE: Final = 8  # a request is complete; a: message or receive
START_WAIT: Final = 9  # a: 1 waits for all, 0 for one; b: number of AWAITED rows that follow
AWAITED: Final = 10  # a: message or receive; or -1 - b for the process b in the background
RESUME: Final = 11  # the wait ends; a: as AWAITED, 0 for none; b: process that caused it, or -1;
#                     x: the message, if the wait was for one
END: Final = 12  # the program of a rank ends; x: its exit status
ENTER: Final = 13  # a rank enters a collective operation; a: its number, b: context

MAIN, THREAD, BACKGROUND = 0, 1, 2

# Modes of messages, which may be combined.
EAGER, DETACHED, ONE_SIDED, INTERNAL = 1, 2, 4, 8


class EventRows(NamedTuple):
    """Events: their kind, process (a number from 1 on), date (s), and three columns by kind."""

    kind: Integers
    process: Integers
    date: Floats
    a: Integers
    b: Floats
    x: Floats


class MessageRows(NamedTuple):
    """Messages that have left: their numbers, ranks of the run, tags, bytes, and so on.

    `route` is the number of a route, `mode` a sum of EAGER, DETACHED, ONE_SIDED and INTERNAL,
    `communicator` and `collective` the numbers of a communicator and a collective call, or 0.
    """

    number: Integers
    source: Integers
    destination: Integers
    tag: Integers
    nbytes: Integers
    route: Integers
    mode: Integers
    communicator: Integers
    collective: Integers


class TracedRoute(NamedTuple):
    """The links (names and bytes/s) that messages of a route cross.

    If a message is split, `shares` are the parts of it on each link; otherwise it is empty.
    """

    number: int
    links: tuple[tuple[str, float], ...]
    shares: tuple[float, ...] = ()


class RankPlace(NamedTuple):
    """A rank, the host and core it runs on, and the speed of the core (flop/s)."""

    rank: int
    host: str
    core: int = 0
    speed: float = 0.0


class TracedCommunicator(NamedTuple):
    """A communication context, and the communicator that has it.

    A communicator has several contexts, one of which has its number. `members` are the ranks of the
    run by their rank in the context. Messages of an intercommunicator arrive in the context of
    their receivers, and `sources` are the ranks of the other side; empty if they are the members.
    """

    number: int
    communicator: int
    name: str
    members: tuple[int, ...]
    sources: tuple[int, ...] = ()


class TracedCall:
    """One MPI call of one thread of a rank.

    `thread` is 0 for the main one. `sent` counts the bytes of the messages that the call started,
    `received` those of the messages that it completed; `peers` holds its `dest`, `source` or `root`
    as the program gave them, `site` the line of the program. `communicator` is 0 if the call used
    none, `algorithm` the algorithm of a collective call. `operations` are those of the call, in
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
    collective call that it belongs to, 0 for point-to-point messages. If it is `internal`, MPI has
    chosen its tag, as in `Split`.
    """

    number: int
    source: int
    destination: int
    tag: int
    nbytes: int
    start: float
    end: float
    posted: float
    ready: float
    send_call: int
    receive_call: int
    receive: int
    communicator: int
    collective: int
    internal: bool


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
    """A writer of timelines. Calls come in the order in which they end.

    A format may have further methods, called if it has them: `describe(facts)` first, with facts of
    the run as plain data; `choose(selection)` with its collective algorithms;
    `communicator(TracedCommunicator)` before the first record that refers to it;
    `match(TracedMatch)`; `between(TracedCall)` for time between calls. Events come either as
    `add_route(TracedRoute)`, `add_messages(MessageRows)` and `add_events(EventRows)`, or, if it has
    no `add_events`, as `transfer(TracedMessage)` and `wait(TracedWait)`.
    """

    def begin(self, places: Sequence[RankPlace]) -> None:
        """Ranks were started; called again for those that a program spawns."""

    def call(self, call: TracedCall) -> None:
        """A call is over."""

    def end(self, ends: Sequence[float]) -> None:
        """The run is over; `ends` are the dates at which the ranks ended."""

    def close(self) -> None:
        """Close the file, also after an aborted run."""
