"""Running, measuring or skipping one pass through a sampled place.

The time of pysmpi itself does not count as compute of the rank. The time of a skipped pass is
charged to its block of compute, so the number of blocks does not depend on sampling. Only native
timing has a clock: under the other modes of `--compute` a block has its fixed time whether parts of
it run or not, and passes are only counted.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from random import Random
from time import thread_time_ns
from typing import Any

from pysmpi.errors import UsageError
from pysmpi.mpi.base.ranks import Rank, current
from pysmpi.python.frames import current_site
from pysmpi.python.records import record
from pysmpi.shadow.collective import HostTime, Span, pass_by
from pysmpi.shadow.entry import Entry
from pysmpi.shadow.estimate import StoppingRule
from pysmpi.shadow.interval import SkippedPasses, skipped_passes
from pysmpi.shadow.keys import key_function
from pysmpi.shadow.outputs import ArrayWatch, Outputs
from pysmpi.shadow.teams import Links, Team
from pysmpi.time.figures import SampledFigures
from pysmpi.time.stopwatch import Stopwatch


class CommunicationError(UsageError):
    """A sampled place communicates: skipping it would leave its partners waiting."""


class Guard:
    """Measures a pass of a rank, which may read the clock but not communicate.

    As the timer of the rank it sums up the compute of the pass between reads of the clock. As a
    watcher it refuses calls that take part in the simulation.
    """

    __slots__ = ("rank", "real", "name", "shadow", "spent", "base", "host")

    def __init__(self, rank: Rank, name: str, shadow: Shadow) -> None:
        self.rank = rank
        self.real = rank.timer
        self.name = name
        self.shadow = shadow
        self.spent = 0
        self.base = shadow.clock.elapsed()
        self.host = thread_time_ns()
        rank.watch(self)

    def begun(self, rank: Rank) -> None:
        """Refuse a call, which communicates or waits."""
        call = rank.call
        site = current_site() if call is None else call.site
        raise self.shadow.refuse(self.name, site)

    def ended(self, rank: Rank) -> None:
        """Nothing to do."""

    def start(self) -> None:
        if self.real is not None:
            self.real.start()
        self.base = self.shadow.clock.elapsed()

    def resume(self) -> None:
        if self.real is not None:
            self.real.resume()
        self.base = self.shadow.clock.elapsed()

    def stop(self) -> float:
        self.spent += self.shadow.clock.elapsed() - self.base
        return 0.0 if self.real is None else float(self.real.stop())

    def part(self) -> float | None:
        if self.real is None:
            return None
        self.spent += self.shadow.clock.elapsed() - self.base
        self.base = self.shadow.clock.elapsed()
        return self.real.part()  # type: ignore[no-any-return]

    def end(self) -> None:
        """The pass is over, or broken off."""
        self.spent += self.shadow.clock.elapsed() - self.base
        self.host = thread_time_ns() - self.host
        self.rank.timer = self.real
        self.rank.unwatch(self)

    def measured(self) -> float:
        """The time of the pass (ns)."""
        return float(self.spent)

    def note(self, entry: Entry) -> None:
        """Record the time of the pass on this computer."""
        entry.host += self.host


class Point:
    """A sampled place of the program, with its measures in the run."""

    def __init__(
        self,
        name: str,
        rule: StoppingRule,
        scope: str = "local",
        by: str = "none",
        charge: str = "mean",
        outputs: str = "keep",
    ) -> None:
        self.name = name
        self.rule = rule
        self.scope = scope
        self.collective = scope == "collective"
        self.key = key_function(by)
        self.charge = charge
        self.steady = False  # whether passes take the time that they take without other work
        self.keep = outputs != "leave"
        self.scaled = outputs == "scale"
        self.entries: dict[Hashable, Entry] = {}
        self.left: list[Entry] = []  # entries of passes that are not skipped any more
        self.kinds: list[dict[int, Entry]] = []  # of collective passes: by rank, for each kind
        self.ended: dict[int, list[tuple[Entry, list[Entry]]]] | None = None  # by rank
        self.teams: dict[tuple[int, int], Team] = {}  # by kind and rank
        # Of collective passes, by kind and number: whether the next one is skipped, and `left`.
        self.decided: dict[tuple[int, int], tuple[bool, int]] = {}
        self.known = 0  # the version of the links behind the teams
        self.activity = HostTime()
        self.ran = 0
        self.skipped = 0
        self.charged = 0.0  # s on this machine; of collective passes, s of simulated time
        self.saved = 0.0  # s of this machine

    def entry(self, rank: Rank, key: Hashable) -> Entry:
        """The entry of a pass by `rank`."""
        full = key if self.scope == "global" else (rank.pid, key)
        entry = self.entries.get(full)
        if entry is None:
            entry = self.entries[full] = self._add(rank) if self.collective else Entry()
        return entry

    def _add(self, rank: Rank) -> Entry:
        kind = 0
        while kind < len(self.kinds) and rank.pid in self.kinds[kind]:
            kind += 1
        if kind == len(self.kinds):
            self.kinds.append({})
        entry = self.kinds[kind][rank.pid] = Entry(kind)
        return entry

    def typical(self, entry: Entry, rank: Rank, links: Links) -> float:
        """The time of a skipped pass; of collective ones, the time of the rank's team."""
        estimate = entry.estimate
        found: float | None = None
        if self.collective:
            if self.known != links.version:
                self.known = links.version
                self.teams = {}
            team = self.teams.get((entry.kind, rank.pid))
            if team is None:
                entries = self.kinds[entry.kind]
                ranks = [pid for pid in links.team(rank.pid) if pid in entries]
                team = Team(entries[pid] for pid in ranks)
                for pid in ranks:
                    self.teams[entry.kind, pid] = team
            found = team.typical(self.charge)
        return estimate.typical(self.charge, self.steady) if found is None else found

    def forget(self) -> None:
        """Skip no more passes of the kinds so far."""
        self.left += [entry for entry in self.entries.values() if entry.missed]
        self.entries.clear()

    def _of_rank(self, pid: int) -> list[tuple[Entry, list[Entry]]]:
        """The kinds of passes of a rank after the run, each with those of some other ranks."""
        if self.ended is None:
            self.ended = {}
            alike: dict[Hashable, list[Entry]] = {}
            for full, entry in self.entries.items():
                kind = full[1] if self.scope != "global" and isinstance(full, tuple) else full
                some = alike.setdefault(kind, [])
                if len(some) < POOLED:
                    some.append(entry)
                for rank in entry.missed:
                    self.ended.setdefault(rank, []).append((entry, some))
            for entry in self.left:
                for rank in entry.missed:
                    self.ended.setdefault(rank, []).append((entry, []))
        return self.ended.get(pid, [])

    def skipped_of(self, pid: int, seconds: float) -> list[SkippedPasses]:
        """The skipped passes of a rank; `seconds` is the time of a nanosecond on its core."""
        second = 1.0 if self.collective else seconds
        found = []
        charge = "steady" if self.steady and not self.collective else self.charge
        for entry, others in self._of_rank(pid):
            passes = entry.missed.get(pid, 0)
            if passes:
                blocks = entry.waits.get(pid, passes)
                estimates = [one.estimate for one in others if one is not entry]
                found.append(
                    skipped_passes(entry.estimate, passes, charge, second, blocks, estimates)
                )
        return found

    def report(self) -> SampledFigures:
        """The figures of this place."""
        errors = [
            entry.estimate.error for entry in self.entries.values() if entry.estimate.count > 1
        ]
        trends = [entry.trend for entry in self.entries.values() if entry.trend is not None]
        saved = self.saved
        if self.collective and self.ran:
            saved = self.activity.host * 1e-9 / self.ran * self.skipped
        return {
            "place": self.name,
            "scope": self.scope,
            "kinds": len(self.entries),
            "ran": self.ran,
            "skipped": self.skipped,
            "charged_seconds": self.charged,
            "saved_seconds": saved,
            "largest_relative_error": max(errors, default=None),
            "trend": max(trends, key=abs, default=None),
        }


Meter = Guard | Span

SHORTEST = 20_000.0  # smallest time of a call that is skipped (ns)
POOLED = 16  # ranks whose measures show the variance of one kind of pass
CALLS = 50  # of an empty function, by which the costs of sampling are measured


@record(frozen=True)
class Costs:
    """The times (ns) of the work of sampling, as the clock of a rank measures them.

    That of a skipped call, that of a measured one, and the part of it that is in the measure.
    """

    skipped: int
    measured: int
    inside: float


NO_COSTS = Costs(0, 0, 0.0)


def _empty(one: object, other: object) -> None:
    """Do nothing."""


class Shadow:
    """The sampled places of one run.

    `factor` gives the simulated seconds on a core of some speed (flop/s, None if unknown) that a
    second of this machine is; it is None unless compute is timed natively.
    """

    def __init__(
        self,
        stopwatch: Stopwatch,
        factor: Callable[[float | None], float] | None = None,
        seed: int = 0,
    ) -> None:
        self.clock = stopwatch
        self.factor = factor
        self.native = factor is not None
        self.seed = seed
        self.points: list[Point] = []
        self.failure: UsageError | None = None
        self.links = Links()
        self.dry = False  # whether all passes run
        self.steady = False  # whether blocks take their undisturbed time
        self.costs: Costs | None = None  # of sampling itself; None before the first pass
        # Called for passes that may communicate: the rank, the place, and +1 at the begin, -1 at
        # the end, 0 for a skipped pass.
        self.on_pass: Callable[[int, str, int], None] | None = None

    def point(self, name: str, rule: StoppingRule, **options: Any) -> Point:
        """A new place to sample."""
        point = Point(name, rule, **options)
        point.steady = self.steady
        self.points.append(point)
        return point

    def seconds_on(self, rank: Rank) -> float:
        """Simulated seconds on the rank's core that a nanosecond of this machine is."""
        return 0.0 if self.factor is None else self.factor(rank.host.speed) * 1e-9

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Leave the time inside it out of the rank's compute."""
        self.clock.pause()
        try:
            yield
        finally:
            self.clock.resume()

    def refuse(self, name: str, site: object) -> UsageError:
        """The error for a pass that takes part in the simulation at `site`."""
        error = CommunicationError(
            f"{name}: cannot be sampled, since it communicates or waits, at {site}; to skip that "
            "would leave other ranks waiting. Sample what it computes, or, where all ranks pass "
            "together, add scope=collective"
        )
        if self.failure is None:
            self.failure = error
        return error

    def begin(self, point: Point, entry: Entry, rank: Rank) -> Meter:
        """A pass begins that is measured."""
        meter: Meter
        self.clock.pause()
        if point.collective:
            if self.on_pass is not None:
                self.on_pass(rank.pid, point.name, 1)
            meter = Span(self, point, rank)
        else:
            meter = rank.timer = Guard(rank, point.name, self)
        self.clock.resume()
        return meter

    def end(self, point: Point, entry: Entry, meter: Meter, whole: bool) -> None:
        """A pass ends; one that was broken off does not count."""
        self.clock.pause()
        meter.end()
        if point.collective and self.on_pass is not None:
            self.on_pass(meter.rank.pid, point.name, -1)
        if whole:
            point.ran += 1
            inside = 0.0 if self.costs is None or point.collective else self.costs.inside
            counted = self.count(point, entry, max(0.0, meter.measured() - inside))
            if counted or not point.collective:
                meter.note(entry)
            if not counted:
                self.clock.resume()
                return
            # All ranks skip the same collective passes: the first one decides.
            number = entry.kind, entry.estimate.passes
            if point.collective and number in point.decided:
                entry.done, entry.left = point.decided[number]
            else:
                self.decide(point, entry)
                if point.collective and self.native:
                    point.decided[number] = entry.done, entry.left
        self.clock.resume()

    def count(self, point: Point, entry: Entry, measured: float) -> bool:
        """Count a pass; False if it only fills the caches after skipped passes."""
        if entry.cold:
            entry.cold = False
            if point.rule.warmup:
                entry.estimate.passes += 1
                return False
        entry.estimate.add(measured, point.rule)
        return True

    def decide(self, point: Point, entry: Entry) -> None:
        """Decide after a measure whether the next passes are skipped, and how many."""
        estimate, every = entry.estimate, point.rule.every
        entry.done = not self.dry and estimate.enough(point.rule)
        entry.left = -1 if every is None else every - 1
        if not entry.done or not self.native:
            return
        # Passes whose time rises or falls from pass to pass are not skipped.
        if estimate.count >= entry.again:
            entry.trend = estimate.trend
            entry.again = 2 * estimate.count if entry.trend is not None else 0
        if entry.trend is not None:
            entry.done = False
        elif every is None:
            entry.left = estimate.gap()

    def skip(self, point: Point, entry: Entry, rank: Rank, passes: int = 1) -> None:
        """Charge passes that do not run; the clock is paused."""
        estimate = entry.estimate
        entry.left -= passes
        if entry.left == 0:
            entry.done = False
            entry.cold = point.rule.every is None
        point.skipped += passes
        entry.estimate.apart += passes
        entry.missed[rank.pid] = entry.missed.get(rank.pid, 0) + passes
        if entry.at != rank.engine.now:
            entry.at = rank.engine.now
            entry.waits[rank.pid] = entry.waits.get(rank.pid, 0) + 1
        point.saved += passes * entry.host * 1e-9 / estimate.passes
        if point.charge == "draw":
            if entry.random is None:
                entry.random = Random(f"{self.seed} {rank.pid} {point.name}")
            cost = sum(estimate.draw(entry.random) for _ in range(passes))
        else:
            value = point.typical(entry, rank, self.links)
            # Ranks that share measures do not pay for each other.
            cost = passes * value if point.scope == "global" else entry.cost(passes, value)
        if point.collective:
            if self.on_pass is not None:
                for _ in range(passes):
                    self.on_pass(rank.pid, point.name, 0)
            point.charged += cost
            pass_by(self, entry, rank, cost, passes)
        else:
            point.charged += cost * 1e-9
            self.clock.charge(round(cost))

    def call(
        self,
        point: Point,
        rank: Rank,
        function: Callable[..., object],
        args: tuple[object, ...],
        kwargs: Mapping[str, object],
        constructor: bool = False,
    ) -> Any:
        """Run or skip one call of a sampled function."""
        clock = self.clock
        clock.pause()
        try:
            if self.costs is None:
                self.calibrate(rank)
            # The new object of a constructor is not part of the key.
            described = args[1:] if constructor else args
            entry = point.entry(rank, point.key(described, kwargs))
            if entry.done and entry.outputs is not None:
                self.skip(point, entry, rank)
                if self.costs is not None:
                    clock.charge(-self.costs.skipped)
                return entry.outputs.leave(args, kwargs)
            watch = None
            if entry.short:
                point.ran += 1
                if self.costs is not None:
                    clock.charge(-self.costs.skipped)
            elif point.keep and entry.written is None:
                watch = ArrayWatch(args, kwargs)
        finally:
            clock.resume()
        if entry.short:
            return function(*args, **kwargs)
        meter = self.begin(point, entry, rank)
        whole = False
        try:
            result = function(*args, **kwargs)
            whole = True
        finally:
            self.end(point, entry, meter, whole)
        clock.pause()
        try:
            if self.costs is not None and not point.collective:
                clock.charge(-self.costs.measured)
            if watch is not None and entry.written is None:
                entry.written = watch.written()
            if entry.done and self.native and not point.collective:
                # To skip a short call saves less than it costs in accuracy.
                entry.short = entry.estimate.mean < SHORTEST
            if entry.done and not entry.short:
                entry.outputs = Outputs(
                    result, args, kwargs, entry.written or [], constructor, point.scaled
                )
        finally:
            clock.resume()
        return result

    def calibrate(self, rank: Rank) -> None:
        """Measure what the clock of a rank sees of the work of sampling, by an empty function."""
        self.costs = NO_COSTS
        if not self.native:
            return
        clock = self.clock
        pauses = clock.release()
        began = clock.elapsed()
        found = []
        for _ in range(3):
            point = Point("", StoppingRule(CALLS, None, 0, 10 * CALLS))
            times = [clock.elapsed()]
            for replaced in (_empty, self._replaced(point), self._replaced(point)):
                for _ in range(CALLS):
                    replaced(1.0, 2)
                times.append(clock.elapsed())
            direct, measured, skipped = (
                (end - begin) / CALLS for begin, end in zip(times, times[1:], strict=False)
            )
            inside = point.entry(rank, None).estimate.mean
            found.append(Costs(round(skipped - inside), round(measured - direct), inside - direct))
        clock.charge(began - clock.elapsed())
        clock.restore(pauses)
        # Other work of the computer only adds time.
        self.costs = min(found, key=lambda one: one.skipped)

    def _replaced(self, point: Point) -> Callable[..., object]:
        def replaced(*args: object, **kwargs: object) -> object:
            rank = running()
            if rank is None or rank.in_call or rank.record is not None or self.clock.pauses:
                return None
            return self.call(point, rank, _empty, args, kwargs)

        return replaced

    def skipped_of(self, rank: Rank) -> list[SkippedPasses]:
        """The skipped passes of a rank; none if passes take fixed times."""
        second = self.seconds_on(rank)
        return [
            kind
            for point in self.points
            if self.native
            for kind in point.skipped_of(rank.pid, second)
        ]

    def report(self) -> list[SampledFigures]:
        """The sampled places, for the report of the run."""
        return [point.report() for point in self.points if point.ran or point.skipped]


def running() -> Rank | None:
    """The rank that runs program code; None outside any rank."""
    rank = current()
    return None if rank.program is None else rank
