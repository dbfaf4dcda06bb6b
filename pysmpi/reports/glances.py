"""Glances at the ranks of a run from time to time: the calls in which they wait, and their causes.

The summary of a run without a recording names the limit of the run. Its glances cost nothing while
ranks run: a few ranks are inspected before the clock passes one of the dates of glances. The weight
of a glance is the number of dates that the clock then passes, so waits count by their length. The
dates become sparser as the run goes on, so their number hardly grows with its length.
"""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

from pysmpi.kernel.engine import Engine
from pysmpi.kernel.requests import Envelope, Receive, Send
from pysmpi.mpi.calls import call_of
from pysmpi.python.frames import shorten
from pysmpi.ranks.instruments import Instrument, InstrumentedRun
from pysmpi.time.figures import RankFigures

if TYPE_CHECKING:
    from pysmpi.mpi.base.ranks import Rank
    from pysmpi.ranks.simulation import Simulation

PERIOD: Final = 1e-6  # simulated seconds between the first dates
OFTEN: Final = 10  # glances until the period doubles
EVENTS: Final = 128  # fewest events between two glances
RANKS: Final = 3  # ranks of one glance
STRIDE: Final = 7919  # prime: glances go around all ranks
LONGEST: Final = 64  # steps from a waiting rank to the rank that all wait for
LEAST: Final = 40  # fewest looks at ranks for a statement
FLIGHT: Final = -1  # a message that is on its way


class Glances(Instrument):
    """The glances at one simulation: weights of waiting by place, and by place and cause."""

    simulation: Simulation
    engine: Engine

    def __init__(self) -> None:
        self.period = PERIOD
        self.count = 0
        self.looks = 0
        self.places: dict[str, float] = defaultdict(float)
        self.causes: dict[str, dict[int, float]] = defaultdict(lambda: defaultdict(float))
        self._next = 0

    def attach(self, run: InstrumentedRun) -> None:
        """Begin to look."""
        self.simulation = run.simulation
        self.engine = run.simulation.engine
        self.engine.glance = self._look
        self.engine.glance_date = self.period
        self.engine.glance_at = EVENTS

    def finish(self, result: Any) -> None:
        """Name the limit of a run that ended well."""
        if result.exit_status == 0:
            result.limit = limit(result.ranks, self)

    def _look(self, date: float) -> None:
        engine = self.engine
        if engine.glance_date < engine.now:
            # Dates that passed too soon after a glance do not count.
            missed = math.ceil((engine.now - engine.glance_date) / self.period)
            engine.glance_date += missed * self.period
        passed = int((date - engine.glance_date) / self.period) + 1
        if date <= engine.glance_date:
            return
        weight = passed * self.period
        ranks = self.simulation.universe.ranks
        found = []
        looks = 0
        for _ in range(min(RANKS, len(ranks))):
            self._next += STRIDE
            rank = ranks[self._next % len(ranks)]
            if rank.fiber is None:
                continue
            looks += 1
            place = _wait(rank)
            if place is not None:
                found.append((place, self._cause(rank)))
        for place, cause in found:
            self.places[place] += weight / looks
            self.causes[place][cause] += weight / looks
        self.looks += looks
        self.count += 1
        engine.glance_date += passed * self.period
        engine.glance_at = engine.events + EVENTS
        if self.count % OFTEN == 0:
            self.period *= 2.0

    def _cause(self, rank: Rank) -> int:
        """The rank that a waiting rank waits for in the end, through others that wait."""
        ranks = self.simulation.universe.ranks
        pending = rank.process.pending()
        for _ in range(LONGEST):
            pids = []
            for request in pending:
                if isinstance(request, Receive) and request.message is None:
                    if request.source >= 0:
                        pids.append(request.context.members[request.source].pid)
                elif isinstance(request, Send) and not request.flowing:
                    pids.append(request.context.members[request.destination].pid)
                elif isinstance(request, Envelope):
                    return FLIGHT
            if not pids or pids[0] >= len(ranks):
                return rank.pid
            rank = ranks[pids[0]]
            pending = [] if rank.fiber is None else rank.process.pending()
            if not pending:
                return rank.pid
        return FLIGHT

    def limit(self, wait_share: float) -> str | None:
        """The limit of a run whose ranks wait for `wait_share` of their time; None if unknown."""
        if self.looks < LEAST:
            return None
        places, causes = self.places, self.causes
        total = sum(places.values())
        if total <= 0.0:
            return None
        place = max(places, key=places.__getitem__)
        share = places[place] / total
        text = f"{wait_share:.0%} waiting, about {share:.0%} of it in {place}"
        cause, late = max(causes[place].items(), key=lambda item: item[1])
        part = late / places[place]
        if cause == FLIGHT:
            return f"{text}, mostly for messages on their way" if part > 0.5 else text
        return f"{text}, {part:.0%} of that for rank {cause}" if part >= 0.4 else text


def _wait(rank: Rank) -> str | None:
    """The call in which a rank waits, None if it does not."""
    if not rank.in_call or not rank.process.pending():
        return None
    fiber: object = rank.fiber
    call = call_of(fiber)
    if call is None:
        return None
    site = call.site
    if site is None:
        return call.name
    return f"{call.name} at {shorten(site[0])}:{site[1]}"


def limit(ranks: list[RankFigures], glances: Glances) -> str | None:
    """One line that names the limit of a run, from the figures of its ranks and glances at them."""
    total = sum(rank["end_seconds"] - rank["begin_seconds"] for rank in ranks)
    if total <= 0.0 or len(ranks) < 2:
        return None
    compute = [rank["compute_seconds"] for rank in ranks]
    waited = sum(rank["wait_seconds"] for rank in ranks) / total
    mean = sum(compute) / len(compute)
    slowest = max(range(len(ranks)), key=compute.__getitem__)
    uneven = mean > 0.0 and compute[slowest] > 1.1 * mean and mean * len(ranks) > 0.1 * total
    computed = mean * len(ranks) / total
    result = None
    if computed > 0.5 and computed >= waited:
        result = f"{computed:.0%} computing"
    elif waited >= 0.05:
        result = glances.limit(waited)
    if uneven:
        more = f"rank {ranks[slowest]['rank']} computes {compute[slowest] / mean - 1.0:.0%} more "
        more += "than the average"
        result = more if result is None else f"{result}; {more}"
    return result
