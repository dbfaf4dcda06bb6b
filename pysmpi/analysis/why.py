"""Why a run takes as long as it does: efficiencies, sensitivities, other machines, advice.

The efficiencies are those of the POP Centre of Excellence (https://pop-coe.eu). With C the seconds
of compute of each rank, T the makespan, and I the makespan on an ideal network, where messages take
no time:

- load balance = mean(C) / max(C)
- serialisation = max(C) / I
- transfer = I / T
- communication efficiency = serialisation * transfer = max(C) / T
- parallel efficiency = load balance * communication efficiency = mean(C) / T
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from pysmpi import text
from pysmpi.analysis.graph import READING, EventGraph, Scales, read
from pysmpi.analysis.interval import line
from pysmpi.analysis.path import (
    CAUSES,
    COMPUTE,
    CONTENTION,
    LATENCY,
    OUTSIDE,
    OVERHEAD,
    TRANSFER,
    CriticalPath,
    critical_path,
)
from pysmpi.analysis.profile import Profile, limit, profile
from pysmpi.analysis.wait_states import wait_states
from pysmpi.time.figures import AnalysisFigures, IntervalFigures
from pysmpi.trace.activity import contradiction

# Share of a run below which its compute is only looks at clocks: no compute was timed.
TIMED: Final = 1e-6

# Version of the data of `Analysis.report`; docs/reference/analysis.md describes it.
SCHEMA: Final = 1

# Rows of a record above which only the ideal network and compute are predicted: a prediction takes
# about a second for a million rows.
MOST_ROWS: Final = 1_000_000

IDEAL_NETWORK: Final = Scales(latency=0.0, transfer=0.0, overhead=0.0)
IDEAL_COMPUTE: Final = Scales(compute=0.0)


@dataclass(frozen=True)
class Efficiencies:
    """The POP efficiencies of a run, each between 0 and 1."""

    parallel: float
    load_balance: float
    communication: float
    serialisation: float
    transfer: float


@dataclass
class Analysis:
    """The analysis of a run. Times are simulated seconds.

    `sensitivity` is the relative change of the makespan by a small relative change of all
    latencies, of the time of bytes, of compute, of overheads: a derivative of logarithms. `what_if`
    are makespans of changed runs. `wait_states` are seconds of all ranks by the names of states.
    `efficiencies` is None if no compute was timed.
    """

    graph: EventGraph
    path: CriticalPath
    profile: Profile
    efficiencies: Efficiencies | None
    sensitivity: dict[str, float]
    what_if: dict[str, float]
    wait_states: dict[str, float]
    interval: IntervalFigures | None = None
    _lines: list[str] | None = None

    def limit(self) -> str:
        """One line that names the limit of the run."""
        return limit(self.profile)

    def report(self) -> AnalysisFigures:
        """The analysis as plain data; `schema` is the version of its form."""
        path, seconds = self.path, self.graph.seconds
        figures: AnalysisFigures = {
            "schema": SCHEMA,
            "seconds": seconds,
            "ranks": self.graph.record.ranks,
            "limit": self.limit(),
            "text": self.lines(),
            "critical_path": {
                "seconds": path.seconds,
                "causes": path.by_cause(),
                "changes_of_rank": path.hops(),
                "places": [
                    {"cause": cause, "place": place, "seconds": lasted}
                    for cause, place, lasted in path.by_place()[:50]
                ],
            },
            "efficiencies": None if self.efficiencies is None else dict(vars(self.efficiencies)),
            "sensitivity": self.sensitivity,
            "what_if": self.what_if,
            "wait_states": self.wait_states,
            "sites": [
                {
                    "site": site.name,
                    "calls": site.calls,
                    "seconds": site.seconds,
                    "wait_seconds": site.waited,
                    "sent_bytes": site.sent,
                    "late_seconds": {str(rank): late for rank, late in site.lateness.items()},
                }
                for site in sorted(self.profile.sites, key=lambda one: -one.seconds)
            ],
            "compute_lines": dict(
                sorted(self.profile.lines.items(), key=lambda item: -item[1])[:50]
            ),
            "rank_compute_seconds": self.profile.compute,
            "rank_wait_seconds": self.profile.waited,
        }
        if self.interval is not None:
            figures["interval"] = self.interval
        return figures

    def lines(self) -> list[str]:
        """The analysis for people."""
        if self._lines is None:
            self._lines = self._text()
        return self._lines

    def _text(self) -> list[str]:
        seconds = self.graph.seconds
        found = [f"limit: {self.limit()}"]
        if seconds <= 0.0:
            return found
        causes = self.path.by_cause()
        parts = [f"{cause} {part / seconds:.1%}" for cause, part in causes.items() if part > 0.0]
        found.append(f"critical path: {text.seconds(seconds)}: {', '.join(parts)}")
        for cause, place, part in self.path.by_place()[:8]:
            saved = self._saved(cause, place, part)
            where = place if cause == COMPUTE or place == OUTSIDE else f"in {place}"
            found.append(
                f"  {part / seconds:6.1%}  {cause} {where}"
                + (f"; 10 % less of it saves {saved}" if saved else "")
            )
        pop = self.efficiencies
        found.append(
            "no compute was timed: efficiencies are not known"
            if pop is None
            else f"efficiency {pop.parallel:.1%} = load balance {pop.load_balance:.1%} x "
            f"serialisation {pop.serialisation:.1%} x transfer {pop.transfer:.1%}"
        )
        total = self.profile.total
        states = sorted(self.wait_states.items(), key=lambda item: -item[1])
        waits = [
            f"{name} {part / total:.1%} ({text.seconds(part)})"
            for name, part in states
            if total > 0.0 and part >= 0.0005 * total
        ]
        if waits:
            found.append(f"wait states, in the time of all ranks: {', '.join(waits)}")
        changes = ", ".join(f"{name} {value:.2f}" for name, value in self.sensitivity.items())
        found.append(f"sensitivity (percent of time a percent of cost): {changes}")
        changed = ", ".join(
            f"{name} {text.seconds(value)} ({value / seconds - 1.0:+.1%})"
            for name, value in self.what_if.items()
        )
        if changed:
            found.append(f"what if: {changed}")
        if self.interval is not None:
            found.append(line(self.interval))
        return found

    def _saved(self, cause: str, place: str, part: float) -> str:
        """The predicted saving, if the path names a line of compute."""
        if cause != COMPUTE or len(self.graph.kind) > MOST_ROWS:
            return ""
        path = self.path
        lines = {
            (piece.since, piece.site)
            for piece in path.pieces
            if piece.cause == COMPUTE and path.place(piece) == place
        }
        scales = Scales(lines=dict.fromkeys(lines, 0.9))
        saved = self.graph.seconds - self.graph.makespan(scales)
        return f"{text.seconds(max(0.0, saved))} ({saved / self.graph.seconds:.1%})"


def analyse(graph: EventGraph) -> Analysis:
    """Analyse a run."""
    path = critical_path(graph)
    found = profile(graph)
    seconds = graph.seconds
    ideal = graph.makespan(IDEAL_NETWORK)
    causes = path.by_cause()
    share = {cause: causes[cause] / seconds if seconds else 0.0 for cause in CAUSES}
    return Analysis(
        graph,
        path,
        found,
        efficiencies(found, ideal),
        {
            "compute": share[COMPUTE],
            "latency": share[LATENCY],
            "bandwidth": share[TRANSFER] + share[CONTENTION],
            "overhead": share[OVERHEAD],
        },
        what_if(graph, found, ideal),
        wait_states(graph),
    )


def read_analysis(path: str, step: Callable[[str], object] = str) -> Analysis:
    """The analysis of the record in a file; raises UsageError if it is not consistent.

    `step` is called with the name of each of its `READING` steps when it begins.
    """
    graph = read(path, step)
    step(READING[2])
    try:
        return analyse(graph)
    except (KeyError, IndexError, ValueError, TypeError, OverflowError) as error:
        raise contradiction(path, error) from None


def timed(found: Profile) -> bool:
    """Whether compute takes a part of the run's time."""
    return max(found.compute, default=0.0) > TIMED * found.seconds


def efficiencies(found: Profile, ideal: float) -> Efficiencies | None:
    """The efficiencies of a run whose makespan on an ideal network is `ideal` seconds.

    None if no compute was timed.
    """
    if not timed(found):
        return None
    longest = max(found.compute)
    mean = sum(found.compute) / len(found.compute)
    seconds = found.seconds
    ideal = max(ideal, longest)
    return Efficiencies(
        mean / seconds, mean / longest, longest / seconds, longest / ideal, ideal / seconds
    )


def what_if(graph: EventGraph, found: Profile, ideal: float) -> dict[str, float]:
    """Makespans (s) of changed runs; those of other compute only if compute was timed."""
    changed: dict[str, float] = {}
    compute = timed(found)
    if compute:
        changed |= {"ideal network": ideal, "ideal compute": graph.makespan(IDEAL_COMPUTE)}
    if len(graph.kind) > MOST_ROWS:
        return changed
    changed |= {
        "half the latency": graph.makespan(Scales(latency=0.5)),
        "twice the bandwidth": graph.makespan(Scales(transfer=0.5)),
    }
    if compute:
        changed["twice the compute speed"] = graph.makespan(Scales(compute=0.5))
    changed["no contention"] = graph.makespan(Scales(contention=0.0))
    if len(found.compute) > 1:
        if compute:
            mean = sum(found.compute) / len(found.compute)
            even = {rank: mean / own for rank, own in enumerate(found.compute) if own > 0.0}
            changed["even load"] = graph.makespan(Scales(ranks=even))
            slow = max(range(len(found.compute)), key=found.compute.__getitem__)
            changed[f"rank {slow} twice as slow"] = graph.makespan(Scales(ranks={slow: 2.0}))
        link = _busiest_link(graph)
        if link is not None:
            name = graph.record.links[link][0]
            changed[f"link {name} at half speed"] = graph.makespan(Scales(links={link: 2.0}))
    return changed


def _busiest_link(graph: EventGraph) -> int | None:
    """The link that carries most bytes."""
    table = graph.record.messages
    carried: dict[int, float] = {}
    for nbytes, route in zip(table[:, 4].tolist(), table[:, 5].tolist()):
        for link, part in graph.record.carried(route, nbytes):
            carried[link] = carried.get(link, 0) + part
    return max(carried, key=carried.__getitem__, default=None)
