"""Wall time side by side with SMPI: the same patterns in C under smpirun, in mpi4py under pysmpi.

    python benchmarks/against_smpi.py --repeats 5 --json figures.json

Both read the same platform and host file, run the same algorithms, and must predict the same time
(to 1 %), so the work is the same.  Exit status 1 when a ratio is above the wanted one.
"""

from __future__ import annotations

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
    take_turns,
    write_cluster,
    write_json,
)

HOSTS = 1024
HINT = "SMPI is in Debian's libsimgrid-dev"


@dataclass(frozen=True)
class Case:
    """One pattern, and the ratio of wall times that is wanted (None: only shown)."""

    name: str
    program: str
    ranks: int
    arguments: tuple[str, ...]
    wanted: float | None
    options: tuple[str, ...] = ()  # SimGrid options that choose the algorithms


CASES = (
    Case("ring: 1,000 Sendrecv of 1,000 B", "ring", 256, ("1000", "1000"), 2.0),
    Case(
        "allreduce: 10 of 1 KiB",
        "allreduce",
        1024,
        ("10", "1024"),
        0.5,
        ("smpi/coll-selector:default",),
    ),
    Case(
        "allreduce: 10 of 1 KiB, recursive doubling",
        "allreduce",
        1024,
        ("10", "1024"),
        None,
        ("smpi/coll-selector:default", "smpi/allreduce:rdb"),
    ),
    Case(
        "alltoall: 1 KiB a pair, linear",
        "alltoall",
        256,
        ("1", "1024"),
        0.1,
        ("smpi/coll-selector:default", "smpi/alltoall:basic_linear"),
    ),
    Case("start and stop: 1 Sendrecv of 1 B", "ring", 256, ("1", "1"), None),
)


def commands(
    case: Case, built: Path, machine: Path, hosts: Path
) -> tuple[Measurement, Measurement]:
    """The two commands of a case: SMPI's and pysmpi's."""
    theirs = ["smpirun", "-np", str(case.ranks), "-platform", str(machine), "-hostfile", str(hosts)]
    theirs += ["--cfg=smpi/simulate-computation:no", "--cfg=smpi/wtime:0"]
    theirs += ["--log=root.thres:critical"]
    theirs += [f"--cfg={option}" for option in case.options]
    theirs += [str(built / case.program), *case.arguments]
    ours: list[object] = ["-n", case.ranks, "--platform", machine, "--hostfile", hosts]
    for option in ("smpi/wtime:0", *case.options):
        ours += ["--cfg", option]
    ours += [HERE / "programs" / f"{case.program}.py", *case.arguments]
    return Measurement(theirs), Measurement(pysmpi(*ours))


def build(names: set[str], directory: Path) -> None:
    """Compile the C programs for SMPI."""
    compiler = need("smpicc", HINT)
    for name in sorted(names):
        source = HERE / "c" / f"{name}.c"
        Measurement([compiler, "-O2", str(source), "-o", str(directory / name)]).run()


def main() -> int:
    """Measure all cases, print the table, judge."""
    options = parser("wall time side by side with SMPI", repeats=3)
    options.add_argument(
        "--only", action="append", choices=sorted({case.program for case in CASES}), default=[]
    )
    chosen = options.parse_args()
    cases = [case for case in CASES if not chosen.only or case.program in chosen.only]
    need("smpirun", HINT)

    lines, records, failures = [], [], []
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        build({case.program for case in cases}, directory)
        machine, hosts = write_cluster(directory, HOSTS)
        for case in cases:
            theirs, ours = commands(case, directory, machine, hosts)
            take_turns((theirs, ours), chosen.repeats)
            ratio = ours.fastest / theirs.fastest
            work = min(ours.processor) / min(theirs.processor)
            predicted = theirs.figure("simulated"), ours.figure("simulated")
            apart = abs(predicted[1] - predicted[0]) / max(predicted[0], 1e-9)
            if case.wanted is not None and ratio > case.wanted:
                failures.append(f"{case.name}: ratio {ratio:.2f}, wanted {case.wanted:g} at most")
            if apart > 0.01:
                failures.append(
                    f"{case.name}: SMPI predicts {predicted[0]:.9g} s, pysmpi {predicted[1]:.9g} s"
                )
            print(f"{case.name}: ratio {ratio:.2f}", file=sys.stderr, flush=True)
            lines.append(
                (
                    case.name,
                    str(case.ranks),
                    f"{theirs.fastest:.2f}",
                    f"{theirs.median:.2f}",
                    f"{ours.fastest:.2f}",
                    f"{ours.median:.2f}",
                    f"{ratio:.2f}",
                    "" if case.wanted is None else f"{case.wanted:g}",
                    f"{work:.2f}",
                    f"{predicted[0]:.6g}",
                    f"{predicted[1]:.6g}",
                )
            )
            records.append(
                {
                    "name": case.name,
                    "ranks": case.ranks,
                    "smpi": theirs.record() | {"simulated": predicted[0]},
                    "pysmpi": ours.record() | {"simulated": predicted[1]},
                    "ratio": ratio,
                    "processor_ratio": work,
                    "wanted": case.wanted,
                }
            )
    headings = ("pattern", "ranks", "SMPI s", "median", "pysmpi s", "median")
    print(table((*headings, "ratio", "wanted", "CPU ratio", "predicted s", "by pysmpi"), lines))
    write_json(chosen.json, "against_smpi", records)
    for failure in failures:
        print(f"missed: {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    if sys.platform == "win32":
        raise BenchmarkError("SMPI does not run on Windows")
    run(main)
