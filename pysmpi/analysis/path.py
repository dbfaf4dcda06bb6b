"""The critical path of a run: the chain of work and messages that ends with its last rank.

It leads without a gap from the start of the run to its end, so its length is the makespan. Each
piece has one cause, and only shortening the path can shorten the run.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Final

from pysmpi.analysis.graph import NONE, EventGraph
from pysmpi.trace.activity import TracedSite
from pysmpi.trace.events import ARRIVE, BACKGROUND, COMPLETE, RESUME, START_SEND, START_WAIT

COMPUTE: Final = "compute"  # the program's own work
OVERHEAD: Final = "overhead"  # work of the MPI library for messages
COMBINE: Final = "combine"  # arithmetic and copies inside calls
LATENCY: Final = "latency"  # of messages
TRANSFER: Final = "transfer"  # bytes at the speed of an idle network
CONTENTION: Final = "contention"  # further time because messages share links
SLEEP: Final = "sleep"  # sleeps, timers and files

OUTSIDE: Final = "outside of calls"  # the place of a sleep

CAUSES: Final = (COMPUTE, OVERHEAD, COMBINE, LATENCY, TRANSFER, CONTENTION, SLEEP)


@dataclass(frozen=True)
class PathPiece:
    """A part of the critical path, from `begin` to `end` (s).

    `rank` does the work or sends the message. `receiver` is the receiving rank, -1 without a
    message. `site` is the call of the piece. For compute it is the following call, and `since` the
    call before; -1 is the begin or the end of the program.
    """

    begin: float
    end: float
    cause: str
    rank: int
    receiver: int
    message: int
    site: int
    since: int

    @property
    def seconds(self) -> float:
        """Its length (s)."""
        return self.end - self.begin


@dataclass
class CriticalPath:
    """The pieces of a critical path, in the order of time."""

    graph: EventGraph
    pieces: list[PathPiece]

    @property
    def seconds(self) -> float:
        """Its length (s): the makespan."""
        if not self.pieces:
            return 0.0
        return self.pieces[-1].end - self.pieces[0].begin

    def by_cause(self) -> dict[str, float]:
        """Seconds of each cause."""
        found = dict.fromkeys(CAUSES, 0.0)
        for piece in self.pieces:
            found[piece.cause] += piece.seconds
        return found

    def by_place(self) -> list[tuple[str, str, float]]:
        """Causes and places with their seconds, the longest first."""
        found: dict[tuple[str, str], float] = defaultdict(float)
        for piece in self.pieces:
            found[piece.cause, self.place(piece)] += piece.seconds
        rows = [(cause, place, seconds) for (cause, place), seconds in found.items()]
        return sorted(rows, key=lambda row: (-row[2], row[:2]))

    def place(self, piece: PathPiece) -> str:
        """The lines of a piece."""
        record = self.graph.record
        if piece.cause != COMPUTE:
            return OUTSIDE if piece.site == NONE else record.site(piece.site)
        return span(record.sites, piece.since, piece.site)

    def hops(self) -> int:
        """The number of changes from a rank to another."""
        return sum(1 for piece in self.pieces if piece.cause == LATENCY)


def span(sites: list[TracedSite], since: int, site: int) -> str:
    """The place of the program between two calls: `from line 310 to line 318 of cg.py`.

    Before the first and after the last call: `before line 3 of cg.py`, `after line 350 of cg.py`.
    """
    first = sites[since] if since != NONE else None
    last = sites[site] if site != NONE else None
    if last is None or not last[1]:
        if first is None or not first[1]:
            return "in the whole program"
        return f"after line {first[2]} of {first[1]}"
    if first is None or not first[1]:
        return f"before line {last[2]} of {last[1]}"
    if first[1] == last[1]:
        if first[2] == last[2]:
            return f"between two calls at line {last[2]} of {last[1]}"
        return f"from line {first[2]} to line {last[2]} of {last[1]}"
    return f"from line {first[2]} of {first[1]} to line {last[2]} of {last[1]}"


def critical_path(graph: EventGraph) -> CriticalPath:
    """Follow the dependencies back from the end of the run."""
    pieces: list[PathPiece] = []
    row = graph.last
    waits = NONE  # the call that the messages of the path end
    while row != NONE:
        if graph.kind[row] == RESUME and graph.kind_of[graph.process[row]] != BACKGROUND:
            waits = graph.site[row]
        before = graph.binding[row]
        begin = 0.0 if before == NONE else graph.date[before]
        if graph.date[row] > begin:
            pieces += reversed(_pieces(graph, row, before, begin, waits))
        row = before
    pieces.reverse()
    return CriticalPath(graph, pieces)


def _pieces(graph: EventGraph, row: int, before: int, begin: float, waits: int) -> list[PathPiece]:
    """The pieces of the path between a row and the row that it depends on."""
    end = graph.date[row]
    what = graph.kind[row]
    if what == ARRIVE or (what == COMPLETE and before != NONE):
        return _flight(graph, row, before, begin, end, waits)
    process = graph.process[row]
    rank = graph.rank_of.get(process, NONE)
    since, site = graph.since[row], graph.site[row]

    def piece(first: float, last: float, cause: str, place: int = site) -> PathPiece:
        return PathPiece(first, last, cause, rank, NONE, 0, place, since)

    if what == RESUME:
        return [piece(begin, end, SLEEP if before == graph.before[row] else OVERHEAD)]
    if not graph.in_call(row):
        return [piece(begin, end, COMPUTE, graph.until[row])]
    if what == START_SEND:
        cost = min(end - begin, graph.x[row])
        middle = end - cost
        if middle - begin < 1e-12 * end:  # a difference of rounding
            middle = begin
        found = []
        if middle > begin:
            found.append(piece(begin, middle, _local(graph, before)))
        if end > middle:
            found.append(piece(middle, end, OVERHEAD))
        return found
    return [piece(begin, end, _local(graph, before))]


def _local(graph: EventGraph, before: int) -> str:
    """The work after a row inside a call: the end of a wait costs overhead."""
    return OVERHEAD if before != NONE and graph.kind[before] in (RESUME, START_WAIT) else COMBINE


def _flight(
    graph: EventGraph, row: int, before: int, begin: float, end: float, site: int
) -> list[PathPiece]:
    """The pieces of a message on its way to a wait at `site`."""
    order = graph.a[row]
    message = graph.message_of.get(order, order) if graph.kind[row] == COMPLETE else order
    send = graph.sends.get(message, NONE)
    source = graph.sources.get(message, NONE)
    receive = graph.receives.get(graph.receive_of.get(message, NONE), NONE)
    receiver = graph.rank_of[graph.process[receive]] if receive != NONE else NONE
    since = graph.since[send] if send != NONE else NONE
    depart = graph.departs.get(message, NONE)

    def piece(first: float, last: float, cause: str) -> PathPiece:
        return PathPiece(first, last, cause, source, receiver, message, site, since)

    if graph.kind[row] == COMPLETE or depart == NONE:
        return [piece(begin, end, LATENCY if graph.kind[before] == START_SEND else TRANSFER)]
    latency = begin + min(end - begin, graph.b[depart])
    alone = min(end, latency + graph.x[depart])
    # A difference of rounding is no contention.
    if end - alone < 1e-9 * (end - begin):
        alone = end
    pieces = [(begin, latency, LATENCY), (latency, alone, TRANSFER), (alone, end, CONTENTION)]
    return [piece(first, last, cause) for first, last, cause in pieces if last > first]
