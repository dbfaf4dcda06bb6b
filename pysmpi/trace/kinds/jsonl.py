"""The recorded form: one record a line, as JSON arrays that a program in any language can read.

The first line is an object with facts of the run. `docs/reference/recording.md` describes
the records. Lines are written as records end, so a recording needs no memory. After any end of the
run, all lines in the file are whole, except perhaps the last.
"""

from __future__ import annotations

import binascii
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pysmpi.trace.events import (
    EventRows,
    MessageRows,
    RankPlace,
    TracedCall,
    TracedCommunicator,
    TracedMatch,
    TracedRoute,
)
from pysmpi.trace.formats import trace_format
from pysmpi.trace.json_text import json_text
from pysmpi.trace.model import NAME, VERSION
from pysmpi.trace.streams import Output

# Unsigned types of the numbers of columns, little-endian, with the end of their range.
_UNSIGNED = (("u1", 1 << 8), ("u2", 1 << 16), ("u4", 1 << 32))


@trace_format("jsonl", "the recorded form, which loses nothing", streams=True)
class LinesFormat:
    """Writes a recording."""

    def __init__(self, path: str, compressed: bool = False) -> None:
        self.output = Output(path, compressed)
        self._sites: dict[str, int] = {}
        self._described = False

    def describe(self, facts: Mapping[str, object]) -> None:
        """The first line."""
        self._described = True
        self._write({**facts, "format": NAME, "version": VERSION})

    def _write(self, record: object) -> None:
        self.output.write(json_text(record) + "\n")

    def _write_columns(self, kind: str, columns: Iterable[str]) -> None:
        # Base 64 has no character that JSON would write differently.
        self.output.write(f'["{kind}","' + '","'.join(columns) + '"]\n')

    def begin(self, places: Sequence[RankPlace]) -> None:
        """A line for each rank."""
        if not self._described:
            self.describe({})
        for place in places:
            self._write(["rank", *place])

    def communicator(self, communicator: TracedCommunicator) -> None:
        """A line."""
        self._write(["communicator", *(communicator if communicator.sources else communicator[:4])])

    def call(self, call: TracedCall) -> None:
        """A line, and one for a new line of the program."""
        site = self._sites.get(call.site)
        if site is None:
            site = self._sites[call.site] = len(self._sites)
            self._write(["site", site, call.site])
        record: list[Any] = [
            "call", call.number, call.rank, call.thread, call.name, call.start, call.end,
            call.communicator, site, call.algorithm, call.sent, call.received, call.peers,
            call.operations,
        ]  # fmt: skip
        if call.details:
            record.append(call.details)
        self._write(record)

    def between(self, call: TracedCall) -> None:
        """A call without a name."""
        self.call(call)

    def add_route(self, route: TracedRoute) -> None:
        """A line."""
        self._write(["route", *(route if route.shares else route[:2])])

    def add_messages(self, rows: MessageRows) -> None:
        """A line for some messages."""
        self._write_columns("messages", map(_packed, rows))

    def add_events(self, rows: EventRows) -> None:
        """A line for some events."""
        self._write_columns("events", map(_packed, rows))

    def match(self, match: TracedMatch) -> None:
        """A line."""
        self._write(["match", *match])

    def end(self, ends: Sequence[float]) -> None:
        """The last line."""
        self._write(["end", list(ends)])

    def close(self) -> None:
        """Close the file."""
        self.output.close()


def _packed(column: NDArray[Any]) -> str:
    """A column as text: the type of its numbers, and their bytes in base 64."""
    kind = "f8"
    if column.dtype.kind != "f":
        # As unsigned numbers, negative ones are the largest.
        most = np.maximum.reduce(column.view(np.uint64), initial=0)
        kind = next((name for name, end in _UNSIGNED if most < end), "i8")
    numbers = column.astype(f"<{kind}", copy=False)
    return f"{kind}:{binascii.b2a_base64(numbers.data, newline=False).decode('ascii')}"
