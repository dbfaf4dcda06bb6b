"""The lines of a recording: whole ones, its first with the facts of the run, and its calls.

Replays read calls and no columns of numbers, so this module does without numpy, which would take a
third of the start of a replay.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator
from typing import Any

from pysmpi.errors import UsageError
from pysmpi.trace.events import TracedCall
from pysmpi.trace.model import NAME, READABLE
from pysmpi.trace.tables import lines as lines_of_table

_BLOCK = 1 << 18  # bytes read at once
NO_RECORDING = (
    "expected a file of pysmpi run --trace, pysmpi.record or pysmpi replay --trace (.jsonl), got "
    "no recording; time-independent traces have no dates until they are replayed"
)


class Wrong(ValueError):
    """A record that is not valid."""


def whole_lines(path: str) -> Iterator[bytes]:
    """The whole lines of a file, unpacked if it is compressed; an incomplete last one is left out.

    Those of a table in Parquet are the same. Raises OSError if the file cannot be read.
    """
    with open(path, "rb") as stream:
        magic = stream.read(4)
        if magic == b"PAR1":
            yield from lines_of_table(path)
            return
        packed = magic[:2] == b"\x1f\x8b"
        stream.seek(0)
        unpack = zlib.decompressobj(31) if packed else None
        rest = b""
        while True:
            data = stream.read(_BLOCK)
            if not data:
                return
            if unpack is not None:
                try:
                    data = unpack.decompress(data)
                except zlib.error:
                    return
            pieces = (rest + data).split(b"\n")
            rest = pieces.pop()
            yield from pieces


def is_recording(path: str | os.PathLike[str]) -> bool:
    """Whether a file begins like a recording; False for a file that cannot be read."""
    try:
        first = next(whole_lines(os.fspath(path)), b"")
    except OSError:
        return False
    return first.startswith(b"{") and NAME.encode() in first[:200]


def read_facts(path: str) -> dict[str, object]:
    """The facts of a recording. Raises UsageError for any other file."""
    try:
        first = next(whole_lines(path), None)
        if first is None:
            raise Wrong("expected a recording of pysmpi, got no whole line")
        return facts_in(json.loads(first))
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
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


def made_call(record: list[Any], sites: dict[int, str]) -> TracedCall:
    """The call of a record."""
    (_, number, rank, thread, name, start, end, communicator, site, algorithm, sent, received,
     peers, operations, *details) = record  # fmt: skip
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
