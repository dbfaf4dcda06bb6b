"""Tables of a result, for pandas, polars and other libraries of data frames."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy

_SHOWN = 100  # rows in a notebook


class FigureTable(dict[str, Sequence[object]]):
    """Columns of equal length by their names: arrays of numbers, and lists of texts.

    `pandas.DataFrame(table)`, `polars.DataFrame(table)` and `pyarrow.table(table)` take it, as they
    take every dictionary of columns. Functions for tables of any library, such as
    `polars.from_dataframe`, read it through Arrow's stream.
    """

    def __init__(self, columns: Mapping[str, Sequence[object]]) -> None:
        super().__init__({name: _column(values) for name, values in columns.items()})

    def rows(self) -> Iterator[dict[str, object]]:
        """The rows, each a dictionary of its values."""
        return (dict(zip(self, row)) for row in zip(*map(_plain, self.values())))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The columns as a stream of Arrow's C interface.

        One of pyarrow and polars exports it. Raises ImportError if neither is installed.
        """
        try:
            from pyarrow import table
        except ImportError:
            try:
                from polars import DataFrame as table
            except ImportError:
                message = "a stream of Arrow needs pyarrow or polars: pip install pyarrow"
                raise ImportError(message) from None
        return table(dict(self)).__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return f"<Table: {self._length()} rows of {', '.join(self)}>"

    def _length(self) -> int:
        return len(next(iter(self.values()), ()))

    def _repr_html_(self) -> str:
        """The table as a notebook shows it."""
        from html import escape

        head = "".join(f"<th>{escape(name)}</th>" for name in self)
        body = []
        for row, _ in zip(self.rows(), range(_SHOWN)):
            cells = (f"{one:.6g}" if isinstance(one, float) else str(one) for one in row.values())
            body.append("<tr>" + "".join(f"<td>{escape(one)}</td>" for one in cells) + "</tr>")
        more = self._length() - _SHOWN
        return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>" + (
            f"<div>and {more} more rows</div>" if more > 0 else ""
        )


def of_records(records: Sequence[Mapping[str, object]], names: Sequence[str]) -> FigureTable:
    """The table of some records: a column for each name."""
    return FigureTable({name: [record[name] for record in records] for name in names})


def _column(values: Sequence[object]) -> Any:
    if values and all(isinstance(one, (int, float)) for one in values):
        return numpy.array(values)
    return ["" if one is None else str(one) for one in values]


def _plain(column: Any) -> list[object]:
    return column if isinstance(column, list) else column.tolist()
