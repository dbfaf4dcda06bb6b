"""Lets the faults of a job happen in simulated time.

As under a launcher, the failure of a rank ends the job. The report names the failed part, the date,
the line of the rank, and the lines at which others waited.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from pysmpi import text
from pysmpi.diagnostics import PartFailed
from pysmpi.errors import UsageError
from pysmpi.faults.specification import Fault, RandomFaults, parse_fault
from pysmpi.kernel.activities import present
from pysmpi.kernel.plan import PlanBook
from pysmpi.kernel.process import Process
from pysmpi.kernel.requests import Send
from pysmpi.mpi.base.ranks import Lifecycle, Rank
from pysmpi.platform.points import Link
from pysmpi.platform.profiles import (
    BANDWIDTH,
    HOST_STATE,
    LATENCY,
    OF_HOSTS,
    SPEED,
    ProfileDef,
    SpeedProfile,
)
from pysmpi.runtime.job import Job
from pysmpi.runtime.reports.deadlock import group_waits, table
from pysmpi.runtime.reports.waiting import WaitFinder
from pysmpi.runtime.simulation import RankState, Simulation

# Models in which a message is a flow through the links of its route.
FLOWS = ("hybrid", "fluid", "cm02", "lv08", "ib")


class _OtherTimer:
    """The lifecycle of a world in which one rank gets another timer."""

    def __init__(
        self, usual: Lifecycle, rank: Rank, wrap: Callable[[object], object]
    ) -> None:
        self._usual = usual
        self._rank = rank
        self._wrap = wrap
        self.begin, self.end = usual.begin, usual.end

    def equip(self, rank: Rank) -> None:
        """Give a rank what belongs to it."""
        self._usual.equip(rank)
        if rank is self._rank and rank.timer is not None:
            rank.timer = self._wrap(rank.timer)


class ProfileTimer:
    """The timer of a rank whose host has a profile of its speed."""

    def __init__(self, timer: Any, speed: SpeedProfile, rank: Rank) -> None:
        self._timer = timer
        self._speed = speed
        self._rank = rank

    def stop(self) -> float:
        """Stop it; the simulated seconds of compute, from the rank's own clock on."""
        work = float(self._timer.stop())
        rank = self._rank
        return self._speed.seconds(rank.engine.now + rank.process.debt, work)

    def __getattr__(self, name: str) -> object:
        return getattr(self._timer, name)


class SlowTimer:
    """The timer of a rank whose host is slower: its compute takes `factor` times as long."""

    def __init__(self, timer: Any, factor: float) -> None:
        self._timer = timer
        self._factor = factor

    def stop(self) -> float:
        """Stop it; the simulated seconds of compute."""
        return float(self._timer.stop()) * self._factor

    def __getattr__(self, name: str) -> object:
        return getattr(self._timer, name)


class Injection:
    """The faults of one job, and the changes that the profiles of its platform say."""

    def __init__(
        self, faults: Sequence[Fault | RandomFaults], seed: int, profiles: Sequence[ProfileDef] = ()
    ) -> None:
        self.faults = list(faults)
        self.profiles = list(profiles)
        self._due: set[Process] = set()  # events of profiles
        self.seed = seed
        self._listens = False
        self.report: str | None = None
        self.dead_links: dict[str, Fault] = {}
        self.simulation: Any = None
        self.job: Any = None

    def attach(self, job: Job) -> None:
        """Let the faults happen in a job that has not begun."""
        self.job = job
        hosts = {host.name for host in job.platform.hosts}
        links = {link.name for link in job.platform.links}
        for fault in self.faults:
            if isinstance(fault, RandomFaults):
                continue
            if fault.kind == "rank" and int(fault.name) >= job.options.nprocs:
                raise UsageError(
                    f"--fault {fault.text}: expected a rank below {job.options.nprocs}"
                )
            known = {"host": hosts, "link": links}.get(fault.kind)
            if known is not None and fault.name not in known:
                raise UsageError(
                    f"--fault {fault.text}: no {fault.kind} {fault.name!r} in the platform "
                    f"{job.platform.name}"
                )
        if any(one.kind not in OF_HOSTS for one in self.profiles):
            self._check_model(f"{job.platform.source}: profiles of links")
        for fault in self.faults:
            if isinstance(fault, Fault) and fault.kind == "link":
                self._check_model(f"--fault {fault.text}")
        before: Callable[[Simulation], object] | None = job.on_ready

        def ready(simulation: Simulation) -> None:
            if before is not None:
                before(simulation)
            self.simulation = simulation
            self.begin()

        job.on_ready = ready

    def _check_model(self, where: str) -> None:
        """Links change only under models whose messages flow through them."""
        name = self.job.machine.model.name
        if name not in FLOWS:
            raise UsageError(
                f"{where}: expected a model whose messages share links ({', '.join(FLOWS)}), got "
                f"model {name}"
            )

    def begin(self) -> None:
        """The ranks are there: note the dates."""
        for profile in self.profiles:
            if profile.kind == SPEED:
                speed = SpeedProfile(profile.profile)
                for rank in self.simulation.universe.ranks:
                    if rank.host.name == profile.name:
                        self._time(rank, partial(ProfileTimer, speed=speed, rank=rank))
            else:
                self._next(profile, profile.profile.events())
        for fault in self.faults:
            for one in self._drawn(fault) if isinstance(fault, RandomFaults) else [fault]:
                self._at(one)

    def _drawn(self, faults: RandomFaults) -> list[Fault]:
        """The first failure, which ends the job; or one of each rank, if the others go on."""
        generator = random.Random(f"faults {self.seed}")
        ranks = self.simulation.universe.ranks
        if self.simulation.universe.tolerant:
            return [
                Fault("rank", str(rank.pid), generator.expovariate(faults.rate), None, faults.text)
                for rank in ranks
            ]
        date = generator.expovariate(faults.rate * len(ranks))
        rank = generator.randrange(len(ranks))
        return [Fault("rank", str(rank), date, None, faults.text)]

    def _at(self, fault: Fault) -> None:
        simulation = self.simulation
        place = simulation.universe.processes[0]
        event = Process(simulation.engine, place.pid, place.slot, place.core)
        event.resume = lambda: self._happens(fault)
        simulation.engine.queue.push(fault.date, event)

    def _happens(self, fault: Fault) -> None:
        if not self.simulation.running:
            return
        if fault.kind == "link":
            self._link(fault)
        elif fault.slow is not None:
            for rank in self._on_host(fault):
                self._slow(rank, fault.slow)
        else:
            ranks = self._on_host(fault) if fault.kind == "host" else [
                self.simulation.universe.ranks[int(fault.name)]
            ]
            alive = [
                rank for rank in ranks
                if self.simulation.outcomes[rank.pid].state is RankState.RUNNING
            ]  # fmt: skip
            if alive:
                self._end(fault, alive)

    def _on_host(self, fault: Fault) -> list[Rank]:
        return [rank for rank in self.simulation.universe.ranks if rank.host.name == fault.name]

    def _slow(self, rank: Rank, factor: float) -> None:
        """Compute of a rank takes longer."""
        self._time(rank, partial(SlowTimer, factor=factor))

    def _time(self, rank: Rank, wrap: Callable[[object], object]) -> None:
        """Wrap the timer of a rank; also of one that has not begun."""
        if rank.timer is not None:
            rank.timer = wrap(rank.timer)
            return
        rank.world.lifecycle = _OtherTimer(rank.world.lifecycle, rank, wrap)

    def _next(self, one: ProfileDef, events: Iterator[tuple[float, float]]) -> None:
        """Let the next event of a profile happen at its date."""
        found = next(events, None)
        if found is None:
            return
        date, value = found
        simulation = self.simulation
        place = simulation.universe.processes[0]
        event = Process(simulation.engine, place.pid, place.slot, place.core)

        def happens() -> None:
            self._due.discard(event)
            if not simulation.running or self.report is not None:
                return
            self._change(one, date, value)
            # Changes alone wake no rank: if nothing else is due, the ranks are in a deadlock.
            if self._others():
                self._next(one, events)

        if date <= 0.0 and one.kind in (BANDWIDTH, LATENCY):
            self._change(one, date, value)
            self._next(one, events)
            return
        event.resume = happens
        self._due.add(event)
        simulation.engine.queue.push(date, event)

    def _others(self) -> bool:
        """Whether anything but changes is due, now or later."""
        engine = self.simulation.engine
        return engine.more_now() or any(
            event not in self._due for _, event in engine.queue.all()
        )

    def _change(self, one: ProfileDef, date: float, value: float) -> None:
        kind = "host" if one.kind == HOST_STATE else "link"
        fault = Fault(kind, one.name, date, None, "", one.where)
        if one.kind == HOST_STATE:
            ranks = [
                rank for rank in self._on_host(fault)
                if self.simulation.outcomes[rank.pid].state is RankState.RUNNING
            ] if not value else []  # fmt: skip
            if ranks:
                self._end(fault, ranks)
            return
        for link in self.job.platform.links_of(one.name):
            if one.kind == BANDWIDTH:
                self._set_bandwidth(link, value)
            elif one.kind == LATENCY:
                self._flows().resource_of(link).latency = value
                self._replan()
            elif value:
                self.dead_links.pop(link.name, None)
            else:
                self._kill_link(link.name, fault)
                if self._flows().resource_of(link).constraint.count:
                    self._end(fault, [], "; messages are on it")

    def _flows(self) -> Any:
        """The model of the network, without a memory model around it."""
        transport = self.simulation.engine.book.transport
        while not hasattr(transport, "resource_of"):
            transport = transport.network
        return transport

    def _replan(self) -> None:
        """Forget plans that were made with former properties of links."""
        self._flows().paths.clear()
        engine = self.simulation.engine
        engine.book = PlanBook(engine.book.transport, len(engine.book.places))

    def _set_bandwidth(self, link: Link, bandwidth: float) -> None:
        """Change the bandwidth of a link, also for messages on it."""
        transport, system = self._flows(), self.simulation.engine.system
        resource = transport.resource_of(link)
        constraint, before = resource.constraint, resource.bandwidth
        resource.bandwidth = bandwidth
        resource.resistance = transport.weight / bandwidth
        system.set_capacity(constraint, bandwidth)
        for activity in present(constraint):
            # Its bound was the smallest bandwidth of its links; so it is again.
            least = min(one.capacity for one in activity.constraints)
            if activity.system is not None and activity.bound in (before, least):
                system.set_bound(activity, least)
        self._replan()

    def _link(self, fault: Fault) -> None:
        """A link becomes slower, or stops carrying anything."""
        for link in self.job.platform.links:
            if link.name == fault.name and fault.slow is not None:
                bandwidth = self._flows().resource_of(link).bandwidth
                self._set_bandwidth(link, bandwidth / fault.slow)
        if fault.slow is None:
            self._kill_link(fault.name, fault)

    def _kill_link(self, name: str, fault: Fault) -> None:
        """Messages that start on this link fail from here on."""
        self.dead_links[name] = fault
        if not self._listens:
            self._listens = True
            self.simulation.universe.listen(self)

    def flow_started(self, send: Send, now: float) -> None:
        """A message is on its way: not over a dead link."""
        plan = send.plan
        for constraint in () if plan is None else plan.constraints:
            fault = self.dead_links.get(constraint.name)
            if fault is not None and self.report is None:
                members = send.context.members
                source, target = members[send.source].pid, members[send.destination].pid
                self._end(
                    fault, [], f"; a message from rank {source} to rank {target} needs it"
                )

    def _end(self, fault: Fault, ranks: list[Rank], more: str = "") -> None:
        """A failure ends the job."""
        if self.report is not None:
            return
        simulation = self.simulation
        if ranks and simulation.universe.tolerant:
            for rank in ranks:
                where = fault.origin or f"--fault {fault.text}"
                simulation.survive(rank, f"failed at t={text.seconds(fault.date)}, {where}")
                simulation.kill(rank)
            return
        finder = WaitFinder(simulation)
        waits = [wait for rank in simulation.waiting() for wait in finder.waits(rank)]
        lost = {rank.pid for rank in ranks}
        groups = group_waits([wait for wait in waits if wait.pid in lost], True)
        for group in groups:
            group.verb = "was in" if len(group.pids) == 1 else "were in"
        others = group_waits([wait for wait in waits if wait.pid not in lost], True)
        what = {
            "rank": f"rank {fault.name} on host {ranks[0].host.name}" if ranks else "",
            "host": f"host {fault.name} with {text.ranks(lost)}",
            "link": f"link {fault.name}",
        }[fault.kind]
        date = text.seconds(fault.date)
        lines = [
            f"{PartFailed.code} {PartFailed.title}: {what} failed at t={date} (simulated), "
            f"{fault.origin or '--fault ' + fault.text}{more}"
        ]
        lines += table([*groups, *others], ())
        lines.append(f"  real MPI: the launcher ends the job.   help: pysmpi explain "
                     f"{PartFailed.code}")  # fmt: skip
        self.report = "\n".join(lines)
        simulation.engine.stop()
        for rank in ranks:
            simulation.kill(rank)


def injection_of(job: Job) -> Injection | None:
    """The faults that the options of a job ask for and its platform's profiles, attached to it."""
    texts = job.options.fault
    profiles = job.platform.profiles
    if not texts and not profiles:
        return None
    found = [parse_fault(one) for one in ([texts] if isinstance(texts, str) else texts)]
    injection = Injection(found, job.options.seed, profiles)
    injection.attach(job)
    return injection
