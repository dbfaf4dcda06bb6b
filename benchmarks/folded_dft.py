"""The DFT application with memory of its own on each rank and with folded memory, side by side.

    python benchmarks/folded_dft.py --ranks 4 --grid 128 --orbitals 32

Both runs compute all that they would compute on a real machine, natively timed; only the memory
differs.  Compared are the time of the iterations, as the program reports it, and the simulated
time of the whole program, with the set-up of its arrays and their first touch.  The runs take
turns and are compared by their fastest, since what else the machine does only adds.  Each rank
should hold several times what the last-level cache does, as in the job that folding is for;
otherwise one rank finds folded arrays in the cache, where another has just used them.

Before each run another process touches `--warm` bytes and ends.  A virtual machine gets memory from
its host when it first touches it, which may cost many times what the machine's own system takes to
hand it out, and happens to whoever needs much memory first.

The folded program computes wrong numbers and ends with status 1, as it should.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from side_by_side import TOP, Measurement, parser, run, table, write_json

ERROR = 0.05  # of the predicted time


def main() -> int:
    """Run both ways in turns, print the table, compare."""
    options = parser("apps/dft.py with folded memory and without", repeats=3)
    options.add_argument("--ranks", type=int, default=4)
    options.add_argument("--grid", type=int, default=128, help="points along an edge")
    options.add_argument("--orbitals", type=int, default=32)
    options.add_argument("--iterations", type=int, default=1)
    options.add_argument("--platform", default="cluster", help="machine to simulate")
    options.add_argument("--compute", default="native", choices=("steady", "native"))
    options.add_argument("--fold", default="1MiB", help="arrays from this size on are folded")
    options.add_argument("--warm", type=float, default=4e9, help="bytes to touch before a run")
    chosen = options.parse_args()
    touch = f"import numpy; numpy.ones({int(chosen.warm)}, numpy.int8)"
    program = [TOP / "apps" / "dft.py", "--grid", chosen.grid, "--orbitals", chosen.orbitals]
    program += ["--iterations", chosen.iterations]
    command = [sys.executable, "-m", "pysmpi", "run", "-n", chosen.ranks]
    command += ["--platform", chosen.platform, "--compute", chosen.compute]

    found: dict[str, list[tuple[float, float]]] = {"own memory": [], "folded": []}
    with tempfile.TemporaryDirectory() as directory:
        report = Path(directory) / "report.json"
        measured = {}
        for name in found:
            words = ["--fold", chosen.fold] if name == "folded" else []
            line = [*command, *words, "--report", report, *program]
            measured[name] = Measurement([str(word) for word in line], statuses=(0, 1))
        for _ in range(chosen.repeats):
            for name, measurement in measured.items():
                subprocess.run([sys.executable, "-c", touch], check=True)
                measurement.run()
                whole = json.loads(report.read_text())["simulated_seconds"]
                found[name].append((measurement.figure("time"), whole))

    own = [min(column) for column in zip(*found["own memory"], strict=True)]
    lines, records, missed = [], [], []
    for name, times in found.items():
        best = [min(column) for column in zip(*times, strict=True)]
        errors = [mine / theirs - 1.0 for mine, theirs in zip(best, own, strict=True)]
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
    print(
        f"dft.py, {chosen.orbitals} orbitals on {chosen.grid}^3 points, {chosen.ranks} ranks on "
        f"{chosen.platform}, {chosen.compute}"
    )
    headings = ("memory", "iterations s", "error", "whole s", "error", "peak MB", "wall s")
    print(table(headings, lines))
    for line in missed:
        print("missed:", line)
    write_json(chosen.json, "folded_dft", records)
    return 1 if missed else 0


if __name__ == "__main__":
    run(main)
