"""The calls, waits and messages of a run, and its machine, as the scripts of pages read them.

Columns of numbers are compressed. Times are whole numbers of `TICKS` a makespan.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pysmpi.analysis.graph import NONE, EventGraph
from pysmpi.analysis.movement import (
    CollectiveSpan,
    MachinePicture,
    collective_calls,
    picture_of,
    rounds,
)
from pysmpi.trace.activity import SiteCollective
from pysmpi.trace.events import CALL, END, MAIN, RETURN

TICKS: Final = 4_000_000_000
# Digits of base 85 that JSON and HTML leave as they are.
DIGITS: Final = (
    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%()*+-;=?@^_`{|}~,.:"
)

KINDS: Final = ("point-to-point", "collective", "other")


@dataclass(frozen=True)
class Scene:
    """The data of a run that its timeline and its animation need, for their scripts.

    `calls` counts the collective calls that take time; without a `picture` there is no animation.
    """

    name: str
    seconds: float
    hosts: int
    calls: int
    picture: bool
    data: dict[str, object]


def scene_of(name: str, graph: EventGraph) -> Scene:
    """The scene of a run."""
    record, seconds = graph.record, graph.seconds
    picture = picture_of(record)
    round_of = rounds(graph)
    collectives = collective_calls(graph, round_of)
    data: dict[str, object] = {
        "name": name,
        "seconds": seconds,
        "ticks": TICKS,
        "measured": record.measured,
        "hosts": record.hosts,
        "sites": [record.site(number) for number in range(len(record.sites))],
        "kinds": [KINDS.index(site.kind) for site in record.sites],
        "machine": record.machine(),
        "ends": _ends(graph),
        "calls": _calls(graph, seconds),
        "waits": _waits(graph, seconds),
        "messages": _messages(graph, seconds, picture, round_of, collectives),
        "collectives": _collectives(graph, seconds, collectives),
        "picture": None if picture is None else _picture(graph, picture),
    }
    hosts = len(set(record.hosts))
    return Scene(name, seconds, hosts, len(collectives), picture is not None, data)


def _ends(graph: EventGraph) -> list[float]:
    """The time (s) at which the program of each rank ends."""
    found = [0.0] * graph.record.ranks
    for row, kind in enumerate(graph.kind):
        if kind == END and graph.kind_of[graph.process[row]] == MAIN:
            found[graph.rank_of[graph.process[row]]] = graph.date[row]
    return found


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


def _messages(
    graph: EventGraph,
    seconds: float,
    picture: MachinePicture | None,
    round_of: dict[int, int],
    collectives: dict[int, CollectiveSpan],
) -> dict[str, object]:
    """The messages in the order in which they were sent.

    A message is at its sender for `held` before its transfer begins; no byte flows in the first
    `latency` of its transfer. `collective` is the position of its call among the collective calls,
    -1 for none. `route` is there if two ranks have messages on several routes.
    """
    date = graph.date
    places = {number: i for i, number in enumerate(collectives)}
    route_of = {} if picture is None else picture.route_of
    rows = []
    for message in graph.record.messages.tolist():
        number, source, destination, _, nbytes, route, *_, call = message
        if number not in graph.arrives or number not in graph.sends:
            continue
        posted, depart = date[graph.sends[number]], date[graph.departs[number]]
        rows.append(
            (
                posted, date[graph.arrives[number]], source, destination, nbytes,
                max(0.0, depart - posted), graph.b[graph.departs[number]], places.get(call, NONE),
                round_of.get(number, 0), route_of.get((source, destination, route), NONE),
            )
        )  # fmt: skip
    table = np.array(rows, np.float64).reshape(-1, 10)
    table = table[np.argsort(table[:, 0], kind="stable")]
    found = {
        **intervals(table[:, 0], table[:, 1], seconds),
        "source": column(table[:, 2], "u4", steps=True),
        "destination": column(table[:, 3], "u4", steps=True),
        "bytes": column(table[:, 4], "f4"),
        "held": column(_ticks(table[:, 5], seconds), "u4"),
        "latency": column(_ticks(table[:, 6], seconds), "u4"),
        "collective": column(table[:, 7], "i4", steps=True),
        "round": column(table[:, 8], "u4", steps=True),
    }
    if len(route_of) != len({pair[:2] for pair in route_of}):
        found["route"] = column(table[:, 9], "i4")
    return found


def _collectives(
    graph: EventGraph, seconds: float, collectives: dict[int, CollectiveSpan]
) -> dict[str, object]:
    """The collective calls that take time, in the order of their begins."""
    table = np.array(list(collectives.values()), np.float64).reshape(-1, 4)
    known: dict[str, SiteCollective] = graph.record.collectives
    algorithms = {
        number: " or ".join(sorted(filter(None, known[name].algorithms)))
        for number in set(table[:, 0].astype(int).tolist()) - {NONE}
        if (name := graph.record.site(number)) in known
    }
    return {
        "algorithms": algorithms,  # by site
        "columns": {
            "site": column(table[:, 0], "i4", steps=True),
            **intervals(table[:, 1], table[:, 2], seconds),
            "rounds": column(table[:, 3], "u4"),
        },
    }


def _picture(graph: EventGraph, picture: MachinePicture) -> dict[str, object]:
    """The drawing of the machine, and the routes of messages.

    `passed` and `crossed` count the vertices and links of each route; `source`, `destination` and
    `route` tell the routes of pairs of ranks.
    """
    vertices = [len(route.vertices) for route in picture.routes]
    links = [len(route.links) for route in picture.routes]
    pairs = np.array(
        [
            (source, destination, route)
            for (source, destination, _), route in picture.route_of.items()
        ],
        np.int64,
    ).reshape(-1, 3)
    return {
        "names": picture.names,
        "hosts": picture.hosts,
        "x": [round(x, 5) for x, _ in picture.positions],
        "y": [round(y, 5) for _, y in picture.positions],
        "height": picture.height,
        "tree": picture.tree,
        "edges": picture.edges,
        "links": graph.record.links,
        "hostOf": picture.host_of,
        "columns": {
            "passed": column(np.array(vertices), "u4"),
            "vertex": column(np.array([v for r in picture.routes for v in r.vertices]), "u4"),
            "crossed": column(np.array(links), "u4"),
            "link": column(np.array([k for r in picture.routes for k in r.links]), "u4"),
            "source": column(pairs[:, 0], "u4", steps=True),
            "destination": column(pairs[:, 1], "u4", steps=True),
            "route": column(pairs[:, 2], "u4", steps=True),
        },
    }
