"""Programs whose control flow depends on data, folded, without data, sampled: right, or said?

    python -m tests.shadow.steered [--repeats N] [PROGRAM...]

Each cell is the error of the predicted time against the run in full, or what the summary says. A
cell is right if the error is within 5 %, or if the summary says that the time may be another.

Where data decides about calls, each block of compute takes 100 us, so that times repeat exactly
and differ by calls alone. Where it decides about the work between calls, compute is measured. Those
runs are repeated in turns, and the lowest times count: other work of the computer only adds time.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

TOP = Path(__file__).parents[3]
PROGRAMS = {
    "jacobi_conv": (), "samplesort": ("100000", "4"), "amg_levels": ("400",), "drift": (),
    "npb_cg": (), "adaptive_steps": (), "stealing": (), "kmeans": (), "knapsack": (),
    "graph_levels": (), "power_norms": (), "error_bound": (), "refined_mesh": (),
    "root_search": (), "quadrature": (), "particles": (), "odd_even": (), "page_rank": (),
    "annealing": (), "life": (), "pivots": (), "time_steps": (), "balanced": (), "manager": (),
    "words": (), "probed": (), "restarted_cg": (), "counter": (), "from_file": (),
}  # fmt: skip
MODES = {
    "folded": ("--fold", "4KiB"),
    "without data": ("--data", "none"),
    "sampled": ("--sample", "auto"),
    "sampled by name": (),
}
# The functions of the programs that are sampled by name; the others have none that computes alone.
NAMED = {
    "odd_even": "merge", "page_rank": "spread", "annealing": "energy", "life": "turn",
    "time_steps": "advance", "manager": "local_minimum", "words": "count", "counter": "solves",
    "from_file": "relax", "kmeans": "nearest", "error_bound": "sample", "adaptive_steps": "slope",
    "quadrature": "simpson", "samplesort": "local_sort", "balanced": "work",
}  # fmt: skip
ENDLESS = 124  # status of a run that does not end
# Programs in which data decides about the work between calls.
WORK = frozenset(["drift", "refined_mesh", "balanced"])
RIGHT = 0.05
# What the summary says of times that may be wrong.
SAID = re.compile(r"decides by its data|take longer and longer|take shorter and shorter")


def run(name: str, options: Sequence[str], ranks: int) -> tuple[float, int, str]:
    """The predicted time (s), the exit status and the summary of a run."""
    file = Path(__file__).parent / f"{name}.py"
    path = file if file.exists() else TOP / "apps" / f"{name}.py"
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pysmpi", "run", "-n", str(ranks), "--platform", "cluster",
             *options, str(path), *PROGRAMS[name]],
            capture_output=True, text=True, timeout=100,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return 0.0, ENDLESS, ""
    found = re.search(r"(?:predicted time|ended at) ([0-9.e+-]+) (\w+)", done.stderr)
    seconds = 0.0
    if found:
        seconds = float(found[1]) * {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}[found[2]]
    return seconds, done.returncode, done.stderr


def cell(seconds: float, full: float, status: int, summary: str) -> tuple[str, bool]:
    """The text of a cell, and whether it is right or said."""
    if status == ENDLESS:
        return "does not end", True
    if status:
        # Errors of the program and of its use of MPI, not of pysmpi.
        return f"fails, status {status}", status in (1, 3)
    error = seconds / full - 1.0
    said = SAID.search(summary) is not None
    return f"{error:+.1%}{', said' if said else ''}", said or abs(error) <= RIGHT


def main() -> int:
    """Print the table; the exit status is the number of cells that are wrong and silent."""
    parser = argparse.ArgumentParser(description="programs that their data steers")
    parser.add_argument("programs", nargs="*", default=list(PROGRAMS))
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--ranks", type=int, default=4)
    chosen = parser.parse_args()
    print(f"| program | {' | '.join(MODES)} |")
    print(f"| --- |{' --- |' * len(MODES)}")
    wrong = 0
    for name in chosen.programs:
        runs: dict[str, list[tuple[float, int, str]]] = {}
        measured = name in WORK
        compute = ("--compute", "native" if measured else "100us")
        for _ in range(chosen.repeats if measured else 1):
            for mode, options in [("full", ()), *MODES.items()]:
                if mode == "sampled by name":
                    if name not in NAMED:
                        continue
                    options = ("--sample", f"__main__:{NAMED[name]}:by=type,iters=5")
                runs.setdefault(mode, []).append(run(name, (*options, *compute), chosen.ranks))
        full = min(one[0] for one in runs["full"])
        cells = []
        for mode in MODES:
            if mode not in runs:
                cells.append("–")
                continue
            text, good = cell(*min(runs[mode])[:1], full, *min(runs[mode])[1:])
            cells.append(text if good else f"**{text}**")
            wrong += not good
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
    print(f"{wrong} cells are wrong and silent")
    return wrong


if __name__ == "__main__":
    sys.exit(main())
