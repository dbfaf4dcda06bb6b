"""The processor time that each checker adds: NAS CG and a ring of small messages.

    python benchmarks/checkers.py [--repeats N] [--json FILE]

Each row runs both programs on 4 ranks in one process, with no checker, with each checker alone and
with all of them. The result is the fastest of N runs; cost is the time divided by that without
checkers.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import sys
import time
from pathlib import Path

import pysmpi
from pysmpi.checkers import CHECKERS

ROOT = Path(__file__).resolve().parents[1]


def seconds(program: Path, check: str, args: list[str]) -> float:
    """The processor time of one run."""
    with contextlib.redirect_stdout(io.StringIO()):
        begun = time.process_time()
        pysmpi.run(program, nprocs=4, args=args, check=check, compute="none")
        return time.process_time() - begun


def main() -> int:
    """Run, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    ring = Path(__file__).parent / "programs" / "checked_ring.py"
    programs = {"CG": (ROOT / "apps" / "npb_cg.py", ["--class", "S"]), "ring": (ring, [])}
    found: dict[str, dict[str, float]] = {}
    for check in ("none", *CHECKERS.names(), "all"):
        found[check] = {
            name: min(seconds(path, check, args) for _ in range(options.repeats))
            for name, (path, args) in programs.items()
        }
    print("| checker | CG (s) | cost | ring (s) | cost |\n| --- | --- | --- | --- | --- |")
    for check, times in found.items():
        cells = [
            cell
            for name in programs
            for cell in (f"{times[name]:.3f}", f"{times[name] / found['none'][name]:.2f}")
        ]
        print(f"| {check} | {' | '.join(cells)} |")
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
