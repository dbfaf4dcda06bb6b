"""Lets the faults of a job happen in simulated time.

As under a launcher, the failure of a rank ends the job. The report names the failed part, the date,
the line of the rank, and the lines at which others waited.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from pysmpi import text
from pysmpi.diagnostics import PartFailed
from pysmpi.errors import UsageError
from pysmpi.faults.changes import FIRST, MachineChanges, parts_of
from pysmpi.faults.noise import begin_noise
from pysmpi.faults.noise_files import read_noise
from pysmpi.faults.specification import Fault, Noise, RandomFaults, parse_fault
from pysmpi.job.options import Options
from pysmpi.kernel.process import Process
from pysmpi.kernel.requests import Send
from pysmpi.mpi.base.ranks import Rank
from pysmpi.platform.profiles import LINK_STATE, OF_HOSTS, ProfileDef
from pysmpi.ranks.instruments import Instrument, InstrumentedRun
from pysmpi.ranks.outcomes import RankState
from pysmpi.ranks.simulation import Simulation
from pysmpi.reports.deadlock import group_waits, table
from pysmpi.reports.exit_status import MPI_ERROR
from pysmpi.reports.result import Result
from pysmpi.reports.waiting import WaitFinder

# Models in which a message is a flow through the links of its route.
FLOWS = ("hybrid", "fluid", "cm02", "lv08", "ib")


class Injection(Instrument):
    """The faults of one job, and the changes that the profiles of its platform say."""

    def __init__(
        self,
        faults: Sequence[Fault | RandomFaults | Noise],
        seed: int,
        profiles: Sequence[ProfileDef] = (),
    ) -> None:
        self.faults = [one for one in faults if isinstance(one, Fault | RandomFaults)]
        self.noise = [one for one in faults if not isinstance(one, Fault | RandomFaults)]
        self.profiles = list(profiles)
        self.seed = seed
        self.report: str | None = None
        self.simulation: Any = None
        self.run: Any = None
        self.changes: Any = None

    def prepare(self, run: InstrumentedRun) -> None:
        """Check that the machine has the parts that fail."""
        self.run = run
        hosts = {host.name for host in run.platform.hosts}
        for fault in self.faults:
            if isinstance(fault, RandomFaults):
                continue
            if fault.kind == "rank" and int(fault.name) >= run.options.nprocs:
                raise UsageError(f"{fault.where}: expected a rank below {run.options.nprocs}")
            if (fault.kind == "host" and fault.name not in hosts) or (
                fault.kind == "link" and not run.platform.links_of(fault.name)
            ):
                raise UsageError(
                    f"{fault.where}: no {fault.kind} {fault.name!r} in the platform "
                    f"{run.platform.name}"
                )
        if any(one.kind not in OF_HOSTS for one in self.profiles):
            self._check_model(f"{run.platform.source}: profiles of links")
        for fault in self.faults:
            if isinstance(fault, Fault) and fault.kind == "link":
                self._check_model(fault.where)

    def _check_model(self, where: str) -> None:
        """Links change only under models whose messages flow through them."""
        name = self.run.machine.model.name
        if name not in FLOWS:
            raise UsageError(
                f"{where}: expected a model whose messages share links ({', '.join(FLOWS)}), got "
                f"model {name}"
            )

    def ranks_ready(self, simulation: Simulation) -> None:
        """Note the dates of the faults."""
        self.simulation = simulation
        of_parts = [one for one in self.faults if isinstance(one, Fault) and one.kind != "rank"]
        parts = parts_of(self.run.platform, self.profiles, of_parts)
        self.changes = MachineChanges(simulation, parts, self._off)
        if any(part.kind == LINK_STATE for part in parts):
            simulation.universe.listen(Flows(self.message_begins))
        self.changes.begin()
        begin_noise(self.noise, simulation, self.seed)
        for fault in self.faults:
            for one in self._drawn(fault) if isinstance(fault, RandomFaults) else [fault]:
                if one.kind == "rank":
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
        time = generator.expovariate(faults.rate * len(ranks))
        rank = generator.randrange(len(ranks))
        return [Fault("rank", str(rank), time, None, faults.text)]

    def _at(self, fault: Fault) -> None:
        """Let a rank die at its date."""
        simulation = self.simulation
        place = simulation.universe.processes[0]
        event = Process(simulation.engine, place.pid, place.slot, place.core)

        def happens() -> None:
            simulation.engine.now = max(simulation.engine.now, fault.date)
            rank = simulation.universe.ranks[int(fault.name)]
            if simulation.running and self._runs(rank):
                self._end(fault, [rank])

        event.resume = happens
        simulation.engine.queue.push(fault.date * FIRST, event)

    def _runs(self, rank: Rank) -> bool:
        state: RankState = self.simulation.outcomes[rank.pid].state
        return state is RankState.RUNNING

    def _off(self, fault: Fault, used: bool) -> None:
        """A host dies with its ranks; a link fails the messages on it."""
        if fault.kind == "link":
            if used:
                self._end(fault, [], "; messages are on it")
            return
        ranks = self.simulation.universe.ranks
        alive = [rank for rank in ranks if rank.host.name == fault.name and self._runs(rank)]
        if alive:
            self._end(fault, alive)

    def message_begins(self, send: Send, now: float) -> None:
        """A message is on its way: not over a dead link."""
        off = self.changes.off
        if not off or self.report is not None or self.changes.carried(send):
            return
        for name in sorted(off.keys() & self.changes.names_of(send)):
            members = send.context.members
            source, target = members[send.source].pid, members[send.destination].pid
            more = f"; a message from rank {source} to rank {target} needs it"
            self._end(off[name], [], more)
            return

    def finish(self, result: Result) -> None:
        """Report the failure that has ended the run."""
        if self.report is not None:
            result.error = self.report
            result.exit_status = MPI_ERROR

    def _end(self, fault: Fault, ranks: list[Rank], more: str = "") -> None:
        """A failure ends the job."""
        if self.report is not None:
            return
        simulation = self.simulation
        if ranks and simulation.universe.tolerant:
            for rank in ranks:
                time = text.seconds(fault.date)
                simulation.survive(rank, f"failed at t={time}, {fault.where}")
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
        time = text.seconds(fault.date)
        lines = [
            f"{PartFailed.code} {PartFailed.title}: {what} failed at t={time} (simulated), "
            f"{fault.where}{more}"
        ]
        lines += table([*groups, *others], ())
        lines.append(f"  real MPI: the launcher ends the job.   help: pysmpi explain "
                     f"{PartFailed.code}")  # fmt: skip
        self.report = "\n".join(lines)
        simulation.engine.stop()
        for rank in ranks:
            simulation.kill(rank)


class Flows:
    """Notifies a function of the messages that begin to flow, if links can go off."""

    def __init__(self, flow_started: Callable[[Send, float], object]) -> None:
        self.flow_started = flow_started


def injection_of(options: Options, profiles: Sequence[ProfileDef]) -> Injection:
    """The faults that the options of a run ask for, and the profiles of its platform."""
    texts = [options.fault] if isinstance(options.fault, str) else options.fault
    noise = [] if options.noise is None else read_noise(options.noise)
    return Injection([*map(parse_fault, texts), *noise], options.seed, profiles)
