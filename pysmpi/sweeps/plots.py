"""Pictures of the table of a sweep. Needs matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pysmpi.errors import UsageError
from pysmpi.io.output import OutputFile
from pysmpi.python.extras import lacking
from pysmpi.sweeps.study import SweepPlot

FEW = 8  # lines whose names fit into the picture
_MARKERS = "osv^D*Pxd<>h"


Rows = list[dict[str, Any]]


def usual(rows: Rows, axes: Sequence[str]) -> list[SweepPlot]:
    """The pictures of a study that names none: seconds over ranks, if there are several counts."""
    if len({row["ranks"] for row in rows}) < 2:
        return []
    several = _varied(rows, axes)
    panels = "platform" if "platform" in several else None
    return [SweepPlot("seconds.svg", panels=panels, log=("x", "y"))]


def _varied(rows: Rows, axes: Sequence[str]) -> list[str]:
    """The columns of axes with several values."""
    return [name for name in axes if len({str(row[name]) for row in rows}) > 1]


def draw(table: Rows, columns: Sequence[str], axes: Sequence[str], plot: SweepPlot) -> None:
    """Write a picture of the rows of a table; `axes` are its columns of axes.

    UsageError where matplotlib is not installed, and for columns that are not there.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise lacking(plot.file, "plots") from None
    for name in (plot.x, plot.y, *(plot.lines or ()), *([plot.panels] if plot.panels else [])):
        if name not in columns:
            raise UsageError(
                f"{plot.file}: expected a column among {', '.join(columns)}, got {name!r}"
            )
    # A line has one point for each place, so all axes with several values make lines.
    others = [name for name in _varied(table, axes) if name not in (plot.x, plot.panels)]
    lines = tuple(dict.fromkeys((*(plot.lines or ()), *others)))
    rows = [row for row in table if _is_number(row[plot.y]) and row[plot.x] is not None]
    titles = list(dict.fromkeys(str(row[plot.panels]) for row in rows)) if plot.panels else [""]
    titles = titles or [""]
    figure = Figure(figsize=(max(4.2 * len(titles), 6), 4.2), layout="constrained")
    panels = figure.subplots(1, len(titles), sharey=True, squeeze=False)[0]
    words = not all(_is_number(row[plot.x]) for row in rows)
    for panel, title in zip(panels, titles):
        shown = [row for row in rows if not plot.panels or str(row[plot.panels]) == title]
        series: dict[tuple[str, ...], list[tuple[Any, float]]] = {}
        for row in shown:
            label = tuple(str(row[name]) for name in lines)
            at = str(row[plot.x]) if words else row[plot.x]
            series.setdefault(label, []).append((at, row[plot.y]))
        for number, (label, points) in enumerate(series.items()):
            if not words:
                points.sort(key=lambda point: float(point[0]))
            marker = _MARKERS[number % len(_MARKERS)]
            panel.plot(*zip(*points), marker + "-", label=", ".join(label), markersize=4)
        if "x" in plot.log and not words:
            panel.set_xscale("log", base=2)
            ticks = sorted({row[plot.x] for row in shown})
            panel.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
            panel.minorticks_off()
        if "y" in plot.log and all(row[plot.y] > 0 for row in shown):
            panel.set_yscale("log")
        panel.set(xlabel=plot.x, title=title)
        panel.grid(alpha=0.3)
        if lines and series and len(series) <= FEW:
            panel.legend(fontsize="small")
        elif lines and panel is panels[-1]:
            figure.legend(
                *panel.get_legend_handles_labels(),
                loc="outside right upper",
                fontsize="x-small",
                title=", ".join(lines),
            )
            height = max(4.2, 0.16 * len(series))
            figure.set_size_inches(figure.get_figwidth() + 2.5, height)
    panels[0].set_ylabel(plot.y)
    with OutputFile("plots", plot.file) as target, target.writing():
        figure.savefig(target.path)
        target.keep()


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float))
