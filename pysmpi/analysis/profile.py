"""The time of a recorded run by call site, line, rank, and the rank that was waited for."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field

from pysmpi.analysis.graph import NONE, EventGraph
from pysmpi.analysis.path import span
from pysmpi.analysis.wait_states import LATE, lateness
from pysmpi.trace.events import CALL, END, MAIN, RESUME, RETURN, START_SEND


@dataclass
class Site:
    """The calls of one site: their number, seconds, seconds of waiting, and bytes sent.

    `collective` counts the collective operations, `last` how often each rank was the last to enter
    one. `lateness` are the seconds that others waited for each rank before it began its part.
    """

    number: int
    name: str
    calls: int = 0
    seconds: float = 0.0
    waited: float = 0.0
    sent: int = 0
    collective: int = 0
    last: Counter[int] = field(default_factory=Counter)
    lateness: dict[int, float] = field(default_factory=lambda: defaultdict(float))

    def latest(self) -> tuple[int, float] | None:
        """The rank that others waited for most, and its share of all lateness."""
        total = sum(self.lateness.values())
        if total <= 0.0:
            return None
        rank = max(self.lateness, key=self.lateness.__getitem__)
        return rank, self.lateness[rank] / total


@dataclass
class Profile:
    """The times of a run (s); `compute`, `waited`, `ends` by rank, `lines` by lines of compute.

    `spans` are the sites before and after these lines.
    """

    seconds: float
    compute: list[float]
    waited: list[float]
    ends: list[float]
    sites: list[Site]
    lines: dict[str, float]
    spans: set[tuple[int, int]] = field(default_factory=set)

    @property
    def total(self) -> float:
        """The seconds of all ranks."""
        return sum(self.ends)


def profile(graph: EventGraph) -> Profile:
    """The profile of a run: its main threads."""
    record = graph.record
    ranks = record.ranks
    compute, waited, ends = [0.0] * ranks, [0.0] * ranks, [0.0] * ranks
    sites = [Site(number, record.site(number)) for number in range(len(record.sites))]
    lines: dict[tuple[int, int], float] = defaultdict(float)
    begun: dict[int, float] = {}
    for row, what in enumerate(graph.kind):
        process = graph.process[row]
        if what == START_SEND and graph.site[row] != NONE:
            sites[graph.site[row]].sent += int(graph.b[row])
        if process == 0 or graph.kind_of.get(process) != MAIN:
            continue
        rank = graph.rank_of[process]
        before = graph.before[row]
        if not graph.in_call(row) and what != RESUME and before != NONE:
            lasted = graph.date[row] - graph.date[before]
            compute[rank] += lasted
            lines[graph.latest(before), graph.until[row]] += lasted
        if what == CALL:
            begun[process] = graph.date[row]
            sites[graph.a[row]].calls += 1
        elif what == RETURN:
            sites[graph.a[row]].seconds += graph.date[row] - begun.pop(process, graph.date[row])
        elif what == END:
            ends[rank] = graph.date[row]
    _waits(graph, sites, waited)
    _collectives(graph, sites)
    names: dict[str, float] = defaultdict(float)
    for (since, site), seconds in lines.items():
        names[span(record.sites, since, site)] += seconds
    return Profile(graph.seconds, compute, waited, ends, sites, dict(names), set(lines))


def _waits(graph: EventGraph, sites: list[Site], waited: list[float]) -> None:
    for wait in graph.waits:
        if graph.kind_of.get(wait.process) != MAIN or wait.site == NONE:
            continue
        waited[graph.rank_of[wait.process]] += wait.end - wait.begin
        site = sites[wait.site]
        site.waited += wait.end - wait.begin
        if wait.cause <= 0 or wait.rank == NONE:
            continue
        _, late = lateness(graph, wait)
        if late > LATE and not graph.entered_at(wait.site):
            site.lateness[wait.rank] += late


def _collectives(graph: EventGraph, sites: list[Site]) -> None:
    for rows in graph.entered.values():
        if len(rows) < 2:
            continue
        last = max(rows, key=lambda row: graph.date[row])
        site, rank = graph.site[last], graph.rank_of[graph.process[last]]
        late = sum(graph.date[last] - graph.date[row] for row in rows)
        if site == NONE:
            continue
        sites[site].collective += 1
        if late > LATE:
            sites[site].last[rank] += 1
            sites[site].lateness[rank] += late


def limit(found: Profile) -> str:
    """One line that names the limit of a run."""
    total = found.total
    if total <= 0.0:
        return "nothing takes time"
    compute, waited = sum(found.compute) / total, sum(found.waited) / total
    if compute >= waited and compute > 0.5:
        slowest = max(range(len(found.compute)), key=found.compute.__getitem__)
        average = sum(found.compute) / len(found.compute)
        excess = found.compute[slowest] / average - 1.0 if average else 0.0
        longest = max(found.lines, key=found.lines.__getitem__, default="")
        share = found.lines.get(longest, 0.0) / sum(found.compute) if compute else 0.0
        text = f"{compute:.0%} computing: {share:.0%} of it {longest}"
        if excess > 0.05:
            text += f"; rank {slowest} computes {excess:.0%} more than the average"
        return text
    site = max(found.sites, key=lambda one: one.waited, default=None)
    if site is None or site.waited <= 0.0 or waited < 0.02:
        other = max(0.0, 1.0 - compute - waited)
        return f"{compute:.0%} computing, {waited:.0%} waiting, {other:.0%} overheads of messages"
    latest = site.latest()
    share = site.waited / sum(found.waited)
    text = f"{waited:.0%} waiting: {share:.0%} of it in {site.name}"
    late = sum(site.lateness.values())
    if latest is None or late < 0.3 * site.waited:
        return f"{text}, mostly for bytes to arrive"
    rank, part = latest
    if site.collective:
        times = site.last[rank] / site.collective
        text = f"{waited:.0%} waiting: rank {rank} is late in {times:.0%} of the {site.name}"
        return f"{text} ({share:.0%} of all waiting)"
    return f"{text}, {part:.0%} of that for rank {rank}, which is late"
