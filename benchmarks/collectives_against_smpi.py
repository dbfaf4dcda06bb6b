"""Time to simulate collectives side by side with SMPI: every operation at 256 ranks, 1 and 100 KiB.

    python benchmarks/collectives_against_smpi.py --json figures.json
    python benchmarks/collectives_against_smpi.py --only alltoall --ranks 1024 --sizes 1024

Both read the same platform and host file, run the same algorithm (SMPI's default; `--trees` for
trees and rings), and must predict the same time (to 1 %). Each command is run with and without
the calls; the difference, in processor seconds, is the time of the calls, so that start-up does not
count and other work on the machine hardly does. The two take turns, and the least of their runs
counts; a program that has run for ten seconds is not run again. `ulimit -t SECONDS` bounds the
processor time of each command. Exit status 1 when the geometric mean of the ratios, or one of them,
is above the wanted one.
"""

from __future__ import annotations

import math
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from side_by_side import (
    HERE,
    BenchmarkError,
    Measurement,
    need,
    parser,
    pysmpi,
    run,
    table,
    write_cluster,
    write_json,
)

HINT = "SMPI is in Debian's libsimgrid-dev"
WANTED = 0.12  # geometric mean of the ratios
WORST = 0.6  # the largest of them
LONG = 65536  # bytes
ENOUGH = 10.0  # processor seconds of one side, after which its figure is steady


@dataclass(frozen=True)
class Case:
    """An operation, and for short and for long messages the tree and the number of calls."""

    op: str
    short: str
    long: str
    repeats: tuple[int, int]


CASES = (
    Case("barrier", "ompi_bruck", "ompi_bruck", (300, 300)),
    Case("bcast", "binomial_tree", "scatter_LR_allgather", (300, 300)),
    Case("reduce", "binomial", "scatter_gather", (20, 200)),
    Case("allreduce", "rdb", "rab_rdb", (100, 100)),
    Case("gather", "ompi_binomial", "ompi_basic_linear", (20, 200)),
    Case("scatter", "ompi_binomial", "ompi_basic_linear", (200, 200)),
    Case("allgather", "rdb", "NTSLR", (1, 1)),
    Case("allgatherv", "mpich_rdb", "mpich_ring", (1, 1)),
    Case("alltoall", "bruck", "ring", (1, 1)),
    Case("alltoallv", "ring", "ring", (1, 1)),
    Case("reduce_scatter", "mpich_rdb", "mpich_pair", (100, 10)),
)


@dataclass
class Side:
    """One simulator: the command with the calls, and without."""

    calls: Measurement
    none: Measurement
    failure: str = ""

    def measure(self, timeout: float) -> None:
        """Run both once more, unless that is not needed; a failure is kept."""
        if self.failure or sum(self.calls.processor) > ENOUGH:
            return
        try:
            self.calls.run(timeout)
            self.none.run(timeout)
        except BenchmarkError as error:
            self.failure = str(error).splitlines()[-1].strip()

    @property
    def seconds(self) -> float:
        """Processor seconds of the calls."""
        return max(min(self.calls.processor) - min(self.none.processor), 0.02)


def sides(
    case: Case, ranks: int, nbytes: int, trees: bool, built: Path, machine: Path, hosts: Path
) -> tuple[Side, Side]:
    """SMPI's commands and pysmpi's."""
    options = ["smpi/coll-selector:default", "smpi/wtime:0"]
    if trees:
        options.append(f"smpi/{case.op}:{case.long if nbytes >= LONG else case.short}")
    elif case.op == "alltoall":
        # Else Open MPI's choice is used, which SMPI cannot do for some numbers of ranks.
        options.append("smpi/alltoall:basic_linear")

    def smpi(repeats: int) -> Measurement:
        command = ["smpirun", "-np", str(ranks), "-platform", str(machine)]
        command += ["-hostfile", str(hosts), "--cfg=smpi/simulate-computation:no"]
        command += ["--log=root.thres:critical", *(f"--cfg={option}" for option in options)]
        return Measurement([*command, str(built), case.op, str(repeats), str(nbytes)])

    def ours(repeats: int) -> Measurement:
        words: list[object] = ["-n", ranks, "--platform", machine, "--hostfile", hosts]
        for option in options:
            words += ["--cfg", option]
        words += ["--shared", "folded", HERE / "programs" / "collective.py"]
        return Measurement(pysmpi(*words, case.op, repeats, nbytes))

    calls = case.repeats[nbytes >= LONG]
    return Side(smpi(calls), smpi(0)), Side(ours(calls), ours(0))


def main() -> int:
    """Measure all cases, print the table, judge."""
    options = parser("time to simulate collectives, side by side with SMPI", repeats=3)
    options.add_argument("--ranks", type=int, default=256)
    options.add_argument("--sizes", type=int, nargs="+", default=[1024, 102400])
    options.add_argument("--trees", action="store_true", help="trees and rings, not the defaults")
    options.add_argument("--only", action="append", choices=[case.op for case in CASES], default=[])
    options.add_argument("--timeout", type=float, default=600.0, help="seconds for one command")
    chosen = options.parse_args()
    compiler = need("smpicc", HINT)
    lines, records, ratios, failures = [], [], [], []
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        built = directory / "collective"
        Measurement([compiler, "-O2", str(HERE / "c" / "collective.c"), "-o", str(built)]).run()
        machine, hosts = write_cluster(directory, chosen.ranks)
        for case in CASES:
            if chosen.only and case.op not in chosen.only:
                continue
            for nbytes in [0] if case.op == "barrier" else chosen.sizes:
                theirs, ours = sides(
                    case, chosen.ranks, nbytes, chosen.trees, built, machine, hosts
                )
                for _ in range(chosen.repeats):
                    ours.measure(chosen.timeout)
                    theirs.measure(chosen.timeout)
                calls = case.repeats[nbytes >= LONG]
                record = {"operation": case.op, "ranks": chosen.ranks, "bytes": nbytes,
                          "calls": calls}  # fmt: skip
                if ours.failure:
                    failures.append(f"{case.op}: {ours.failure}")
                    continue
                line = [case.op, str(nbytes), str(calls)]
                if theirs.failure:
                    line += ["-", f"{ours.seconds:.2f}", "", "", theirs.failure[:40]]
                    record |= {"smpi": theirs.failure, "pysmpi": ours.seconds}
                else:
                    ratio = ours.seconds / theirs.seconds
                    ratios.append(ratio)
                    times = [side.calls.figure("simulated") for side in (theirs, ours)]
                    if abs(times[1] / times[0] - 1) > 0.01:
                        failures.append(f"{case.op}, {nbytes} bytes: predicted {times}")
                    line += [f"{theirs.seconds:.2f}", f"{ours.seconds:.2f}", f"{ratio:.3f}"]
                    line += [f"{times[0]:.6g}", f"{times[1]:.6g}"]
                    record |= {"smpi": theirs.seconds, "pysmpi": ours.seconds, "ratio": ratio,
                               "peak": [theirs.calls.peak, ours.calls.peak]}  # fmt: skip
                lines.append(tuple(line))
                records.append(record)
                print("  ".join(line), file=sys.stderr)
    headings = ("operation", "bytes", "calls", "SMPI s", "pysmpi s", "ratio")
    print(table((*headings, "predicted s", "by pysmpi"), lines))
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"geometric mean of {len(ratios)} ratios: {mean:.3f}, wanted {WANTED:g} at most")
        if mean > WANTED:
            failures.append(f"geometric mean {mean:.3f}, wanted {WANTED:g} at most")
        if max(ratios) > WORST:
            failures.append(f"largest ratio {max(ratios):.2f}, wanted {WORST:g} at most")
    write_json(chosen.json, "collectives_against_smpi", records)
    for failure in failures:
        print(f"missed: {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    run(main)
