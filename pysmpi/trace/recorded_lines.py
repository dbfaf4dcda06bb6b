"""The lines of a recording: whole ones, its first with the facts of the run, and its calls.

Replays read calls and no columns of numbers, so this module does without numpy, which would take a
third of the start of a replay.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from typing import Any

from pysmpi.errors import UsageError
from pysmpi.io.reading import LONGEST_LINE, open_lines, parse_json, too_long
from pysmpi.trace.events import RankPlace, TracedCall, TracedCommunicator, TracedMatch
from pysmpi.trace.model import NAME, READABLE
from pysmpi.trace.tables import lines as lines_of_table

_BLOCK = 1 << 18  # bytes read at once
NO_RECORDING = (
    "expected a file of pysmpi run --trace, pysmpi.record or pysmpi replay --trace (.jsonl), got "
    "no recording; time-independent traces have no dates until they are replayed"
)


_RANKS = 1 << 31  # above the number of any rank or thread
_WHOLE = 1 << 62
_LATEST = 1e100  # seconds
_SHOWN = 160  # characters of a wrong record


class Wrong(ValueError):
    """A record that is not valid."""


def whole_lines(path: str) -> Iterator[bytes]:
    """The whole lines of a file, unpacked if it is compressed; an incomplete last one is left out.

    Those of a table in Parquet are the same. Raises UsageError if the file cannot be read, and for
    a line that is too long.
    """
    number = 1
    with open_lines(path) as stream:
        magic = stream.read(4)
        if magic == b"PAR1":
            yield from lines_of_table(path)
            return
        stream.seek(0)
        unpack = zlib.decompressobj(31) if magic[:2] == b"\x1f\x8b" else None
        packed = b""
        begun: list[bytes] = []  # the pieces of a line whose end is still to be read
        size = 0
        while True:
            packed = packed or stream.read(_BLOCK)
            if not packed:
                return
            if unpack is None:
                data, packed = packed, b""
            else:
                if unpack.eof:
                    unpack = zlib.decompressobj(31)  # of the next file in this one
                try:
                    data = unpack.decompress(packed, _BLOCK)
                except zlib.error:
                    return
                packed = unpack.unused_data if unpack.eof else unpack.unconsumed_tail
            first, *pieces = data.split(b"\n")
            begun.append(first)
            size += len(first)
            if size > LONGEST_LINE:
                raise too_long(path, number)
            if pieces:
                pieces.insert(0, b"".join(begun))
                begun = [pieces.pop()]
                size = len(begun[0])
                number += len(pieces)
                yield from pieces


def is_recording(path: str | os.PathLike[str]) -> bool:
    """Whether a file begins like a recording. Raises UsageError if it cannot be read."""
    name = os.fspath(path)
    with open_lines(name) as stream:
        if stream.read(1) not in (b"{", b"\x1f", b"P"):  # of JSON, gzip and Parquet
            return False
    first = next(whole_lines(name), b"")
    return first.startswith(b"{") and NAME.encode() in first[:200]


def read_facts(path: str) -> dict[str, object]:
    """The facts of a recording. Raises UsageError for any other file."""
    try:
        first = next(whole_lines(path), None)
        if first is None:
            raise Wrong("expected a recording of pysmpi, got no whole line")
        return facts_in(parse_json(first))
    except UsageError:
        raise
    except ValueError as error:
        raise UsageError(f"{path}, line 1: {error}") from None


def facts_in(record: object) -> dict[str, object]:
    """The facts that the first record holds."""
    if not isinstance(record, dict) or record.get("format") != NAME:
        raise Wrong(NO_RECORDING)
    if record.get("version") not in READABLE:
        versions = " or ".join(map(str, READABLE))
        raise Wrong(f"expected version {versions}, got {record.get('version')!r}")
    return record


def check_dates(dates: object) -> None:
    """Refuse dates that are no numbers of seconds."""
    if not isinstance(dates, (list, tuple)) or not all(
        type(date) in (float, int) and -_LATEST < date < _LATEST for date in dates
    ):
        raise Wrong(f"expected dates in seconds, got {dates!r}"[:_SHOWN])


def _whole(*values: object) -> bool:
    return all(type(value) is int and -_WHOLE < value < _WHOLE for value in values)


def made_place(record: list[Any]) -> RankPlace:
    """The place of a rank of a record."""
    place = RankPlace(*record[1:])
    check_dates((place.speed,))
    if not (_whole(place.rank, place.core) and 0 <= place.rank < _RANKS):
        raise Wrong(f"expected the number of a rank and of a core, got {record[1:]!r}"[:_SHOWN])
    if type(place.host) is not str:
        raise Wrong(f"expected the name of a host, got {place.host!r}"[:_SHOWN])
    return place


def made_communicator(record: list[Any]) -> TracedCommunicator:
    """The communicator of a record."""
    _, number, of, name, *lists = record
    if not (_whole(number, of) and type(name) is str and 1 <= len(lists) <= 2):
        raise Wrong(f"found an impossible communicator: {record[1:4]!r}"[:_SHOWN])
    for members in lists:
        if not isinstance(members, list) or not _whole(*members):
            raise Wrong(f"expected ranks of the run, got members {members!r}"[:_SHOWN])
    return TracedCommunicator(number, of, name, *map(tuple, lists))


def made_match(record: list[Any]) -> TracedMatch:
    """The match of a record."""
    match = TracedMatch(*record[1:])
    if not _whole(*match):
        raise Wrong(f"expected whole numbers, got {record[1:]!r}"[:_SHOWN])
    return match


def learn_site(record: list[Any], sites: dict[int, str]) -> None:
    """The number of a line of the program."""
    _, number, name = record
    if not _whole(number) or type(name) is not str:
        raise Wrong(f"expected a number and a line of the program, got {record[1:]!r}"[:_SHOWN])
    sites[number] = name


def made_call(record: list[Any], sites: dict[int, str]) -> TracedCall:
    """The call of a record."""
    (_, number, rank, thread, name, start, end, communicator, site, algorithm, sent, received,
     peers, operations, *details) = record  # fmt: skip
    if not (
        type(number) is type(rank) is type(thread) is type(communicator) is type(sent) is int
        and type(received) is int
        and type(name) is type(algorithm) is str
        and 0 <= rank < _RANKS and 0 <= thread < _RANKS
        and -_WHOLE < min(number, communicator, sent, received)
        and max(number, communicator, sent, received) < _WHOLE
    ):  # fmt: skip
        raise Wrong(f"found an impossible call: {record[1:12]!r}"[:_SHOWN])
    check_dates((start, end))
    call = TracedCall(name, rank, thread, sites[site])
    call.number = number
    call.start, call.end = start, end
    call.communicator, call.algorithm = communicator, algorithm
    call.sent, call.received = sent, received
    call.peers = tuple((peer, value) for peer, value in peers)
    call.operations = [tuple(one) for one in operations]
    if details:
        call.details = details[0]
    return call
