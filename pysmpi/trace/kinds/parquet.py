"""Tables in Parquet, for pandas, polars, DuckDB and Arrow: needs pyarrow (`pysmpi[parquet]`).

One row for each record, in the order of the recording, and one for each message and each wait.
`kind` is the kind of the row; columns that it does not have are null. Fields without a column of
their own, such as the operations of calls, are JSON in `rest`: nothing is lost, and every command
that reads a recording reads the file.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Sequence
from typing import Any

from pysmpi.trace.events import EventRows, MessageRows, TracedCall, TracedMessage, TracedWait
from pysmpi.trace.formats import trace_format
from pysmpi.trace.kinds.jsonl import LinesFormat
from pysmpi.trace.messages import Derivation
from pysmpi.trace.tables import COLUMNS, ROWS, TYPES, arrow


@trace_format("parquet", "tables of the recorded form, with pyarrow")
class ParquetFormat(LinesFormat):
    """Writes a recording as a table, some rows at a time."""

    def __init__(self, path: str, compressed: bool = False) -> None:
        self.arrow = arrow()
        self._sites = {}
        self._site_names: list[str] = []
        self._described = False
        self._rows: dict[str, list[Any]] = {name: [] for name in TYPES}
        self._schema = self.arrow.schema(
            [(name, getattr(self.arrow, kind)()) for name, kind in TYPES.items()]
        )
        self._derivation = Derivation(self._transfer, self._wait)
        self._writer = self.arrow.parquet.ParquetWriter(path, self._schema, compression="zstd")

    def _write(self, record: Any) -> None:
        rows = self._rows
        row: dict[str, Any] = dict.fromkeys(TYPES)
        if isinstance(record, dict):
            row["kind"], row["rest"] = "facts", json.dumps(record)
        else:
            kind = row["kind"] = record[0]
            rest = list(record)
            for name, position in COLUMNS.get(kind, {}).items():
                row[name], rest[position] = record[position], None
            if kind == "call":
                row["site"] = self._site_names[record[8]]
            row["rest"] = json.dumps(rest, separators=(",", ":"))
        for name, value in row.items():
            rows[name].append(value)
        if len(rows["kind"]) >= ROWS:
            self._flush()

    def _write_columns(self, kind: str, columns: Iterable[str]) -> None:
        self._write([kind, *columns])

    def call(self, call: TracedCall) -> None:
        """A row."""
        known = self._sites.get(call.site)
        if known is None:
            self._site_names.append(call.site)
        super().call(call)

    def add_messages(self, rows: MessageRows) -> None:
        """A row for the record; those of the messages follow when they have arrived."""
        super().add_messages(rows)
        self._derivation.add_messages(rows)

    def add_events(self, rows: EventRows) -> None:
        """A row for the record, and those of messages and waits that end with it."""
        super().add_events(rows)
        self._derivation.add_events(rows)

    def end(self, ends: Sequence[float]) -> None:
        """The last rows."""
        self._derivation.end()
        super().end(ends)

    def _transfer(self, message: TracedMessage) -> None:
        self._write(["message", *message])

    def _wait(self, wait: TracedWait) -> None:
        self._write(["wait", *wait])

    def _flush(self) -> None:
        if self._rows["kind"]:
            rows, self._rows = self._rows, {name: [] for name in TYPES}
            self._writer.write_table(self.arrow.table(rows, schema=self._schema))

    def close(self) -> None:
        """Write the remaining rows and close the file; a second call does nothing."""
        if self._writer is None:
            return
        try:
            self._flush()
        except BaseException:
            # What is written cannot be completed, and closing would only fail again.
            writer, self._writer = self._writer, None
            with contextlib.suppress(Exception):
                writer.close()
            raise
        writer, self._writer = self._writer, None
        writer.close()
