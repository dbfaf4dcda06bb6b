"""The page of a run: one HTML file that shows it, and needs nothing else.

The figures of the run are JSON; its calls, waits, messages and critical path are columns of numbers
(little-endian, base64). Times are whole numbers of `TICKS` a makespan.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from importlib.resources import files
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pysmpi.analysis.graph import NONE, EventGraph
from pysmpi.analysis.path import CAUSES
from pysmpi.analysis.why import Analysis
from pysmpi.trace.activity import RunActivity
from pysmpi.trace.events import CALL, MAIN, RETURN

TICKS: Final = 4_000_000_000
BINS: Final = 400  # of the use of links over time
MOST_LINKS: Final = 12
MOST_BLOCKS: Final = 256  # rows of the communication matrix

KINDS: Final = ("point-to-point", "collective", "other")

Run = tuple[str, Analysis]


def write_page(path: str, runs: Sequence[Run]) -> None:
    """Write the page of one run, or of two to compare: their names and analyses."""
    with open(path, "w", encoding="utf-8") as stream:
        stream.write(page(runs))


def page(runs: Sequence[Run]) -> str:
    """The text of the page."""
    return assemble([page_data(name, analysis) for name, analysis in runs])


def assemble(data: Sequence[dict[str, Any]]) -> str:
    """The page of runs, from the data of each."""
    assets = files("pysmpi.analysis") / "assets"
    text = (assets / "page.html").read_text("utf-8")
    # No text of a program can end the script.
    embedded = json.dumps(list(data), separators=(",", ":")).replace("<", "\\u003c")
    title = " and ".join(run["name"] for run in data)
    for mark, part in (
        ("/*STYLE*/", (assets / "page.css").read_text("utf-8")),
        ("/*SCRIPT*/", (assets / "page.js").read_text("utf-8")),
        ("TITLE", _escaped(title)),
        ("DATA", embedded),
    ):
        text = text.replace(f"<!--{mark}-->" if mark[0] != "/" else mark, part)
    return text


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def column(values: NDArray[Any], kind: str) -> dict[str, str]:
    """A column for the script: its type and its bytes."""
    numbers = np.ascontiguousarray(values.astype(np.dtype(kind).newbyteorder("<")))
    return {"type": kind, "data": base64.b64encode(numbers.tobytes()).decode("ascii")}


def _ticks(dates: NDArray[np.float64], seconds: float) -> NDArray[np.float64]:
    scale = TICKS / seconds if seconds > 0.0 else 0.0
    return np.clip(np.rint(dates * scale), 0, 2**32 - 1)


def page_data(name: str, analysis: Analysis) -> dict[str, object]:
    """The data of a run, as the script of the page reads it."""
    graph = analysis.graph
    record = graph.record
    seconds = graph.seconds
    return {
        "name": name,
        "seconds": seconds,
        "ticks": TICKS,
        "measured": record.measured,
        "hosts": record.hosts,
        "sites": [record.site(number) for number in range(len(record.sites))],
        "kinds": [
            KINDS.index(site.kind) for site in record.sites
        ],
        "causes": list(CAUSES),
        "analysis": analysis.report(),
        "machine": record.machine(),
        "calls": _calls(graph, seconds),
        "waits": _waits(graph, seconds),
        "messages": _messages(graph, seconds),
        "path": _path(analysis, seconds),
        "links": _links(graph, seconds),
        "matrix": _matrix(record),
        "ends": analysis.profile.ends,
    }  # fmt: skip


def _calls(graph: EventGraph, seconds: float) -> dict[str, object]:
    """The calls of main threads, by rank and time."""
    kind, process = np.array(graph.kind), np.array(graph.process)
    main = np.zeros(max(graph.rank_of, default=0) + 1, bool)
    rank_of = np.zeros(len(main), np.int64)
    for number, rank in graph.rank_of.items():
        main[number] = graph.kind_of[number] == MAIN
        rank_of[number] = rank
    rows = np.flatnonzero(((kind == CALL) | (kind == RETURN)) & main[process])
    # Calls of a process do not nest: those that MPI makes inside a call belong to it.
    rows = rows[np.argsort(process[rows], kind="stable")]
    begins = np.flatnonzero(
        (kind[rows][:-1] == CALL)
        & (kind[rows][1:] == RETURN)
        & (process[rows][:-1] == process[rows][1:])
    )
    date = np.array(graph.date)
    first, last = rows[begins], rows[begins + 1]
    order = np.lexsort((date[first], rank_of[process[first]]))
    first, last = first[order], last[order]
    return {
        "rank": column(rank_of[process[first]], "u4"),
        "begin": column(_ticks(date[first], seconds), "u4"),
        "end": column(_ticks(date[last], seconds), "u4"),
        "site": column(np.array(graph.a, np.int64)[first], "u4"),
    }


def _waits(graph: EventGraph, seconds: float) -> dict[str, object]:
    found = [
        (graph.rank_of[wait.process], wait.begin, wait.end, wait.rank)
        for wait in graph.waits
        if wait.end > wait.begin and graph.kind_of[wait.process] == MAIN and wait.site != NONE
    ]
    table = np.array(sorted(found), np.float64).reshape(-1, 4)
    return {
        "rank": column(table[:, 0], "u4"),
        "begin": column(_ticks(table[:, 1], seconds), "u4"),
        "end": column(_ticks(table[:, 2], seconds), "u4"),
        "for": column(table[:, 3], "i4"),
    }


def _messages(graph: EventGraph, seconds: float) -> dict[str, object]:
    table = graph.record.messages
    date = graph.date
    rows = [
        (date[graph.sends[number]], date[graph.arrives[number]], source, destination, nbytes)
        for number, source, destination, nbytes in table[:, [0, 1, 2, 4]].tolist()
        if number in graph.arrives and number in graph.sends
    ]
    found = np.array(rows, np.float64).reshape(-1, 5)
    found = found[np.argsort(found[:, 0], kind="stable")]
    return {
        "begin": column(_ticks(found[:, 0], seconds), "u4"),
        "end": column(_ticks(found[:, 1], seconds), "u4"),
        "source": column(found[:, 2], "u4"),
        "destination": column(found[:, 3], "u4"),
        "bytes": column(found[:, 4], "f4"),
    }


def _path(analysis: Analysis, seconds: float) -> dict[str, object]:
    pieces = analysis.path.pieces
    numbers = {cause: number for number, cause in enumerate(CAUSES)}
    table = np.array(
        [(one.begin, one.end, one.rank, one.receiver, numbers[one.cause]) for one in pieces],
        np.float64,
    ).reshape(-1, 5)
    return {
        "begin": column(_ticks(table[:, 0], seconds), "u4"),
        "end": column(_ticks(table[:, 1], seconds), "u4"),
        "rank": column(table[:, 2], "i4"),
        "receiver": column(table[:, 3], "i4"),
        "cause": column(table[:, 4], "u1"),
    }


def _links(graph: EventGraph, seconds: float) -> list[dict[str, object]]:
    """The use of the busiest links over time: the share of their bandwidth in each bin."""
    record = graph.record
    if seconds <= 0.0:
        return []
    crossing: dict[int, list[tuple[float, float, float]]] = {}
    for number, nbytes, route in record.messages[:, [0, 4, 5]].tolist():
        depart, arrive = graph.departs.get(number), graph.arrives.get(number)
        if depart is None or arrive is None or not nbytes:
            continue
        end = graph.date[arrive]
        begin = min(end, graph.date[depart] + graph.b[depart])
        for link in record.routes[route]:
            crossing.setdefault(link, []).append((begin, end, float(nbytes)))
    edges = np.linspace(0.0, seconds, BINS + 1)
    found = []
    for link, flows in crossing.items():
        name, capacity = record.links[link]
        table = np.array(flows)
        carried = np.diff(_carried(table, edges))
        use = carried / (capacity * seconds / BINS)
        found.append((float(table[:, 2].sum()) / capacity, name, use, float(table[:, 2].sum())))
    found.sort(key=lambda one: (-one[0], one[1]))
    return [
        {"name": name, "bytes": nbytes, "mean": busy / seconds, "use": column(use, "f4")}
        for busy, name, use, nbytes in found[:MOST_LINKS]
    ]


def _carried(flows: NDArray[np.float64], edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """The bytes that flows (begin, end, bytes) have carried up to each date."""
    total = np.zeros(len(edges))
    lasted = flows[:, 1] - flows[:, 0]
    short = lasted <= 0.0
    rate = np.where(short, 0.0, flows[:, 2] / np.where(short, 1.0, lasted))
    for column, sign in ((0, 1.0), (1, -1.0)):
        order = np.argsort(flows[:, column])
        dates, rates = flows[order, column], rate[order]
        sums = np.concatenate(([0.0], np.cumsum(rates)))
        moments = np.concatenate(([0.0], np.cumsum(rates * dates)))
        before = np.searchsorted(dates, edges, "right")
        total += sign * (sums[before] * edges - moments[before])
    at_once = np.sort(flows[short, 1])
    sizes = np.concatenate(([0.0], np.cumsum(flows[short, 2][np.argsort(flows[short, 1])])))
    total += sizes[np.searchsorted(at_once, edges, "right")]
    return total


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
        "bytes": column(nbytes.ravel(), "f4"),
        "count": column(count.ravel(), "u4"),
    }
