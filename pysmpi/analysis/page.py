"""The page of a run: one HTML file that shows it, and needs nothing else.

The figures of the run are JSON; its calls, waits, messages and critical path are columns of
compressed numbers. Times are whole numbers of `TICKS` a makespan.
"""

from __future__ import annotations

import json
import linecache
import os
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Final

import numpy as np

from pysmpi.analysis.graph import NONE, EventGraph
from pysmpi.analysis.path import CAUSES, COMPUTE, span
from pysmpi.analysis.scene import column, intervals, scene_of
from pysmpi.analysis.usage import link_usage
from pysmpi.analysis.why import Analysis
from pysmpi.time.figures import EnergyFigures
from pysmpi.trace.activity import RunActivity, TracedSite

BINS: Final = 400  # of the use of links over time
MOST_LINKS: Final = 12
MOST_BLOCKS: Final = 256  # rows of the communication matrix
MOST_LINES: Final = 4  # of source text at a place of the program
# The scripts of the page, and of an animation alone, in the order of their definitions.
SCRIPTS: Final = ("data", "timeline", "tip", "animation", "charts", "panels")
ALONE: Final = ("data", "tip", "animation", "alone")

Run = tuple[str, Analysis]


def write_page(
    path: str,
    runs: Sequence[Run],
    recordings: Sequence[str] = (),
    energy: EnergyFigures | None = None,
) -> None:
    """Write the page of one run, or of two to compare: their names and analyses.

    With the files of their recordings, the page shows no source lines of files that are newer.
    `energy` is that of the first run.
    """
    with open(path, "w", encoding="utf-8") as stream:
        stream.write(page(runs, recordings, energy))


def page(
    runs: Sequence[Run], recordings: Sequence[str] = (), energy: EnergyFigures | None = None
) -> str:
    """The text of the page."""
    if not recordings:
        data = [page_data(*run) for run in runs]
        if energy is not None:
            data[0]["energy"] = energy
        return assemble(data)
    pairs = zip(runs, map(os.path.getmtime, recordings))
    return assemble([page_data(*run, recorded) for run, recorded in pairs])


def assemble(data: Sequence[Mapping[str, object]], alone: dict[str, object] | None = None) -> str:
    """The page of runs, from the data of each; with options, their animation alone."""
    assets = files("pysmpi.analysis") / "assets"
    text = (assets / ("page.html" if alone is None else "alone.html")).read_text("utf-8")
    scripts = SCRIPTS if alone is None else ALONE
    script = "\n".join((assets / f"{name}.js").read_text("utf-8") for name in scripts)
    title = " and ".join(str(run["name"]) for run in data)
    for mark, part in (
        ("/*STYLE*/", (assets / "page.css").read_text("utf-8")),
        ("/*SCRIPT*/", f'"use strict";\n(() => {{\n{script}\n}})();'),
        ("TITLE", _escaped(title)),
        ("OPTIONS", _embedded(alone)),
        ("DATA", _embedded(list(data))),
    ):
        text = text.replace(f"<!--{mark}-->" if mark[0] != "/" else mark, part)
    return text


def _embedded(data: object) -> str:
    """Data as JSON; no text of a program can end the script."""
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def page_data(name: str, analysis: Analysis, recorded: float | None = None) -> dict[str, object]:
    """The data of a run, as the script of the page reads it.

    `recorded` is the date of its recording (s since 1970), None for a run of this process.
    """
    graph = analysis.graph
    return {
        **scene_of(name, graph).data,
        "causes": list(CAUSES),
        "analysis": analysis.report(),
        **_path(analysis, graph.seconds),
        "sources": sources(analysis, recorded),
        "links": _links(graph, graph.seconds),
        "matrix": _matrix(graph.record),
    }


def _path(analysis: Analysis, seconds: float) -> dict[str, object]:
    """The pieces of the critical path, and the names of their places."""
    path = analysis.path
    numbers = {cause: number for number, cause in enumerate(CAUSES)}
    places: dict[str, int] = {}
    rows = [
        (
            one.begin, one.end, one.rank, one.receiver, numbers[one.cause],
            places.setdefault(path.place(one), len(places)),
        )
        for one in path.pieces
    ]  # fmt: skip
    table = np.array(rows, np.float64).reshape(-1, 6)
    return {
        "places": list(places),
        "path": {
            **intervals(table[:, 0], table[:, 1], seconds),
            "rank": column(table[:, 2], "i4", steps=True),
            "receiver": column(table[:, 3], "i4", steps=True),
            "cause": column(table[:, 4], "u1"),
            "place": column(table[:, 5], "u4", steps=True),
        },
    }


def sources(analysis: Analysis, recorded: float | None) -> dict[str, list[str]]:
    """The source lines of the places that the page names, where the program's files are there.

    Files that are newer than the recording are left out: their lines may be others.
    """
    record = analysis.graph.record
    found = {
        record.site(number): _lines(site, site, recorded)
        for number, site in enumerate(record.sites)
    }
    between = {
        (piece.since, piece.site) for piece in analysis.path.pieces if piece.cause == COMPUTE
    }
    for since, until in sorted(between | analysis.profile.spans):
        first, last = (None if one == NONE else record.sites[one] for one in (since, until))
        lines = _lines(first or last, last or first, recorded)
        found.setdefault(span(record.sites, since, until), lines)
    return {place: lines for place, lines in found.items() if lines}


def _lines(first: TracedSite | None, last: TracedSite | None, recorded: float | None) -> list[str]:
    """The lines from a call to the next one, in its file; loops lead back."""
    if first is None or last is None or not (first.file and last.file):
        return []
    if recorded is not None and not _older(last.file, recorded):
        return []
    numbers = [first.line, last.line] if first.file == last.file else [last.line]
    low, high = min(numbers), max(numbers)
    chosen = list(range(low, high + 1))
    if len(chosen) > MOST_LINES:
        chosen = [low, *range(high - MOST_LINES + 3, high + 1)]
    texts = [linecache.getline(last.file, number).rstrip() for number in chosen]
    margin = min((len(text) - len(text.lstrip()) for text in texts if text), default=0)
    shown = [text[margin:] for text in texts]
    if len(chosen) < high - low + 1:
        shown.insert(1, "...")
    return [text for text in shown if text]


def _older(file: str, date: float) -> bool:
    try:
        return os.path.getmtime(file) <= date
    except OSError:
        return False


def _links(graph: EventGraph, seconds: float) -> list[dict[str, object]]:
    """The use of the busiest links over time: the share of their bandwidth in each bin."""
    if seconds <= 0.0:
        return []
    found = []
    for used in link_usage(graph, BINS):
        amount = float(used.amounts.sum())
        found.append((amount / used.capacity, used.name, used.shares(seconds), amount))
    found.sort(key=lambda one: (-one[0], one[1]))
    return [
        {"name": name, "bytes": nbytes, "mean": busy / seconds, "use": column(use, "f4")}
        for busy, name, use, nbytes in found[:MOST_LINKS]
    ]


def _matrix(record: RunActivity) -> dict[str, object]:
    """Bytes and messages from (rows) and to (columns) blocks of ranks."""
    ranks = max(record.ranks, 1)
    block = -(-ranks // MOST_BLOCKS)
    size = -(-ranks // block)
    nbytes, count = np.zeros((size, size)), np.zeros((size, size))
    source, destination = record.messages[:, 1] // block, record.messages[:, 2] // block
    np.add.at(nbytes, (source, destination), record.messages[:, 4])
    np.add.at(count, (source, destination), 1)
    return {
        "block": block,
        "size": size,
        "columns": {
            "bytes": column(nbytes.ravel(), "f4"),
            "count": column(count.ravel(), "u4"),
        },
    }
