"""The page of a run: one HTML file that shows it, and needs nothing else.

The figures of the run are JSON; its calls, waits, messages and critical path are columns of
compressed numbers. Times are whole numbers of `TICKS` a makespan.
"""

from __future__ import annotations

import json
import linecache
import os
import zlib
from collections.abc import Sequence
from importlib.resources import files
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pysmpi.analysis.graph import NONE, EventGraph
from pysmpi.analysis.path import CAUSES, COMPUTE, span
from pysmpi.analysis.usage import link_usage
from pysmpi.analysis.why import Analysis
from pysmpi.trace.activity import RunActivity, TracedSite
from pysmpi.trace.events import CALL, MAIN, RETURN

TICKS: Final = 4_000_000_000
BINS: Final = 400  # of the use of links over time
MOST_LINKS: Final = 12
MOST_BLOCKS: Final = 256  # rows of the communication matrix
MOST_LINES: Final = 4  # of source text at a place of the program
# Digits of base 85 that JSON and HTML leave as they are.
DIGITS: Final = (
    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%()*+-;=?@^_`{|}~,.:"
)
SCRIPTS: Final = ("data", "timeline", "charts", "panels")  # in the order of their definitions

KINDS: Final = ("point-to-point", "collective", "other")

Run = tuple[str, Analysis]


def write_page(path: str, runs: Sequence[Run], recordings: Sequence[str] = ()) -> None:
    """Write the page of one run, or of two to compare: their names and analyses.

    With the files of their recordings, the page shows no source lines of files that are newer.
    """
    with open(path, "w", encoding="utf-8") as stream:
        stream.write(page(runs, recordings))


def page(runs: Sequence[Run], recordings: Sequence[str] = ()) -> str:
    """The text of the page."""
    if not recordings:
        return assemble([page_data(*run) for run in runs])
    pairs = zip(runs, map(os.path.getmtime, recordings))
    return assemble([page_data(*run, recorded) for run, recorded in pairs])


def assemble(data: Sequence[dict[str, Any]]) -> str:
    """The page of runs, from the data of each."""
    assets = files("pysmpi.analysis") / "assets"
    text = (assets / "page.html").read_text("utf-8")
    # No text of a program can end the script.
    embedded = json.dumps(list(data), separators=(",", ":")).replace("<", "\\u003c")
    script = "\n".join((assets / f"{name}.js").read_text("utf-8") for name in SCRIPTS)
    title = " and ".join(run["name"] for run in data)
    for mark, part in (
        ("/*STYLE*/", (assets / "page.css").read_text("utf-8")),
        ("/*SCRIPT*/", f'"use strict";\n(() => {{\n{script}\n}})();'),
        ("TITLE", _escaped(title)),
        ("DATA", embedded),
    ):
        text = text.replace(f"<!--{mark}-->" if mark[0] != "/" else mark, part)
    return text


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def column(values: NDArray[Any], kind: str, steps: bool = False) -> dict[str, object]:
    """A column for the script: its type and its numbers, compressed.

    The numbers are written by planes of bytes: the lowest byte of each number, then the next.
    `steps` writes differences of neighbours (modulo 2**32) with the sign in the lowest bit.
    """
    numbers = values.astype(np.dtype(kind).newbyteorder("<"))
    if steps:
        words = numbers.astype("<u4")
        differences = np.diff(words, prepend=words.dtype.type(0)).view("<i4")
        numbers = ((differences << 1) ^ (differences >> 31)).view("<u4")
    planes = numbers.view(np.uint8).reshape(-1, numbers.itemsize).T.tobytes()
    packed = zlib.compress(planes)
    return {"type": kind, "steps": steps, "bytes": len(packed), "data": base85(packed)}


def base85(data: bytes) -> str:
    """Bytes as text: five digits for each four bytes, the first digit is the highest."""
    words = np.frombuffer(data + bytes(-len(data) % 4), ">u4")
    digits = np.empty((len(words), 5), np.uint8)
    for place in range(4, -1, -1):
        words, digits[:, place] = np.divmod(words, 85)
    return np.frombuffer(DIGITS, np.uint8)[digits].tobytes().decode("ascii")


def intervals(
    begin: NDArray[np.float64], end: NDArray[np.float64], seconds: float
) -> dict[str, object]:
    """Columns of begins and lengths of spans of time; `seconds` is the makespan."""
    first, last = _ticks(begin, seconds), _ticks(end, seconds)
    return {"begin": column(first, "u4", steps=True), "lasted": column(last - first, "u4")}


def _ticks(dates: NDArray[np.float64], seconds: float) -> NDArray[np.float64]:
    scale = TICKS / seconds if seconds > 0.0 else 0.0
    return np.clip(np.rint(dates * scale), 0, 2**32 - 1)


def page_data(name: str, analysis: Analysis, recorded: float | None = None) -> dict[str, object]:
    """The data of a run, as the script of the page reads it.

    `recorded` is the date of its recording (s since 1970), None for a run of this process.
    """
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
        **_path(analysis, seconds),
        "sources": sources(analysis, recorded),
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
        "rank": column(rank_of[process[first]], "u4", steps=True),
        **intervals(date[first], date[last], seconds),
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
        "rank": column(table[:, 0], "u4", steps=True),
        **intervals(table[:, 1], table[:, 2], seconds),
        "for": column(table[:, 3], "i4", steps=True),
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
        **intervals(found[:, 0], found[:, 1], seconds),
        "source": column(found[:, 2], "u4", steps=True),
        "destination": column(found[:, 3], "u4", steps=True),
        "bytes": column(found[:, 4], "f4"),
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
