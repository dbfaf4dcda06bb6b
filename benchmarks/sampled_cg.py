"""NAS CG in full and sampled: the predicted times, and the cost of the two runs.

    python benchmarks/sampled_cg.py --class C --ranks 128

Compute is timed with `--compute steady`: blocks that repeat take their undisturbed time, because on
a shared machine two runs in full may differ by more than the allowed error of sampling. `--compute
native` takes every time as measured. The comparison is of the time that CG itself reports, of its
75 iterations as NPB defines it, and of the simulated time of the whole program.

Memory of malloc is on huge pages in all runs (GLIBC_TUNABLES=glibc.malloc.hugetlb=1).  Otherwise
the arrays of a rank are on huge or on small pages depending on what it freed before, and functions
that are skipped free nothing: their callers then compute slower.

The full run is done once, the sampled one `--repeats` times. The median prediction of the repeats
must be within 3 % of the full run, and each must take a tenth of its wall time at most. With
`--play-back` the full run records its compute, and is sampled once more with this compute played
back, so that only sampling differs. The sampled program prints a wrong eigenvalue and ends with
status 1, as it should.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median_low

from side_by_side import TOP, BenchmarkError, Measurement, parser, run, table, write_json

ERROR = 0.03  # of the predicted time
WALL = 0.1  # of the wall time in full
REPORTED = re.compile(r"Time in seconds = +([\d.]+)")

SAMPLED = [
    "--once", "__main__:random_vectors:iters=3",
    "--sample", "__main__:Solver.solve:scope=collective,iters=1,every=25,charge=median",
]  # fmt: skip


@dataclass
class Run:
    """One run: its predicted seconds, of CG and of the whole program, and its cost."""

    name: str
    cg: float
    whole: float
    measurement: Measurement

    @property
    def wall(self) -> float:
        """Its wall time (s)."""
        return self.measurement.fastest


def measure(name: str, command: list[str], words: list[str], program: list[str]) -> Run:
    """Run CG once."""
    with tempfile.TemporaryDirectory() as directory:
        report = Path(directory) / "report.json"
        measurement = Measurement(
            [*command, *words, "--report", str(report), *program], statuses=(0, 1)
        )
        measurement.run(timeout=7200.0)
        whole = json.loads(report.read_text())["seconds"]
    found = REPORTED.search(measurement.output)
    if found is None:
        raise BenchmarkError(f"{name}: CG did not come to its end")
    return Run(name, float(found[1]), whole, measurement)


def main() -> int:
    """Run CG in full and sampled, print the table, compare."""
    options = parser("NAS CG in full and sampled", repeats=3)
    options.add_argument("--class", dest="name", default="C", choices="SWABC")
    options.add_argument("--ranks", type=int, default=128)
    options.add_argument("--iterations", type=int, help="instead of the class's own")
    options.add_argument("--platform", default="cluster", help="machine to simulate")
    options.add_argument("--compute", default="steady", choices=("steady", "native"))
    options.add_argument("--play-back", action="store_true", help="also sample recorded compute")
    chosen = options.parse_args()
    program = [str(TOP / "apps" / "npb_cg.py"), "--class", chosen.name]
    if chosen.iterations is not None:
        program += ["--iterations", str(chosen.iterations)]
    os.environ.setdefault("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1")
    command = [sys.executable, "-m", "pysmpi", "run", "-n", str(chosen.ranks)]
    command += ["--platform", chosen.platform, "--map-by", "node", "--selector", "default"]
    timed = ["--compute", chosen.compute]

    with tempfile.TemporaryDirectory() as directory:
        blocks = str(Path(directory) / "blocks")
        record = ["--record-compute", blocks] if chosen.play_back else []
        full = measure("in full", command, timed + record, program)
        sampled = [
            measure(f"sampled, {number}", command, timed + SAMPLED, program)
            for number in range(1, chosen.repeats + 1)
        ]
        if chosen.play_back:
            played = ["--compute", blocks, *SAMPLED[2:]]
            sampled.append(measure("sampled, played back", command, played, program))

    lines, records, missed = [], [], []
    for one in (full, *sampled):
        error, share = one.cg / full.cg - 1.0, one.wall / full.wall
        lines.append(
            (
                one.name,
                f"{one.cg:.4f}",
                f"{error:+.2%}",
                f"{one.whole:.4f}",
                f"{one.whole / full.whole - 1.0:+.2%}",
                f"{one.wall:.1f}",
                f"{share:.3f}",
                f"{min(one.measurement.processor):.1f}",
            )
        )
        predicted = {"run": one.name, "cg_seconds": one.cg, "whole_seconds": one.whole}
        records.append(predicted | one.measurement.record())
        middle = one.cg == median_low(other.cg for other in sampled[: chosen.repeats])
        if abs(error) > ERROR and (middle or one.name.endswith("back")):
            missed.append(f"{one.name}: predicted time differs by {error:+.1%}, wanted {ERROR:.0%}")
        if one is not full and not one.name.endswith("back") and share > WALL:
            missed.append(f"{one.name}: takes {share:.3f} of the full run, wanted {WALL}")
    print(f"CG class {chosen.name}, {chosen.ranks} ranks on {chosen.platform}, {chosen.compute}")
    headings = ("run", "CG s", "error", "whole s", "error", "wall s", "of full", "processor s")
    print(table(headings, lines))
    for line in missed:
        print("missed:", line)
    write_json(chosen.json, "sampled_cg", records)
    return 1 if missed else 0


if __name__ == "__main__":
    run(main)
