"""The DFT application with memory of its own on each rank, with folded memory, and sampled as well.

    python benchmarks/folded_dft.py --ranks 4 --grid 128 --orbitals 64
    python benchmarks/folded_dft.py --large

The first compares predicted times where there is memory for all. The runs are natively timed; two
of them do all the computation of a real machine, and differ in memory only. They take turns in
slices of `--slice` seconds, so that a machine that is slow for a while is slow for both. The
comparison is of the time of the iterations, as the program reports it, and of that of the whole
program, with the set-up of its arrays and their first touch. The arrays of each rank should be many
times as large as the last-level cache, as in the jobs for which folding is made; otherwise one rank
finds folded arrays in the cache, where another has just used them.

Before that another process touches `--warm` bytes and ends.  A virtual machine gets memory from
its host when it first touches it, which may take many times as long as an allocation by the
machine's own system, and happens to the first program that needs much memory.

`--large` runs 128 ranks, whose arrays would take 75 GiB, folded and sampled.

The folded program computes wrong numbers and ends with status 1, as it should.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from side_by_side import TOP, Measurement, parser, run, table, take_slices, write_json

ERROR = 0.05  # of the predicted time
RESIDENT = 2.5e9  # bytes, of the large job
MEASURED = "iters=8"  # calls of each function on each rank
MEASURED_LARGE = "iters=16,scope=global"  # on any of the ranks, each of which makes few calls
FOLDED = ["--fold", "1MiB"]
# Functions that compute and do not communicate.
FUNCTIONS = (
    "convolve", "apply_potential", "descend", "add_density", "pack", "unpack", "overlaps",
    "orthonormalise", "start_orbital", "transform_planes", "transform_lines", "transform_back",
)  # fmt: skip
LARGE = {"ranks": 128, "grid": 128, "orbitals": 1024, "iterations": 5}


def main() -> int:
    """Run all ways, or the large job; print a table, compare."""
    options = parser("apps/dft.py with folded memory and without", repeats=1)
    options.add_argument("--ranks", type=int, default=4)
    options.add_argument("--grid", type=int, default=128, help="points along an edge")
    options.add_argument("--orbitals", type=int, default=64)
    options.add_argument("--iterations", type=int, default=20)
    options.add_argument("--large", action="store_true", help="128 ranks that do not fit unfolded")
    options.add_argument("--platform", default="cluster", help="machine to simulate")
    options.add_argument("--compute", default="native", choices=("steady", "native"))
    options.add_argument("--slice", type=float, default=10.0, help="seconds at once")
    options.add_argument("--warm", type=float, default=12e9, help="bytes to touch before a run")
    chosen = options.parse_args()
    sampled = [*FOLDED]
    for function in FUNCTIONS:
        often = MEASURED_LARGE if chosen.large else MEASURED
        sampled += ["--sample", f"__main__:{function}:{often}"]
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        if chosen.large:
            return large(chosen, sampled, directory)
        return compare(chosen, sampled, directory)


def command(chosen: argparse.Namespace, words: list[str], report: Path) -> list[str]:
    """Run dft.py with the chosen options."""
    line = [sys.executable, "-m", "pysmpi", "run", "-n", chosen.ranks]
    line += ["--platform", chosen.platform, "--map-by", "node", "--selector", "default"]
    line += ["--compute", chosen.compute, *words]
    line += ["--report", report, TOP / "apps" / "dft.py", "--grid", chosen.grid]
    line += ["--orbitals", chosen.orbitals, "--iterations", chosen.iterations]
    return [str(word) for word in line]


def title(chosen: argparse.Namespace) -> str:
    """The command that is run."""
    return (
        f"dft.py, {chosen.orbitals} orbitals on {chosen.grid}^3 points, {chosen.ranks} ranks on "
        f"{chosen.platform}, {chosen.iterations} iterations, {chosen.compute}"
    )


def large(chosen: argparse.Namespace, sampled: list[str], directory: Path) -> int:
    """The job that does not fit."""
    vars(chosen).update(LARGE)
    report = directory / "report.json"
    words = [*sampled, "--selector", "mpich"]
    measurement = Measurement(command(chosen, words, report), statuses=(0, 1))
    measurement.run()
    record = json.loads(report.read_text())
    print(title(chosen))
    print(
        f"arrays of {record['folding']['needed_bytes'] / 2**30:.1f} GiB in "
        f"{measurement.peak / 1e6:,.0f} MB, predicted {record['seconds']:.3f} s, "
        f"took {measurement.fastest:.1f} s"
    )
    write_json(chosen.json, "folded_dft_large", [measurement.record()])
    if measurement.peak > RESIDENT:
        print(f"missed: wanted {RESIDENT / 1e6:,.0f} MB at most")
    return measurement.peak > RESIDENT


def compare(chosen: argparse.Namespace, sampled: list[str], directory: Path) -> int:
    """Own memory against folded memory."""
    ways = {"own memory": [], "folded": FOLDED, "folded, sampled": sampled}
    reports = {name: directory / f"{name}.json" for name in ways}
    measured = {
        name: Measurement(command(chosen, words, reports[name]), statuses=(0, 1))
        for name, words in ways.items()
    }
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    touch = f"import numpy; numpy.ones({int(chosen.warm)}, numpy.int8)"
    for _ in range(chosen.repeats):
        subprocess.run([sys.executable, "-c", touch], check=True)
        own, folded, last = measured.values()
        take_slices([own, folded], [chosen.slice, chosen.slice])
        last.run()
        for name, measurement in measured.items():
            whole = json.loads(reports[name].read_text())["seconds"]
            found[name].append((measurement.figure("time"), whole))

    middle = {name: [*map(median, zip(*times, strict=True))] for name, times in found.items()}
    lines, records, missed = [], [], []
    for name, times in found.items():
        errors = [
            mine / theirs - 1.0
            for mine, theirs in zip(middle[name], middle["own memory"], strict=True)
        ]
        lines.append(
            (
                name,
                " ".join(f"{iterations:.3f}" for iterations, _ in times),
                f"{errors[0]:+.1%}",
                " ".join(f"{whole:.3f}" for _, whole in times),
                f"{errors[1]:+.1%}",
                f"{measured[name].peak / 1e6:,.0f}",
                f"{measured[name].fastest:.1f}",
            )
        )
        records.append({"run": name, "times": times, **measured[name].record()})
        for what, error in zip(("iterations", "whole program"), errors, strict=True):
            if abs(error) > ERROR:
                missed.append(f"{name}, {what}: differs by {error:+.1%}, wanted {ERROR:.0%}")
    print(title(chosen))
    headings = ("memory", "iterations s", "error", "whole s", "error", "peak MB", "wall s")
    print(table(headings, lines))
    for line in missed:
        print("missed:", line)
    write_json(chosen.json, "folded_dft", records)
    return 1 if missed else 0


if __name__ == "__main__":
    run(main)
