"""The file of a recording: rank 0 gets the notes of all ranks and writes them."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Iterator
from typing import IO, Any

from pysmpi.io.output import writing_to
from pysmpi.record.clocks import RealClock
from pysmpi.record.notes import Notes

# The number of records in one piece of the notes of a rank.
PIECE = 1000
# The distance between the tags of two collective calls of a communicator, and the number of calls
# before they repeat.
TAGS, CALLS = 1 << 10, 1 << 20


def gather(
    notes: Notes, clock: RealClock, end: float, speed: float, facts: dict[str, Any], path: str
) -> None:
    """Write the recording; all ranks call it. `end` is the local date of the end."""
    comm = notes.world
    host = socket.gethostname()
    about = comm.gather((host, speed, notes.keys, notes.largest, clock.date(end)), 0)
    shared: Any = None
    if comm.rank == 0:
        members: dict[str, tuple[int, ...]] = {}
        largest: dict[str, int] = {}
        for _, _, keys, sizes, _ in about:
            members.update(keys)
            for key, size in sizes.items():
                largest[key] = max(size, largest.get(key, 0))
        order = {key: i for i, key in enumerate(sorted(members, key=_world_first))}
        shared = order, largest
    order, largest = comm.bcast(shared, 0)
    mine = _Translation(comm.rank, comm.size, order, largest, clock)
    if comm.rank:
        for piece in _pieces(mine.translated(notes)):
            comm.send(piece, 0)
        comm.send(None, 0)
        return
    places: dict[str, int] = {}
    with writing_to("--output", path), open(path, "w", encoding="utf-8") as stream:
        _write(stream, facts)
        for rank, (host, speed, *_) in enumerate(about):
            core = places[host] = places.get(host, -1) + 1
            _write(stream, ["rank", rank, host, core, speed])
        for key, i in order.items():
            name = "COMM_WORLD" if key == "world" else f"comm {2 * i + 1}"
            for context in (2 * i + 1, 2 * i + 2):
                _write(stream, ["communicator", context, 2 * i + 1, name, members[key]])
        sites: dict[str, int] = {}
        # By turns, so that a replay of all ranks keeps few records.
        left = [_pieces(mine.translated(notes))]
        left += [_received(comm, rank) for rank in range(1, comm.size)]
        while left:
            for pieces in list(left):
                try:
                    piece = next(pieces)
                except StopIteration:
                    left.remove(pieces)
                    continue
                for record in piece:
                    if record[0] == "call":
                        site = sites.get(record[8])
                        if site is None:
                            site = sites[record[8]] = len(sites)
                            _write(stream, ["site", site, record[8]])
                        record[8] = site
                    _write(stream, record)
        _write(stream, ["end", [time for *_, time in about]])


def _world_first(key: str) -> tuple[bool, str]:
    return key != "world", key


def _write(stream: IO[str], record: object) -> None:
    stream.write(json.dumps(record, separators=(",", ":")) + "\n")


def _pieces(records: Iterator[list[Any]]) -> Iterator[list[list[Any]]]:
    piece: list[list[Any]] = []
    for record in records:
        piece.append(record)
        if len(piece) == PIECE:
            yield piece
            piece = []
    yield piece


def _received(comm: Any, rank: int) -> Iterator[list[list[Any]]]:
    while True:
        piece = comm.recv(source=rank)
        if piece is None:
            return
        yield piece


class _Translation:
    """Turns the notes of a rank into records with numbers of the whole run."""

    def __init__(
        self, rank: int, size: int, order: dict[str, int], largest: dict[str, int], clock: RealClock
    ) -> None:
        self.rank = rank
        self.size = size
        self.order = order
        self.largest = largest
        self.clock = clock

    def number(self, local: Any) -> int:
        """The number of a request, or of a collective call in the background."""
        if isinstance(local, list):
            return -self.call(*local)
        return int(local) * self.size + self.rank + 1

    def call(self, key: str, index: int) -> int:
        """The number of a collective call."""
        return index * len(self.order) + self.order[key] + 1

    def translated(self, notes: Notes) -> Iterator[list[Any]]:
        """The records."""
        time = self.clock.date
        for record in notes.records():
            if record[0] == "match":
                yield ["match", self.number(record[1]), *record[2:]]
                continue
            _, number, name, start, end, key, site, sent, received, peers, operations = record
            communicator = 2 * self.order[key] + 1 if key in self.order else 0
            yield [
                "call", number * self.size + self.rank + 1, self.rank, 0, name, time(start),
                time(end), communicator, sys.intern(site), "", sent, received, peers,
                [self.operation(one) for one in operations],
            ]  # fmt: skip

    def operation(self, one: list[Any]) -> list[Any]:
        """An operation."""
        kind = one[0]
        if kind in ("send", "receive"):
            return [kind, self.number(one[1]), 2 * self.order[one[2]] + 1, *one[3:]]
        if kind == "wait":
            return [kind, [self.number(number) for number in one[1]], one[2]]
        if kind == "collective":
            _, key, index, background, arguments = one
            known = self.largest.get(f"{key}|{index}")
            if known is not None:
                arguments["count"] = known
            tag = index % CALLS * TAGS
            return [
                kind, self.call(key, index), 2 * self.order[key] + 2, tag, background, arguments
            ]  # fmt: skip
        return one
