"""Lets the faults of a job happen in simulated time.

As under a launcher, the failure of a rank ends the job. The report says what failed and when, where
the rank was, and where the others waited.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from pysmpi import text
from pysmpi.diagnostics import PartFailed
from pysmpi.errors import UsageError
from pysmpi.faults.specification import Fault, RandomFaults, parse_fault
from pysmpi.kernel.process import Process
from pysmpi.kernel.requests import Send
from pysmpi.mpi.base.ranks import Rank
from pysmpi.runtime.deadlock import group_waits, table
from pysmpi.runtime.job import Job
from pysmpi.runtime.simulation import RankState, Simulation
from pysmpi.runtime.waiting import Census


class SlowTimer:
    """The timer of a rank whose host is slower: its compute takes `factor` times as long."""

    def __init__(self, timer: Any, factor: float) -> None:
        self._timer = timer
        self._factor = factor

    def stop(self) -> float:
        """Stop it; the simulated seconds of compute."""
        return float(self._timer.stop()) * self._factor

    def __getattr__(self, name: str) -> Any:
        return getattr(self._timer, name)


class Injection:
    """The faults of one job."""

    def __init__(self, faults: Sequence[Fault | RandomFaults], seed: int) -> None:
        self.faults = list(faults)
        self.seed = seed
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
                    f"--fault {fault.text}: found {job.options.nprocs} ranks, expected a lower rank"
                )
            known = {"host": hosts, "link": links}.get(fault.kind)
            if known is not None and fault.name not in known:
                raise UsageError(
                    f"--fault {fault.text}: found no {fault.kind} {fault.name!r} in the platform "
                    f"{job.platform.name}"
                )
        before: Callable[[Simulation], Any] | None = job.on_ready

        def ready(simulation: Simulation) -> None:
            if before is not None:
                before(simulation)
            self.simulation = simulation
            self.begin()

        job.on_ready = ready

    def begin(self) -> None:
        """The ranks are there: note the dates."""
        for fault in self.faults:
            for one in self._drawn(fault) if isinstance(fault, RandomFaults) else [fault]:
                self._at(one)

    def _drawn(self, faults: RandomFaults) -> list[Fault]:
        """The first failure; it ends the job."""
        generator = random.Random(f"faults {self.seed}")
        ranks = self.simulation.universe.ranks
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
        """Compute of a rank takes longer; also of one that has not begun."""
        if rank.timer is not None:
            rank.timer = SlowTimer(rank.timer, factor)
            return
        equip = rank.world.equip

        def later(other: Rank) -> None:
            if equip is not None:
                equip(other)
            if other is rank and other.timer is not None:
                other.timer = SlowTimer(other.timer, factor)

        rank.world.equip = later

    def _link(self, fault: Fault) -> None:
        """A link is slower from now on, or carries nothing any more."""
        transport = self.simulation.engine.book.transport
        system = self.simulation.engine.system
        for link in self.job.platform.links:
            if link.name == fault.name and fault.slow is not None:
                resource = transport.resource_of(link)
                system.set_capacity(resource.constraint, resource.constraint.capacity / fault.slow)
        if fault.slow is None:
            self.dead_links[fault.name] = fault
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
        census = Census(simulation)
        waits = [wait for rank in simulation.waiting() for wait in census.waits(rank)]
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
            f"--fault {fault.text}{more}"
        ]
        lines += table([*groups, *others], ())
        lines.append(f"  real MPI: the launcher ends the job.   help: pysmpi explain "
                     f"{PartFailed.code}")  # fmt: skip
        self.report = "\n".join(lines)
        simulation.engine.stop()
        for rank in ranks:
            simulation.kill(rank)


def injection_of(job: Job) -> Injection | None:
    """The faults that the options of a job ask for, attached to it."""
    texts = job.options.fault
    if not texts:
        return None
    found = [parse_fault(one) for one in ([texts] if isinstance(texts, str) else texts)]
    injection = Injection(found, job.options.seed)
    injection.attach(job)
    return injection
