"""The cost of the kernel's own operations, without any Python rank.

    python benchmarks/micro.py

Figures are the best of some repeats.  The last column divides by the time of an empty Python call
on this machine, so that figures of different machines can be compared.
"""

from __future__ import annotations

import sys
import time
import timeit
from collections.abc import Callable

from side_by_side import TOP, parser, run, table, write_json

sys.path.insert(0, str(TOP))

from pysmpi.kernel import engine as engine_module  # noqa: E402
from pysmpi.kernel.activities import Activity, Constraint  # noqa: E402
from pysmpi.kernel.core import Core  # noqa: E402
from pysmpi.kernel.engine import Engine  # noqa: E402
from pysmpi.kernel.events import EventQueue  # noqa: E402
from pysmpi.kernel.plan import Plan, Transport  # noqa: E402
from pysmpi.kernel.process import Process  # noqa: E402
from pysmpi.kernel.requests import Context  # noqa: E402
from pysmpi.kernel.schedule import Schedule  # noqa: E402
from pysmpi.kernel.sharing import System  # noqa: E402

BANDWIDTH, LATENCY = 125e6, 24e-6


class Star(Transport):
    """Hosts around one switch, each with a link up and a link down; cross traffic of 5 %."""

    def __init__(self, hosts: int) -> None:
        self.up = [Constraint(BANDWIDTH) for _ in range(hosts)]
        self.down = [Constraint(BANDWIDTH) for _ in range(hosts)]

    def plan(self, source: int, destination: int, nbytes: int) -> Plan:
        """A message that starts when both sides are there, whose sender goes on at once."""
        links = [self.up[source], self.down[destination], self.down[source], self.up[destination]]
        return Plan(
            2 * LATENCY, nbytes + 16.0, BANDWIDTH, 2 * LATENCY, 1.0, links, [1.0, 1.0, 0.05, 0.05]
        )


def lone_flow() -> tuple[Callable[[], object], int]:
    """A flow that fits comes and goes."""
    links, weights = [Constraint(BANDWIDTH) for _ in range(4)], [1.0, 1.0, 0.05, 0.05]

    def work() -> None:
        system = System(EventQueue())
        for _ in range(10_000):
            flow = Activity(1e6, 1.0, BANDWIDTH / 2, links, weights)
            system.add(flow)
            system.remove(flow)

    return work, 10_000


def all_to_all() -> tuple[Callable[[], object], int]:
    """The fair rates of flows between all pairs of 64 hosts, solved together."""
    pairs = [(a, b) for a in range(64) for b in range(64) if a != b]

    def work() -> None:
        star, system = Star(64), System(EventQueue())
        for a, b in pairs:
            plan = star.plan(a, b, 1000)
            system.add(Activity(1e6, 1.0, BANDWIDTH, plan.constraints, plan.weights))
        system.share()

    return work, len(pairs)


def schedules(ranks: int, build: Callable[[Schedule, int], None]) -> Callable[[], Engine]:
    """A world of processes that execute the schedule that `build` makes for each."""
    made = []
    for rank in range(ranks):
        schedule = Schedule()
        build(schedule, rank)
        made.append(schedule)

    def work() -> Engine:
        engine = Engine(Star(ranks), ranks)
        processes = [Process(engine, rank, rank, Core(1e9)) for rank in range(ranks)]
        context = Context(0, processes)
        for rank, process in enumerate(processes):
            process.resume = lambda: None
            process.prepare(made[rank], context, rank, 0)
            process.launch()
        engine.run()
        return engine

    return work


def ring() -> tuple[Callable[[], object], int]:
    """Messages of 1,000 bytes around 256 processes."""

    def build(schedule: Schedule, rank: int) -> None:
        for _ in range(40):
            schedule.sendrecv((rank + 1) % 256, 1000, (rank - 1) % 256, 1000)

    return schedules(256, build), 256 * 40


def halving() -> tuple[Callable[[], object], int]:
    """Recursive doubling of 1,024 processes."""

    def build(schedule: Schedule, rank: int) -> None:
        for bit in range(10):
            schedule.sendrecv(rank ^ 1 << bit, 1024, rank ^ 1 << bit, 1024)

    return schedules(1024, build), 1024 * 10


def linear_all_to_all() -> tuple[Callable[[], object], int]:
    """All pairs of 64 processes at once."""

    def build(schedule: Schedule, rank: int) -> None:
        for step in range(1, 64):
            schedule.irecv((rank - step) % 64, 1024)
            schedule.isend((rank + step) % 64, 1024)
        schedule.waitall()

    return schedules(64, build), 64 * 63


def incast() -> tuple[Callable[[], object], int]:
    """All but one of 512 processes send to that one, which receives in order of rank."""

    def build(schedule: Schedule, rank: int) -> None:
        if rank:
            schedule.send(0, 1024)
        else:
            for peer in range(1, 512):
                schedule.irecv(peer, 1024)
            schedule.waitall()

    return schedules(512, build), 511


def fan_out() -> tuple[Callable[[], object], int]:
    """One of 512 processes sends to all others at once."""

    def build(schedule: Schedule, rank: int) -> None:
        if rank:
            schedule.recv(0, 1024)
        else:
            for peer in range(1, 512):
                schedule.isend(peer, 1024)
            schedule.waitall()

    return schedules(512, build), 511


CASES = {
    "sharing: a flow that fits comes and goes": lone_flow,
    "sharing: 4,032 flows planned and shared, a flow": all_to_all,
    "schedule: ring of 256, a message": ring,
    "schedule: recursive doubling of 1,024, a message": halving,
    "schedule: linear alltoall of 64, a message": linear_all_to_all,
    "schedule: incast of 512, a message": incast,
    "schedule: fan-out of 512, a message": fan_out,
}


def empty_call() -> float:
    """Seconds of a Python function call that does nothing."""

    def nothing() -> None:
        pass

    return min(timeit.repeat(nothing, number=100_000, repeat=5)) / 100_000


def main() -> int:
    """Measure all cases and print the table."""
    chosen = parser("kernel micro-benchmarks", repeats=5).parse_args()
    compiled = not str(engine_module.__file__).endswith(".py")
    unit = empty_call()
    lines, records = [], []
    for name, prepare in CASES.items():
        work, count = prepare()
        walls = []
        for _ in range(chosen.repeats):
            start = time.perf_counter()
            work()
            walls.append((time.perf_counter() - start) / count)
        lines.append((name, f"{min(walls) * 1e6:.2f}", f"{min(walls) / unit:.0f}"))
        records.append({"name": name, "seconds": walls, "calls": min(walls) / unit})
    kernel = "compiled" if compiled else "interpreted"
    print(f"kernel {kernel}, empty call {unit * 1e9:.0f} ns")
    print(table(("operation", "us", "calls"), lines))
    write_json(chosen.json, f"micro ({kernel})", records)
    return 0


if __name__ == "__main__":
    run(main)
