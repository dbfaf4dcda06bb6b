"""The processor time of an execution of `pysmpi explore`.

    python benchmarks/executions.py [PROGRAM...] [--ranks N] [--executions N] [--repeats N]

An execution continues in a process whose memory was put back, in a copy of the process at the first
choice, or it begins anew. The figures are the differences of searches with many and with few
executions, by turns; the smallest of N counts. The default programs are a farm of 60 lines and a
work queue of 88 lines.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
from itertools import product
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROGRAMS = (
    ROOT / "benchmarks/programs/farm.py",
    ROOT / "tests/explore/applications/work_queue.py",
)
FEW = 20
# Each way is a statement before the search.
WAYS = {
    "put back": "pass",
    "copied": "snapshot.MANY = 10**9",
    "anew": "executor.Executor.snapshots = False",
}


def seconds(way: str, words: list[str], runs: int) -> float:
    """The processor time of a search, and of all of its processes."""
    text = (
        "import sys; from pysmpi.explore import executor, snapshot; from pysmpi.cli import main; "
        f"{WAYS[way]}; sys.exit(main.status_of(sys.argv[1:]))"
    )
    options = ["-q", "-j", "1", "--keep-going", "--no-shrink", "--database", "none"]
    command = [sys.executable, "-c", text, "explore", *options, "--runs", str(runs), *words]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> int:
    """Run, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", nargs="*", type=Path, default=PROGRAMS)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--executions", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found: dict[str, list[float]] = {}
    turns = range(options.repeats)
    for _, program, check, way in product(turns, options.program, ("default", "none"), WAYS):
        words = ["--check", "none"] if check == "none" else []
        words += ["-n", str(options.ranks), str(program)]
        few = seconds(way, words, FEW)
        many = seconds(way, words, FEW + options.executions)
        cost = 1e3 * (many - few) / options.executions
        found.setdefault(f"{program.name}: {way}, checkers: {check}", []).append(cost)
    print("| execution | processor time (ms) |\n| --- | --- |")
    for name, costs in found.items():
        print(f"| {name} | {min(costs):.1f} |")
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
