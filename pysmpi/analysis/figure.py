"""The timeline of a run as a picture (PNG, SVG or PDF), drawn by matplotlib."""

from __future__ import annotations

from math import nan
from typing import Final

from pysmpi.analysis.why import Analysis
from pysmpi.errors import UsageError
from pysmpi.python.extras import lacking
from pysmpi.trace.events import CALL, MAIN, RETURN

SUFFIXES: Final = ("png", "svg", "pdf")
COLOURS: Final = {
    "computing": "#5b8def", "point-to-point": "#f0a63c", "collective": "#a06be0",
    "other": "#4fb79b", "waiting": "#f2d5d0",
}  # fmt: skip
PATH: Final = "#d6225a"
MOST_BARS: Final = 200_000
MOST_HOPS: Final = 200  # hops of the critical path between ranks that are drawn


def write_figure(path: str, kind: str, analysis: Analysis) -> None:
    """Draw the timeline of a run to a file of a kind of `SUFFIXES`."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
        from matplotlib.lines import Line2D
        from matplotlib.patches import Patch
    except ImportError:
        raise lacking(f"--output {path}", "plots") from None
    graph = analysis.graph
    record = graph.record
    bars = _bars(analysis)
    if sum(map(len, bars.values())) > MOST_BARS:
        raise UsageError(
            f"--output {path}: expected at most {MOST_BARS:,} bars in a picture, got more; write a "
            "page (.html)"
        )
    unit, name = next(
        (pair for pair in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")) if graph.seconds >= pair[0]),
        (1e-9, "ns"),
    )
    figure = Figure(figsize=(11, min(12.0, 1.8 + 0.28 * record.ranks)), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for what, found in bars.items():
        for rank in {bar[0] for bar in found}:
            spans = [
                (begin / unit, (end - begin) / unit) for row, begin, end in found if row == rank
            ]
            axes.broken_barh(spans, (rank - 0.4, 0.8), facecolors=COLOURS[what], linewidth=0)
    xs: list[float] = []
    ys: list[float] = []
    crowded = analysis.path.hops() > MOST_HOPS
    for piece in analysis.path.pieces:
        other = piece.receiver if piece.receiver >= 0 else piece.rank
        if crowded and other != piece.rank:
            xs.append(nan)  # the lines of messages would cover all rows
            ys.append(nan)
            continue
        xs += [piece.begin / unit, piece.end / unit]
        ys += [piece.rank, other]
    axes.plot(xs, ys, color=PATH, linewidth=1.4)
    axes.set_xlim(0.0, graph.seconds / unit)
    axes.set_ylim(record.ranks - 0.5, -0.5)
    axes.set_xlabel(f"simulated time ({name})")
    axes.set_ylabel("rank")
    axes.set_title(analysis.limit(), fontsize=10)
    handles: list[Patch | Line2D] = [
        Patch(color=colour, label=what) for what, colour in COLOURS.items()
    ]
    handles.append(Line2D([], [], color=PATH, label="critical path"))
    figure.legend(handles=handles, loc="outside lower center", ncols=6, frameon=False, fontsize=8)
    figure.savefig(path, format=kind, dpi=150)


def _bars(analysis: Analysis) -> dict[str, list[tuple[int, float, float]]]:
    """The bars of each colour: rank, begin and end (s)."""
    graph = analysis.graph
    sites = graph.record.sites
    found: dict[str, list[tuple[int, float, float]]] = {name: [] for name in COLOURS}
    begun: dict[int, float] = {}
    for rank, end in enumerate(analysis.profile.ends):
        found["computing"].append((rank, 0.0, end))
    for row, what in enumerate(graph.kind):
        process = graph.process[row]
        if what not in (CALL, RETURN) or graph.kind_of.get(process) != MAIN:
            continue
        if what == CALL:
            begun[process] = graph.date[row]
        elif process in begun:
            kind = sites[graph.a[row]].kind
            bar = graph.rank_of[process], begun.pop(process), graph.date[row]
            found[kind if kind in found else "other"].append(bar)
    for wait in graph.waits:
        if graph.kind_of.get(wait.process) == MAIN and wait.site >= 0 and wait.end > wait.begin:
            found["waiting"].append((graph.rank_of[wait.process], wait.begin, wait.end))
    return found
