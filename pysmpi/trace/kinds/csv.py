"""A table of events (CSV), in the columns that pandas programs such as pipit read.

`Timestamp (ns)`, `Event Type` (Enter, Leave), `Name`, `Process` (the rank) and `Thread`, then
columns of pysmpi: `Peer`, `Sent` and `Received` (bytes) in the rows where a call is left. Rows are
in the order of time, with calls of one instant nested as in the run.
"""

from __future__ import annotations

from collections.abc import Sequence

from pysmpi.trace.events import RankPlace, TracedCall
from pysmpi.trace.formats import trace_format
from pysmpi.trace.streams import Output

HEADER = "Timestamp (ns),Event Type,Name,Process,Thread,Peer,Sent,Received\n"

_ENTER, _LEAVE = 1, 0


@trace_format("csv", "a table of events")
class TableFormat:
    """Collects the calls of one timeline and writes them when they are all known."""

    def __init__(self, path: str, compressed: bool = False) -> None:
        self.output = Output(path, compressed)
        self.rows: list[tuple[float, int, int, str]] = []

    def begin(self, places: Sequence[RankPlace]) -> None:
        """Ranks need no introduction."""

    def call(self, call: TracedCall) -> None:
        """Two rows."""
        rank, thread = call.rank, call.thread
        peer = call.peers[0][1] if call.peers else ""
        order = len(self.rows)
        self.rows.append((call.start, rank, order, f"Enter,{call.name},{rank},{thread},{peer},,\n"))
        self.rows.append(
            (
                call.end,
                rank,
                order + 1,
                f"Leave,{call.name},{rank},{thread},{peer},{call.sent},{call.received}\n",
            )
        )

    def end(self, ends: Sequence[float]) -> None:
        """Write all rows, the lives of the ranks around them."""
        rows = self.rows
        last = len(rows)
        for rank, end in enumerate(ends):
            rows.append((0.0, rank, -1, f"Enter,program,{rank},0,,,\n"))
            rows.append((end, rank, last, f"Leave,program,{rank},0,,,\n"))
        rows.sort(key=lambda row: row[:3])
        write = self.output.write
        write(HEADER)
        for date, _, _, text in rows:
            write(f"{date * 1e9:.3f},{text}")

    def close(self) -> None:
        """Close the file."""
        self.output.close()
