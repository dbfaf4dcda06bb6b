"""All comparisons of wall time with one command: a table, a page and a chart.

    python -m benchmarks                          the table
    python -m benchmarks --page docs/explanation/benchmarks.md --chart docs/pictures/benchmarks.svg
    python -m benchmarks --quick                  one short run of each case

A run is a whole command with its start. The commands of a case run by turns, `--repeats` times. The
ratio is that of the medians of wall time; its spread is the smallest and largest ratio of a turn.
Cases of a peer that is not on this machine are left out, and the peer is named. Exit status: 0;
2 if a command failed. A ratio above the wanted one is a figure, not a failure.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import collectives_against_smpi as collectives  # noqa: E402
from side_by_side import (  # noqa: E402
    HERE,
    BenchmarkError,
    Measurement,
    machine,
    pysmpi,
    run,
    table,
    take_turns,
    write_cluster,
    write_json,
)

HOSTS = 1024
NO_SMPI = "no SMPI: smpicc and smpirun are in Debian's libsimgrid-dev"
NO_MPICH = "no MPICH: mpiexec is in `pip install mpich`"
DEFAULT = "smpi/coll-selector:default"
SMPI_OPTIONS = (
    "--cfg=smpi/simulate-computation:no", "--cfg=smpi/wtime:0", "--log=root.thres:critical"
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A program in C and in mpi4py, and the ratio of wall times that is wanted."""

    key: str
    title: str
    program: str
    ranks: int
    arguments: tuple[int, ...]
    wanted: float | None
    options: tuple[str, ...] = ()  # SimGrid options that choose the algorithms
    short: tuple[int, ...] = ()  # arguments with --quick, on `few` ranks
    few: int = 16
    in_c: bool = False  # under pysmpi, too


CASES = (
    Case("ring", "1,000 Sendrecv of 1,000 B around a ring", "ring", 256, (1000, 1000), 1.0,
         short=(20, 1000)),
    Case("large ring", "100 Sendrecv of 200 kB around a ring", "ring", 1024, (100, 200_000), 0.7,
         short=(5, 200_000)),
    Case("halo", "100 exchanges of 1,000 B with four neighbours", "halo", 1024, (100, 1000), 0.7,
         short=(5, 1000)),
    Case("window", "Isend, Irecv, Waitall: 200 times 16 messages of 1,000 B", "window", 64,
         (200, 1000, 16), 1.0, short=(5, 1000, 16)),
    Case("allreduce", "10 Allreduce of 1 KiB, default selector", "allreduce", 1024, (10, 1024),
         0.15, (DEFAULT,), short=(2, 1024)),
    Case("alltoall", "Alltoall of 1 KiB a pair, `basic_linear`", "alltoall", 256, (1, 1024), 0.03,
         (DEFAULT, "smpi/alltoall:basic_linear"), short=(1, 1024)),
    Case("cg", "messages of NAS CG, class A", "cg_messages", 128, (15, 14000), 1.0,
         short=(1, 14000)),
    Case("start", "start and stop", "ring", 256, (1, 1), None, short=(1, 1)),
)  # fmt: skip
# The same source under both simulators.
IN_C = {"ring": 1.0, "halo": 0.7, "window": 1.0, "allreduce": 0.15, "alltoall": 0.03, "start": 1.5}
CASES = (
    *CASES,
    *(
        replace(case, key=f"C {case.key}", wanted=IN_C[case.key], in_c=True)
        for case in CASES
        if case.key in IN_C
    ),
)


@dataclass(frozen=True)
class Pattern:
    """Messages of which the processor time is measured against the number of ranks."""

    name: str
    program: str
    cores: int  # ranks of a node
    messages: int  # of a rank in a repetition
    peers: int  # the most ranks of SMPI that end within a minute


# Ranks, and repetitions: enough that the first ones, which cost more, do not count for much.
SIZES = ((16, 10_000), (256, 600), (4096, 40), (65536, 20))
PATTERNS = (
    Pattern("ring", "ring", 1, 1, 4096),
    Pattern("halo", "halo", 1, 4, 256),
    Pattern("halo, 64 ranks a node", "halo", 64, 4, 256),
)


@dataclass(frozen=True)
class MessageCost:
    """Microseconds of the processor that a message takes."""

    pattern: str
    ranks: int
    ours: float
    theirs: float | None  # of SMPI, where it was run

    def cells(self) -> tuple[str, ...]:
        """The row of the table."""
        theirs = "" if self.theirs is None else f"{self.theirs:.1f}"
        return self.pattern, f"{self.ranks:,}", f"{self.ours:.1f}", theirs


MESSAGE_HEADINGS = ("pattern", "ranks", "us a message", "SMPI")


@dataclass
class Contest:
    """The two sides of a case after their runs."""

    key: str
    title: str
    ranks: int
    peer: str
    ours: Measurement
    theirs: Measurement
    wanted: float | None
    predicted: tuple[float, float] | None = None  # seconds, by the peer and by pysmpi
    seconds: tuple[float, float] = field(init=False)  # medians of the wall time
    ratio: float = field(init=False)
    spread: tuple[float, float] = field(init=False)
    work: float = field(init=False)  # ratio of the medians of processor time

    def __post_init__(self) -> None:
        turns = [mine / other for mine, other in zip(self.ours.wall, self.theirs.wall)]
        self.seconds = self.theirs.median, self.ours.median
        self.ratio = self.ours.median / self.theirs.median
        self.spread = min(turns), max(turns)
        self.work = statistics.median(self.ours.processor) / max(
            statistics.median(self.theirs.processor), 1e-9
        )

    @property
    def in_c(self) -> bool:
        """Whether the program is in C under pysmpi, too."""
        return self.key.startswith("C ")

    def cells(self) -> tuple[str, ...]:
        """The row of the table."""
        return (
            self.title, f"{self.ranks:,}", self.peer,
            *(f"{seconds:.2f}" for seconds in self.seconds), f"{self.ratio:.2f}",
            f"{self.spread[0]:.2f} to {self.spread[1]:.2f}", f"{self.work:.2f}",
            "" if self.wanted is None else f"{self.wanted:g}", str(len(self.ours.wall)),
        )  # fmt: skip

    def record(self) -> dict[str, object]:
        """The row of the JSON file."""
        return {
            "case": self.key, "title": self.title, "ranks": self.ranks, "peer": self.peer,
            "ratio": self.ratio,
            "spread": self.spread, "processor_ratio": self.work, "wanted": self.wanted,
            "predicted": self.predicted, "theirs": self.theirs.record(),
            "ours": self.ours.record(),
        }  # fmt: skip


def restored(row: dict[str, Any]) -> Contest:
    """The contest of a row of the JSON file."""
    sides = [
        Measurement(
            side["command"], side["wall"], side["processor"], side["peak"],
            statuses=tuple(side["statuses"]),
        )
        for side in (row["ours"], row["theirs"])
    ]  # fmt: skip
    predicted = None if row["predicted"] is None else tuple(row["predicted"])
    return Contest(
        row["case"], row["title"], row["ranks"], row["peer"], *sides, row["wanted"], predicted
    )


HEADINGS = (
    "case", "ranks", "peer", "peer s", "pysmpi s", "ratio", "spread", "CPU ratio", "wanted", "runs",
)  # fmt: skip


def smpi_name() -> str:
    """SMPI with its version."""
    said = subprocess.run(["smpirun", "-version"], capture_output=True, text=True)
    words = (said.stdout + said.stderr).split()
    versions = [word for word in words if word[:1].isdigit() and "." in word]
    return f"SMPI {versions[0].rstrip('.,')}" if versions else "SMPI"


class Bench:
    """The files of the comparisons, and the wishes of the user."""

    def __init__(self, directory: Path, quick: bool, repeats: int) -> None:
        self.directory = directory
        self.quick = quick
        self.repeats = repeats
        self.machine, self.hosts = write_cluster(directory, HOSTS)
        self.built: set[str] = set()

    def compiled(self, program: str, *compiler: str) -> Path:
        """A program in C, compiled for SMPI, or by the command of another compiler."""
        name = f"{program}-own" if compiler else program
        path = self.directory / name
        if name not in self.built:
            source = HERE / "c" / f"{program}.c"
            Measurement([*(compiler or ("smpicc",)), "-O2", str(source), "-o", str(path)]).run()
            self.built.add(name)
        return path

    def against_smpi(self, case: Case, peer: str) -> Contest:
        """One case under SMPI and under pysmpi."""
        ranks = case.few if self.quick else case.ranks
        arguments = [str(value) for value in (case.short if self.quick else case.arguments)]
        theirs = ["smpirun", "-np", str(ranks), "-platform", str(self.machine)]
        theirs += ["-hostfile", str(self.hosts), *SMPI_OPTIONS]
        theirs += [f"--cfg={option}" for option in case.options]
        ours: list[object] = ["-n", ranks, "--platform", self.machine, "--hostfile", self.hosts]
        for option in ("smpi/wtime:0", *case.options):
            ours += ["--cfg", option]
        if case.in_c:
            program = self.compiled(case.program, sys.executable, "-m", "pysmpi", "cc")
        else:
            program = HERE / "programs" / f"{case.program}.py"
        sides = (
            Measurement([*theirs, str(self.compiled(case.program)), *arguments]),
            Measurement(pysmpi(*ours, program, *arguments)),
        )
        take_turns(sides, self.repeats)
        predicted = sides[0].figure("simulated"), sides[1].figure("simulated")
        if abs(predicted[1] - predicted[0]) > 0.01 * max(predicted):
            raise BenchmarkError(
                f"{case.key}: SMPI predicts {predicted[0]:.9g} s, pysmpi {predicted[1]:.9g} s"
            )
        return Contest(
            case.key, case.title, ranks, peer, sides[1], sides[0], case.wanted, predicted
        )

    def against_mpich(self) -> Contest:
        """A ring of more real processes than cores, and the same ring simulated."""
        ranks, repeats = (8, "10") if self.quick else (64, "300")
        program = str(HERE / "programs" / "ring.py")
        command = ["mpiexec", "-n", str(ranks), sys.executable, program, repeats, "1000"]
        theirs = Measurement(command)
        ours = Measurement(pysmpi("-n", ranks, program, repeats, "1000"))
        take_turns((theirs, ours), self.repeats)
        return Contest(
            "real ring", f"{repeats} Sendrecv of 1,000 B around a ring, oversubscribed", ranks,
            "MPICH", ours, theirs, 0.03,
        )  # fmt: skip

    def collectives(self) -> Iterator[tuple[str, int, float, float]]:
        """Operation, bytes and processor seconds of SMPI's and pysmpi's calls alone."""
        ranks = 16 if self.quick else 256
        built = self.compiled("collective")
        for case in collectives.CASES:
            for nbytes in [0] if case.op == "barrier" else [1024, 102400]:
                theirs, ours = collectives.sides(
                    case, ranks, nbytes, False, built, self.machine, self.hosts
                )
                for _ in range(min(self.repeats, 3)):
                    ours.measure(600.0)
                    theirs.measure(600.0)
                if ours.failure or theirs.failure:
                    print(f"{case.op}: {ours.failure or theirs.failure}", file=sys.stderr)
                    continue
                yield case.op, nbytes, theirs.seconds, ours.seconds

    def of_a_message(self, smpi: bool) -> Iterator[MessageCost]:
        """The cost of a message of each pattern and number of ranks, and SMPI's if it is there."""
        for pattern in PATTERNS:
            for ranks, calls in SIZES:
                if ranks <= pattern.cores:
                    continue
                if self.quick:
                    if ranks > 256:
                        continue
                    calls = 10
                where = self.directory / f"{pattern.program}-{pattern.cores}-{ranks}"
                where.mkdir()
                machine, hosts = write_cluster(where, ranks // pattern.cores)
                names = hosts.read_text().split()
                hosts.write_text("".join(f"{name}\n" * pattern.cores for name in names))
                commands = [
                    pysmpi(
                        "-n", ranks, "--platform", machine, "--hostfile", hosts,
                        "--cfg", "smpi/wtime:0", HERE / "programs" / f"{pattern.program}.py",
                    )
                ]  # fmt: skip
                if smpi and ranks <= pattern.peers:
                    built = str(self.compiled(pattern.program))
                    commands.append(
                        ["smpirun", "-np", str(ranks), "-platform", str(machine),
                         "-hostfile", str(hosts), *SMPI_OPTIONS, built]
                    )  # fmt: skip
                runs = [
                    Measurement([*command, str(repeats), "1000"])
                    for command in commands
                    for repeats in (1, calls + 1)
                ]
                take_turns(runs, min(self.repeats, 3))
                seconds = [statistics.median(side.processor) for side in runs]
                messages = calls * ranks * pattern.messages
                costs = [
                    (some - none) / messages * 1e6
                    for none, some in zip(seconds[::2], seconds[1::2])
                ]
                print(f"{pattern.name}, {ranks:,} ranks", file=sys.stderr, flush=True)
                yield MessageCost(
                    pattern.name, ranks, costs[0], costs[1] if len(costs) > 1 else None
                )


def page(
    contests: list[Contest],
    operations: list[tuple[str, int, float, float]],
    messages: list[MessageCost],
    missing: list[str],
) -> str:
    """The page with all figures."""
    about = machine()
    load = os.getloadavg()[0]
    lines = [
        "# How fast pysmpi is",
        "",
        "How long does a simulation take? This page compares pysmpi with SMPI, which simulates "
        "programs in C, and with MPICH, which runs them. It also gives the processor time of a "
        "message and of a collective call, from which you can estimate your own run.",
        "",
        "## Whole programs",
        "",
        *_rows(contest for contest in contests if not contest.in_c),
    ]
    lines += ["", *(f"Not measured: {reason}." for reason in missing)] if missing else []
    lines += [
        "",
        "A ratio below 1 means that pysmpi is faster. `peer s` and `pysmpi s` are seconds of wall "
        "time, medians of `runs` runs by turns; a run is a whole command with its start. `spread` "
        "is the smallest and largest ratio of a turn. `CPU ratio` compares processor time, which "
        "other work on the machine disturbs less. `wanted` is the aim of the project.",
        "",
        "Both simulators have the same platform and host file and the same algorithms, no compute "
        "time, and predict the same time to 1 %. The advantage is largest where many messages "
        "share a link, as in an Alltoall.",
        "",
        f"Measured on {date.today()} by `python -m benchmarks --page benchmarks.md`: "
        f"{about['processors']} cores of {about['processor']}, Python {about['python']}; the load "
        f"of the machine was {load:.1f} at the end.",
    ]
    in_c = [contest for contest in contests if contest.in_c]
    if in_c:
        lines += [
            "",
            "## Programs in C",
            "",
            "The same sources in C (`benchmarks/c`) under both simulators, compiled with `smpicc` "
            "and with `pysmpi cc`; all else as above.",
            "",
            *_rows(in_c),
            "",
            "Of the start, Python and the modules that pysmpi imports take 0.2 s.",
        ]
    if messages:
        lines += [
            "",
            "## Processor time of a message",
            "",
            "To estimate a run, multiply the number of its messages by the cost of one. A summary "
            "prints the number. These are messages of 1,000 B: Sendrecv around a ring, and "
            "exchanges with four neighbours (`halo`), with one rank a node if nothing else is "
            "said. A cost is that of a run with many repetitions less that of a run with one. SMPI "
            "ran where its run ends within about a minute.",
            "",
            "| " + " | ".join(MESSAGE_HEADINGS) + " |",
            "|" + " --- |" * len(MESSAGE_HEADINGS),
        ]
        lines += ["| " + " | ".join(cost.cells()) + " |" for cost in messages]
    if operations:
        mean = geometric([ours / theirs for _, _, theirs, ours in operations])
        lines += [
            "",
            "## Collective operations",
            "",
            "Processor seconds of the calls alone (a run with the calls less a run without), with "
            f"SMPI's default algorithms. The geometric mean of the ratios is {mean:.2f} (wanted: "
            f"{collectives.WANTED:g}, and none above {collectives.WORST:g}). In the chart of the "
            "README, their bars are geometric means of one size, with the smallest and the largest "
            "ratio.",
            "",
            "| operation | bytes | SMPI s | pysmpi s | ratio |",
            "| --- | --- | --- | --- | --- |",
        ]
        lines += [
            f"| {op} | {nbytes:,} | {theirs:.2f} | {ours:.2f} | {ours / theirs:.2f} |"
            for op, nbytes, theirs, ours in operations
        ]
    lines += [
        "",
        "## Limits",
        "",
        "- The times of a busy or virtual machine vary by a third; the ratios vary less.",
        "- The programs communicate and do not compute. In a real program, the compute of all "
        "ranks is added.",
        "",
        "`benchmarks/README.md` has more comparisons, and the commands that repeat them.",
        "",
    ]
    return "\n".join(lines)


def _rows(contests: Iterable[Contest]) -> Iterator[str]:
    """The table of contests."""
    yield "| " + " | ".join(HEADINGS) + " |"
    yield "|" + " --- |" * len(HEADINGS)
    for contest in contests:
        yield "| " + " | ".join(contest.cells()) + " |"


def geometric(values: list[float]) -> float:
    """The geometric mean."""
    return math.exp(statistics.fmean(math.log(value) for value in values))


@dataclass(frozen=True)
class Bar:
    """A bar of the chart: a ratio, and the smallest and largest of those behind it."""

    label: str
    ratio: float
    spread: tuple[float, float]


def bars(contests: list[Contest], operations: list[tuple[str, int, float, float]]) -> Iterator[Bar]:
    """A bar for each case, and one for the collective operations of each size."""
    for one in contests:
        yield Bar(f"{one.key}, {one.ranks:,} ranks ({one.peer})", one.ratio, one.spread)
    for nbytes in sorted({nbytes for _, nbytes, _, _ in operations if nbytes}):
        ratios = [ours / theirs for _, size, theirs, ours in operations if size == nbytes]
        label = f"{len(ratios)} collectives of {nbytes // 1024} KiB, 256 ranks (SMPI)"
        yield Bar(label, geometric(ratios), (min(ratios), max(ratios)))


def draw(shown: list[Bar], path: Path) -> None:
    """A chart of the ratios with a line where both are equally fast."""
    try:
        import matplotlib

        matplotlib.use("Agg")
        import matplotlib.pyplot as plt
    except ImportError:
        print("no chart: it needs matplotlib (pip install matplotlib)", file=sys.stderr)
        return
    shown = list(reversed(shown))
    figure, axes = plt.subplots(figsize=(8, 0.45 * len(shown) + 1.2))
    ratios = [bar.ratio for bar in shown]
    errors = [
        [max(0.0, bar.ratio - bar.spread[0]) for bar in shown],
        [max(0.0, bar.spread[1] - bar.ratio) for bar in shown],
    ]
    colours = ["#4878a8" if ratio <= 1.0 else "#c46a3a" for ratio in ratios]
    labels = [bar.label for bar in shown]
    axes.barh(labels, ratios, xerr=errors, color=colours, ecolor="#555555", capsize=2)
    axes.set_xscale("log")
    axes.axvline(1.0, color="black", linewidth=0.8)
    axes.set_xlabel("time of pysmpi over that of the peer (left of 1: pysmpi is faster)")
    for spine in ("top", "right"):
        axes.spines[spine].set_visible(False)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
    plt.close(figure)


def main() -> int:
    """Measure, print, write."""
    keys = [case.key for case in CASES]
    parts = [*keys, "real ring", "collectives", "messages"]
    options = argparse.ArgumentParser(
        prog="python -m benchmarks", description="wall time beside SMPI and MPICH"
    )
    options.add_argument("--quick", action="store_true", help="one short run of each case")
    options.add_argument("--repeats", type=int, default=5, help="runs of each command")
    options.add_argument("--only", action="append", choices=parts, default=[], metavar="CASE",
                         help=f"only this case: {', '.join(parts)}")  # fmt: skip
    options.add_argument("--page", type=Path, metavar="FILE", help="write a page of all figures")
    options.add_argument("--chart", type=Path, metavar="FILE", help="draw the ratios")
    options.add_argument("--json", type=Path, metavar="FILE",
                         help="write all runs; written after each case")  # fmt: skip
    options.add_argument("--add", action="store_true",
                         help="keep the other cases that are in the --json FILE")  # fmt: skip
    chosen = options.parse_args()
    wanted = chosen.only or (parts[:-1] if chosen.quick else parts)
    repeats = 1 if chosen.quick else chosen.repeats
    smpi = shutil.which("smpicc") is not None and shutil.which("smpirun") is not None
    missing = []
    contests: list[Contest] = []
    operations: list[tuple[str, int, float, float]] = []
    messages: list[MessageCost] = []

    if chosen.add and chosen.json is not None and chosen.json.exists():
        for row in json.loads(chosen.json.read_text())["rows"]:
            if "ratio" in row and (row["case"] not in wanted or not chosen.only):
                contests.append(restored(row))
            elif row["case"] == "collective" and "collectives" not in chosen.only:
                figures = float(row["theirs"]), float(row["ours"])
                operations.append((row["operation"], row["bytes"], *figures))
            elif row["case"] == "message" and "messages" not in chosen.only:
                messages.append(
                    MessageCost(
                        row["pattern"], row["ranks"], row["microseconds"], row.get("theirs")
                    )
                )
        if not chosen.only:
            there = {contest.key for contest in contests}
            there |= {"collectives"} if operations else set()
            there |= {"messages"} if messages else set()
            wanted = [key for key in wanted if key not in there]

    def done(contest: Contest) -> None:
        contests.append(contest)
        contests.sort(key=lambda one: parts.index(one.key))
        write_json(chosen.json, "benchmarks", [one.record() for one in contests])
        print(f"{contest.key}: {contest.ratio:.2f}", file=sys.stderr, flush=True)

    with tempfile.TemporaryDirectory() as name:
        bench = Bench(Path(name), chosen.quick, repeats)
        if not smpi:
            missing.append(NO_SMPI)
        else:
            peer = smpi_name()
            for case in CASES:
                if case.key in wanted:
                    done(bench.against_smpi(case, peer))
        if "real ring" in wanted:
            if shutil.which("mpiexec") is None:
                missing.append(NO_MPICH)
            else:
                done(bench.against_mpich())
        if smpi and "collectives" in wanted:
            operations = list(bench.collectives())
        if "messages" in wanted:
            messages = list(bench.of_a_message(smpi))

    if chosen.quick:
        print("short runs on few ranks: most of each is the start", file=sys.stderr)
    if contests:
        print(table(HEADINGS, [contest.cells() for contest in contests]))
    if operations:
        rows = [
            (op, f"{nbytes:,}", f"{theirs:.2f}", f"{ours:.2f}", f"{ours / theirs:.2f}")
            for op, nbytes, theirs, ours in operations
        ]
        print()
        print(table(("collective", "bytes", "SMPI s", "pysmpi s", "ratio"), rows))
        ratios = [ours / theirs for _, _, theirs, ours in operations]
        print(f"geometric mean {geometric(ratios):.2f}, largest {max(ratios):.2f}")
    if messages:
        print()
        print(table(MESSAGE_HEADINGS, [cost.cells() for cost in messages]))
    for reason in missing:
        print(reason, file=sys.stderr)
    there = {contest.key for contest in contests}
    there |= {"collectives"} if operations else set()
    there |= {"messages"} if messages else set()
    if chosen.page is not None:
        left = [key for key in parts if key not in there]
        if left:
            missing.append(", ".join(left))
        chosen.page.write_text(page(contests, operations, messages, missing))
    if chosen.chart is not None and contests:
        draw(list(bars(contests, operations)), chosen.chart)
    records = [contest.record() for contest in contests]
    records += [
        {"case": "collective", "operation": op, "bytes": nbytes, "theirs": theirs, "ours": ours}
        for op, nbytes, theirs, ours in operations
    ]
    records += [
        {
            "case": "message", "pattern": cost.pattern, "ranks": cost.ranks,
            "microseconds": cost.ours, "theirs": cost.theirs,
        }
        for cost in messages
    ]  # fmt: skip
    write_json(chosen.json, "benchmarks", records)
    return 0


if __name__ == "__main__":
    run(main)
