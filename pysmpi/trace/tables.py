"""Recordings as tables in Parquet: their columns, and a reader."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from pysmpi.errors import UsageError
from pysmpi.python.extras import lacking

ROWS = 100_000  # in one group
# Columns of the kinds of records, by the positions of their elements in the recorded form.
COLUMNS: dict[str, dict[str, int]] = {
    "call": {"number": 1, "rank": 2, "thread": 3, "name": 4, "start": 5, "end": 6,
             "communicator": 7, "algorithm": 9, "sent": 10, "received": 11},
    "message": {"number": 1, "rank": 2, "peer": 3, "tag": 4, "sent": 5, "start": 6, "end": 7,
                "communicator": 13},
    "wait": {"rank": 1, "number": 2, "start": 3, "end": 4},
    "rank": {"rank": 1, "name": 2},
    "site": {"number": 1, "name": 2},
    "communicator": {"number": 1, "communicator": 2, "name": 3},
}  # fmt: skip
# Rows that follow from others.
DERIVED = ("message", "wait")
TYPES = {"kind": "string", "number": "int64", "rank": "int32", "thread": "int32",
          "peer": "int32", "name": "string", "start": "float64", "end": "float64",
          "communicator": "int64", "site": "string", "algorithm": "string", "tag": "int64",
          "sent": "int64", "received": "int64", "rest": "string"}  # fmt: skip


def arrow() -> Any:
    """pyarrow with its Parquet part; UsageError where it is not installed."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise lacking("parquet", "parquet") from None
    return pyarrow


def _errors(pyarrow: Any) -> tuple[type[Exception], ...]:
    """The errors of reading a table that is damaged, or another one."""
    return (
        pyarrow.ArrowException, OSError, KeyError, ValueError, TypeError, IndexError,
        AttributeError, RecursionError,
    )  # fmt: skip


def lines(path: str) -> Iterator[bytes]:
    """The recording of a table, in lines."""
    pyarrow = arrow()
    try:
        table = pyarrow.parquet.ParquetFile(path)
        for batch in table.iter_batches(batch_size=ROWS):
            for row in batch.to_pylist():
                if row["kind"] in DERIVED:
                    continue
                rest = json.loads(row["rest"])
                if row["kind"] != "facts":
                    for name, position in COLUMNS.get(row["kind"], {}).items():
                        rest[position] = row[name]
                yield json.dumps(rest, separators=(",", ":")).encode()
    except _errors(pyarrow) as error:
        reason = " ".join(str(error).split())[:200]
        raise UsageError(f"{path}: expected the table of a recording: {reason}") from None
