"""The table of a sweep: a row for each case, in the order of the study."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pysmpi.errors import UsageError
from pysmpi.io.output import OutputFile
from pysmpi.python.extras import lacking
from pysmpi.sweeps.plots import draw, usual
from pysmpi.sweeps.study import ENDING, FIGURES, SweepCase, SweepPlot, SweepStudy


class SweepTable:
    """The results of a sweep.

    `rows` are dictionaries by the names in `columns`: the axes, the figures of the run (times in
    simulated seconds, `compute_seconds` and `wait_seconds` as means over the ranks), the values of
    the program, its exit status and the first line of its error. Figures of a case that failed may
    be None. `wall_seconds` has the wall time of each case.
    """

    def __init__(
        self, study: SweepStudy, cases: Sequence[SweepCase], found: Mapping[str, Mapping[str, Any]]
    ) -> None:
        self.study = study
        names = dict.fromkeys(study.values)
        for case in cases:
            names.update(dict.fromkeys(found[case.key].get("values", ())))
        axes = study.columns()
        self.columns = [*axes, *FIGURES, *names, *ENDING]
        self.rows: list[dict[str, Any]] = []
        self.wall_seconds: list[float] = []
        for case in cases:
            row = found[case.key]
            values = row.get("values", {})
            cells = {}
            for name in axes:
                # An axis that the study leaves out has the value of the run.
                given = case.columns[name]
                cells[name] = row.get(name) if given is None else given
            cells.update({name: row.get(name) for name in FIGURES})
            cells.update({name: values.get(name) for name in names})
            cells.update({name: row.get(name) for name in ENDING})
            self.rows.append(cells)
            self.wall_seconds.append(row.get("wall_seconds", 0.0))

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)

    @property
    def failed(self) -> list[dict[str, Any]]:
        """The rows of cases that failed."""
        return [row for row in self.rows if row["exit_status"] != 0]

    def select(self, **values: object) -> list[dict[str, Any]]:
        """The rows with these values, such as `select(model="hybrid", ranks=8)`."""
        for name in values:
            if name not in self.columns:
                raise UsageError(
                    f"select: expected a column among {', '.join(self.columns)}, got {name!r}"
                )
        return [row for row in self.rows if all(row[one] == values[one] for one in values)]

    def write_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the table as CSV."""
        with OutputFile("table", os.fspath(path)) as target:
            with target.writing(), open(target.path, "w", newline="", encoding="utf-8") as stream:
                writer = csv.DictWriter(stream, self.columns, lineterminator="\n")
                writer.writeheader()
                writer.writerows(self.rows)
            target.keep()

    def write_parquet(self, path: str | os.PathLike[str]) -> None:
        """Write the table as Parquet. Needs pyarrow; UsageError where it is not installed."""
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError:
            raise lacking("parquet", "parquet") from None
        columns = {name: _column([row[name] for row in self.rows]) for name in self.columns}
        with OutputFile("table", os.fspath(path)) as target, target.writing():
            pyarrow.parquet.write_table(pyarrow.table(columns), target.path)
            target.keep()

    def plot(self, path: str | os.PathLike[str], x: str = "ranks", y: str = "seconds",
             lines: Sequence[str] | None = None, panels: str | None = None,
             log: Sequence[str] = ()) -> None:  # fmt: skip
        """Draw column `y` over column `x`, as `SweepPlot` says. Needs matplotlib."""
        picked = None if lines is None else tuple(lines)
        self.draw(SweepPlot(os.fspath(path), x, y, picked, panels, tuple(log)))

    def draw(self, plot: SweepPlot) -> None:
        """Draw one picture. Needs matplotlib."""
        draw(self.rows, self.columns, self.study.columns(), plot)

    def plots(self) -> list[SweepPlot]:
        """The pictures of the study, or the usual ones."""
        return self.study.plots or usual(self.rows, self.study.columns())


def _column(values: list[Any]) -> list[object]:
    """Values of one type: whole numbers, numbers, or texts."""
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {int} or kinds == {float} or kinds == {str}:
        return values
    kind = float if kinds <= {int, float} else str
    return [None if value is None else kind(value) for value in values]
