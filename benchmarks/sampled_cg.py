"""NAS CG in full and sampled: the predicted times, and what the two runs take.

    python benchmarks/sampled_cg.py --class C --ranks 128

The full run and `--repeats` sampled ones take turns in slices, `--slice` seconds for the one and a
tenth of it for each other: a shared machine may be slower by a third for a minute, and a sampled
run as a whole might lie in such a time.  Compute is timed with `--compute steady`: blocks that
repeat take what they take undisturbed, neither by others nor by having been held, after which
memory is slow for some tenths of a second.  `--compute native` times all as it comes.  Compared
are the time that CG itself reports, of its 75 iterations as NPB defines it, and the simulated time
of the whole program.

Memory of malloc is on huge pages in all runs (GLIBC_TUNABLES=glibc.malloc.hugetlb=1).  Otherwise
the arrays of a rank are on huge or on small pages depending on what it freed before, and functions
that are skipped free nothing: their callers then compute slower.

The median of what the sampled runs predict must come within 3 % of the full run, and each must
take a tenth of its wall time at most, not counting when it was held.
With `--play-back` the full run records its compute, and is sampled once more with that played back,
where nothing but sampling differs.  The sampled program prints a wrong eigenvalue and ends with
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

from side_by_side import (
    TOP,
    BenchmarkError,
    Measurement,
    parser,
    run,
    table,
    take_slices,
    write_json,
)

ERROR = 0.03  # of the predicted time
WALL = 0.1  # of the wall time in full
REPORTED = re.compile(r"Time in seconds = +([\d.]+)")

SAMPLED = [
    "--once", "__main__:random_vectors:iters=3",
    "--sample", "__main__:Solver.solve:scope=collective,iters=1,every=25,charge=median",
]  # fmt: skip


@dataclass
class Run:
    """A run: its predicted seconds, of CG and of the whole program, are known at its end."""

    name: str
    measurement: Measurement
    report: Path

    @property
    def cg(self) -> float:
        """Predicted seconds of CG's iterations."""
        found = REPORTED.search(self.measurement.output)
        if found is None:
            raise BenchmarkError(f"{self.name}: CG did not come to its end")
        return float(found[1])

    @property
    def whole(self) -> float:
        """Predicted seconds of the whole program."""
        return float(json.loads(self.report.read_text())["simulated_seconds"])

    @property
    def wall(self) -> float:
        """Seconds that it took."""
        return self.measurement.fastest


def main() -> int:
    """Run CG in full and sampled, print the table, compare."""
    options = parser("NAS CG in full and sampled", repeats=3)
    options.add_argument("--class", dest="name", default="C", choices="SWABC")
    options.add_argument("--ranks", type=int, default=128)
    options.add_argument("--iterations", type=int, help="instead of the class's own")
    options.add_argument("--platform", default="cluster", help="machine to simulate")
    options.add_argument("--compute", default="steady", choices=("steady", "native"))
    options.add_argument(
        "--slice", type=float, default=20.0, help="seconds of the full run at once"
    )
    options.add_argument("--play-back", action="store_true", help="also sample recorded compute")
    chosen = options.parse_args()
    program = [str(TOP / "apps" / "npb_cg.py"), "--class", chosen.name]
    if chosen.iterations is not None:
        program += ["--iterations", str(chosen.iterations)]
    os.environ.setdefault("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1")
    command = [sys.executable, "-m", "pysmpi", "run", "-n", str(chosen.ranks)]
    command += ["--platform", chosen.platform]
    timed = ["--compute", chosen.compute]

    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        blocks = str(directory / "blocks")

        def prepared(name: str, *words: str) -> Run:
            report = directory / f"{name}.json"
            line = [*command, *words, "--report", str(report), *program]
            return Run(name, Measurement(line, statuses=(0, 1)), report)

        record = ["--record-compute", blocks] if chosen.play_back else []
        full = prepared("in full", *timed, *record)
        repeats = [
            prepared(f"sampled, {number}", *timed, *SAMPLED)
            for number in range(1, chosen.repeats + 1)
        ]
        take_slices(
            [one.measurement for one in (full, *repeats)],
            [chosen.slice, *(chosen.slice * WALL for _ in repeats)],
        )
        played = prepared("sampled, played back", "--compute", blocks, *SAMPLED[2:])
        if chosen.play_back:
            played.measurement.run()

        lines, records, missed = [], [], []
        middle = median_low(one.cg for one in repeats)
        for one in (full, *repeats, *([played] if chosen.play_back else [])):
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
                    f"{one.measurement.peak / 1e6:,.0f}",
                )
            )
            predicted = {"run": one.name, "cg_seconds": one.cg, "whole_seconds": one.whole}
            records.append(predicted | one.measurement.record())
            if abs(error) > ERROR and (one is played or one.cg == middle):
                missed.append(f"{one.name}: predicts {error:+.1%} more, wanted within {ERROR:.0%}")
            if one in repeats and share > WALL:
                missed.append(f"{one.name}: takes {share:.3f} of the full run, wanted {WALL}")
    print(f"CG class {chosen.name}, {chosen.ranks} ranks on {chosen.platform}, {chosen.compute}")
    headings = ("run", "CG s", "error", "whole s", "error", "wall s", "of full", "CPU s", "peak MB")
    print(table(headings, lines))
    for line in missed:
        print("missed:", line)
    write_json(chosen.json, "sampled_cg", records)
    return 1 if missed else 0


if __name__ == "__main__":
    run(main)
