"""Compare the predicted times of collectives with SMPI's, over reference rows.

    compare_collectives.py [ROWS.jsonl[.gz] [PLATFORMS]] [--only collective=bcast,ranks=8|16]
                           [--sample N --seed K] [--list N] [--json FILE] [--as-mpi]

Each row has platform, model, collective, algorithm, ranks, bytes (of one block) and seconds (one
figure a rank), measured by one call of the collective, which all ranks enter at the same instant up
to rounding; `PLATFORMS/PLATFORM.MODEL.xml` is the machine. Rows of one (platform, model,
collective, algorithm, ranks) were one run, in the order of bytes.

Two of SMPI's algorithms leave out the end of a message; they are compared with variants that do so
too, or as MPI asks with `--as-mpi`.

The schedules run on the kernel alone, with no Python rank, so a full comparison takes minutes.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from smpi_variants import VARIANTS, register

from pysmpi.collectives.cache import schedule_for, schedule_with_ready
from pysmpi.collectives.call import Call
from pysmpi.collectives.running import Lookout, Patience, find_live
from pysmpi.collectives.selection import Selection
from pysmpi.errors import PysmpiError
from pysmpi.kernel.core import Core
from pysmpi.kernel.engine import Engine
from pysmpi.kernel.plan import Transport
from pysmpi.kernel.process import Process
from pysmpi.kernel.requests import Context
from pysmpi.kernel.schedule import Schedule
from pysmpi.network.models import find
from pysmpi.platform.config import Settings
from pysmpi.platform.loader import load
from pysmpi.platform.model import Platform

Row = dict
DATA = Path(__file__).resolve().parents[1] / "tests" / "data"
FLOOR = 1e-6  # seconds below which a difference is taken relative to this


def read_rows(path: Path) -> list[Row]:
    """The rows of a JSON-lines file, compressed or not."""
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt") as file:
        return [json.loads(line) for line in file]


def group_of(row: Row) -> tuple:
    """The run that a row belongs to."""
    keys = ("platform", "model", "collective", "algorithm", "ranks")
    return tuple(row[key] for key in keys)


def host_names(platform: str, ranks: int) -> list[str]:
    """The host of each rank: in order, spread over graphene's four cabinets."""
    if platform == "graphene":
        return [f"graphene-{i * (144 // ranks)}" for i in range(ranks)]
    return [f"n-{i}" for i in range(ranks)]


@dataclass
class Machines:
    """Platforms, read once."""

    folder: Path
    platforms: dict[str, Platform] = field(default_factory=dict)

    def transport(self, platform: str, model: str, ranks: int) -> Transport:
        """The hybrid model on the hosts of that many ranks."""
        name = f"{platform}.{model}"
        if name not in self.platforms:
            self.platforms[name] = load(str(self.folder / f"{name}.xml"))
        machine = self.platforms[name]
        hosts = [machine.host(host) for host in host_names(platform, ranks)]
        return find("hybrid").build(machine, hosts, Settings(machine.config))


def call_of(row: Row, rank: int, ready: frozenset[str]) -> Call:
    """The call of one rank for one row: blocks of bytes, nodes of one rank."""
    op, ranks, count = row["collective"], row["ranks"], row["bytes"]
    counts = (count,) * ranks
    overrides = {} if op in ("scan", "exscan") else {op: row["algorithm"]}
    return Call(
        op, rank, ranks, count=0 if op == "barrier" else count, ready=ready,
        send_counts=counts if op == "alltoallv" else None,
        recv_counts=counts if op in ("allgatherv", "reduce_scatter", "alltoallv") else None,
        selection=Selection("default", overrides),
    )  # fmt: skip


class Job:
    """Ranks without programs: processes of the kernel that do the work of the measured program.

    For the k-th size each rank sleeps until the instant 100 k, in whole microseconds, calls the
    collective, sleeps until 100 k + 99, and sends its duration to rank 0. The microseconds make
    ranks enter up to half of one apart, which shows in the shortest times.
    """

    def __init__(self, transport: Transport, ranks: int) -> None:
        self.engine = Engine(transport, ranks)
        self.context = Context(0, [])
        self.seconds: list[list[float]] = []
        self.phases: list[Iterator[Schedule]] = []
        self.boards: list[dict] = []  # of calls that decide while they run
        self.patience = Patience()
        for rank in range(ranks):
            process = Process(self.engine, rank, rank, Core(1e9))
            process.resume = self._resuming(rank)
            self.context.members.append(process)

    def _resuming(self, rank: int) -> Callable[[], None]:
        def resume() -> None:
            schedule = next(self.phases[rank], None)
            if schedule is not None:
                process = self.context.members[rank]
                process.prepare(schedule, self.context, rank, 0)
                process.launch()

        return resume

    def _until(self, instant: float) -> Schedule:
        schedule = Schedule()
        wait = instant - self.engine.now
        if wait > 0:
            schedule.sleep(round(wait * 1e6) * 1e-6)
        return schedule

    def _program(self, rows: list[Row], rank: int) -> Iterator[Schedule]:
        ready: frozenset[str] = frozenset()
        for k, row in enumerate(rows, 1):
            call = call_of(row, rank, ready)
            live = find_live(call)
            schedule, ready = (
                schedule_with_ready(call) if live is None else (Schedule(), call.ready)
            )
            yield self._until(100.0 * k)
            start = self.engine.now
            if live is not None:
                yield from live(
                    call, Lookout(self.context, rank, 0, self.boards[k - 1], self.patience)
                )
            else:
                yield schedule
            self.seconds[k - 1][rank] = self.engine.now - start
            yield self._until(100.0 * k + 99)
            yield schedule_for(Call("gather", rank, call.size, count=8), "default")

    def run(self, rows: list[Row]) -> list[list[float]]:
        """Execute the collectives of one job; for each the seconds that it takes each rank."""
        members = self.context.members
        self.seconds = [[float("nan")] * len(members) for _ in rows]
        self.boards = [{} for _ in rows]
        self.phases = [self._program(rows, rank) for rank in range(len(members))]
        for process in members:
            process.resume()
        self.engine.run()
        return self.seconds


@dataclass
class Score:
    """The deviation of a group of rows."""

    times: int = 0
    within1: int = 0
    within5: int = 0
    worst: float = 0.0
    worst_bytes: int = 0
    error: str = ""

    def add(self, got: list[float], want: list[float], nbytes: int) -> None:
        """Count the times of one row."""
        for mine, theirs in zip(got, want, strict=True):
            difference = abs(mine - theirs) / max(theirs, FLOOR)
            self.times += 1
            self.within1 += difference <= 0.01
            self.within5 += difference <= 0.05
            if not difference <= self.worst:
                self.worst, self.worst_bytes = difference, nbytes


def score(machines: Machines, rows: list[Row]) -> Score:
    """Run the rows of one group in order of bytes, on one communicator."""
    result = Score()
    rows = sorted(rows, key=lambda row: row["bytes"])
    first = rows[0]
    job = Job(machines.transport(first["platform"], first["model"], first["ranks"]), first["ranks"])
    try:
        seconds = job.run(rows)
    except PysmpiError as error:
        result.error = str(error)
        seconds = job.seconds
    for row, got in zip(rows, seconds, strict=True):
        result.add(got, row["seconds"], row["bytes"])
    return result


def main(argv: list[str] | None = None) -> int:
    """Compare and print; 0 if the share asked for was reached."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", type=Path, nargs="?", default=DATA / "coll.jsonl.gz")
    parser.add_argument("platforms", type=Path, nargs="?", default=DATA / "platforms")
    parser.add_argument("--only", default="", help="KEY=VALUE|VALUE,KEY=VALUE...")
    parser.add_argument("--sample", type=int, default=0, help="number of groups to draw")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--list", type=int, default=20, help="groups to print, worst first")
    parser.add_argument("--json", type=Path, help="write the figures of each group")
    parser.add_argument("--as-mpi", action="store_true", help="leave nothing out where SMPI does")
    parser.add_argument("--need", type=float, default=98.0, help="percent within 1 %%")
    options = parser.parse_args(argv)
    register()
    groups: dict[tuple, list[Row]] = defaultdict(list)
    wanted = [item.split("=") for item in options.only.split(",") if item]
    for row in read_rows(options.rows):
        if all(str(row[key]) in values.split("|") for key, values in wanted):
            if not options.as_mpi:
                row["algorithm"] = VARIANTS.get(group_of(row)[2:4], row["algorithm"])
            groups[group_of(row)].append(row)
    keys = sorted(groups)
    if options.sample and options.sample < len(keys):
        keys = sorted(random.Random(options.seed).sample(keys, options.sample))
    machines = Machines(options.platforms)
    scores = {}
    for i, key in enumerate(keys):
        if sys.stderr.isatty() and i % 20 == 0:
            print(f"\r{i}/{len(keys)}", end="", file=sys.stderr)
        scores[key] = score(machines, groups[key])
    report(scores, options.list)
    if options.json:
        figures = [{"group": key, **vars(value)} for key, value in scores.items()]
        options.json.write_text(json.dumps(figures, indent=0))
    total = sum(value.times for value in scores.values())
    good = sum(value.within1 for value in scores.values())
    return 0 if 100.0 * good >= options.need * total else 1


def report(scores: dict[tuple, Score], limit: int) -> None:
    """Print algorithms that are off, then the totals."""
    by_algorithm: dict[tuple, Score] = defaultdict(Score)
    for key, value in scores.items():
        mine = by_algorithm[key[2:4]]
        mine.times += value.times
        mine.within1 += value.within1
        mine.within5 += value.within5
        if value.worst > mine.worst or value.worst != value.worst:
            mine.worst, mine.worst_bytes = value.worst, value.worst_bytes
        mine.error = mine.error or value.error
    off = [(value.times - value.within1, key) for key, value in by_algorithm.items()]
    for missed, key in sorted(off, reverse=True)[:limit]:
        if missed:
            value = by_algorithm[key]
            print(
                f"{' '.join(key):45s} {missed:6d} of {value.times:6d} beyond 1 %,"
                f" worst {100 * value.worst:.1f} % at {value.worst_bytes} B {value.error}"
            )
    total = sum(value.times for value in scores.values())
    good = sum(value.within1 for value in scores.values())
    fair = sum(value.within5 for value in scores.values())
    print(
        f"{len(scores)} groups, {total} per-rank times:"
        f" {100 * good / max(total, 1):.2f} % within 1 %,"
        f" {100 * fair / max(total, 1):.2f} % within 5 %"
    )


if __name__ == "__main__":
    sys.exit(main())
