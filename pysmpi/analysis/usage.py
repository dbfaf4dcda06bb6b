"""The use of links and hosts over time, and files of it for other programs."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pysmpi.analysis.graph import NONE, EventGraph
from pysmpi.analysis.paje import paje_lines
from pysmpi.errors import UsageError
from pysmpi.trace.events import MAIN, RESUME
from pysmpi.trace.tables import arrow

COLUMNS: Final = ("kind", "name", "begin", "end", "capacity", "amount", "use")
SUFFIXES: Final = ("csv", "json", "parquet", "paje", "trace")
INTERVALS: Final = 100


@dataclass(frozen=True)
class Usage:
    """The use of a link or a host in equal intervals of the run.

    `amounts` are bytes of a link, and seconds of compute of a host. `capacity` is the most of it in
    a second: the bandwidth (bytes/s), the number of ranks on the host.
    """

    kind: str
    name: str
    capacity: float
    amounts: NDArray[np.float64]

    def shares(self, seconds: float) -> NDArray[np.float64]:
        """The share of the capacity in each interval of a run of so many seconds."""
        return self.amounts / (self.capacity * seconds / len(self.amounts))


def link_usage(graph: EventGraph, intervals: int) -> list[Usage]:
    """The use of all links that carried bytes, in the order of their first message."""
    record = graph.record
    crossing: dict[int, list[tuple[float, float, float]]] = {}
    for number, nbytes, route in record.messages[:, [0, 4, 5]].tolist():
        depart, arrive = graph.departs.get(number), graph.arrives.get(number)
        if depart is None or arrive is None or not nbytes:
            continue
        end = graph.date[arrive]
        begin = min(end, graph.date[depart] + graph.b[depart])
        for link, part in record.carried(route, float(nbytes)):
            crossing.setdefault(link, []).append((begin, end, part))
    edges = np.linspace(0.0, graph.seconds, intervals + 1)
    return [
        Usage("link", *record.links[link], _parts(np.array(flows), edges))
        for link, flows in crossing.items()
    ]


def host_usage(graph: EventGraph, intervals: int) -> list[Usage]:
    """The compute of the main threads on each host, in the order of the ranks."""
    hosts = graph.record.hosts
    spans: dict[str, list[tuple[float, float, float]]] = {host: [] for host in hosts}
    for row, kind in enumerate(graph.kind):
        process, before = graph.process[row], graph.before[row]
        if kind == RESUME or before == NONE or graph.kind_of.get(process) != MAIN:
            continue
        begin, end = graph.date[before], graph.date[row]
        if end > begin and not graph.in_call(row):
            spans[hosts[graph.rank_of[process]]].append((begin, end, end - begin))
    edges = np.linspace(0.0, graph.seconds, intervals + 1)
    return [
        Usage(
            "host", host, float(hosts.count(host)),
            _parts(np.array(some).reshape(-1, 3), edges),
        )
        for host, some in spans.items()
    ]  # fmt: skip


def _parts(flows: NDArray[np.float64], edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """The amounts that flows (begin, end, amount) carry in each interval, without negative ones."""
    return np.maximum(np.diff(_carried(flows, edges)), 0.0)


def _carried(flows: NDArray[np.float64], edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """The amounts that flows (begin, end, amount) have carried up to each time."""
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


def write_usage(path: str, suffix: str, graph: EventGraph, intervals: int = INTERVALS) -> None:
    """Write the use of links and hosts: a table with a row for each of them and each interval, or
    variables of Paje.
    """
    seconds = graph.seconds
    used = [] if seconds <= 0.0 else link_usage(graph, intervals) + host_usage(graph, intervals)
    rows = list(_rows(used, seconds))
    if suffix == "parquet":
        library = arrow()
        columns = list(zip(*rows)) or [()] * len(COLUMNS)
        library.parquet.write_table(library.table(dict(zip(COLUMNS, map(list, columns)))), path)
        return
    if suffix in ("paje", "trace"):
        text = "".join(paje_lines([(u.kind, u.name, u.capacity, u.amounts) for u in used], seconds))
    elif suffix == "csv":
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(rows)
        text = stream.getvalue()
    else:
        text = json.dumps([dict(zip(COLUMNS, row)) for row in rows], indent=0) + "\n"
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def _rows(used: Sequence[Usage], seconds: float) -> Iterator[tuple[object, ...]]:
    for one in used:
        count = len(one.amounts)
        for i, (amount, share) in enumerate(zip(one.amounts, one.shares(seconds))):
            begin, end = seconds * i / count, seconds * (i + 1) / count
            yield one.kind, one.name, begin, end, one.capacity, float(amount), float(share)


def suffix_of(option: str, name: str) -> str:
    """The form of a file, by its suffix. Raises UsageError for another one."""
    suffix = name.rpartition(".")[2].lower()
    if suffix not in SUFFIXES:
        raise UsageError(
            f"{option} {name}: expected the suffix .csv, .json, .parquet, .paje or .trace"
        )
    return suffix
