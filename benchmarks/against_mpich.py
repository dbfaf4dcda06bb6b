"""NAS CG under a real MPI and under pysmpi: the same answer, and the time of each.

    python benchmarks/against_mpich.py --class A

The eigenvalue must be NPB's own in every run, and agree between the runs to 1e-10.  The wall
times are no contest (the real ranks share this machine's processors, the simulated ones take
turns on one); they show the cost of a simulated run.
"""

from __future__ import annotations

import sys

from side_by_side import (
    TOP,
    BenchmarkError,
    Measurement,
    need,
    parser,
    pysmpi,
    run,
    table,
    take_turns,
    write_json,
)

TOLERANCE = 1e-10


def zeta(measurement: Measurement) -> float:
    """The last estimate in the table that CG prints; the run must have been verified."""
    if "VERIFICATION SUCCESSFUL" not in measurement.output:
        raise BenchmarkError(f"not verified: {measurement.shown}")
    rows = [line.split() for line in measurement.output.splitlines()]
    return float([row for row in rows if len(row) == 3 and row[0].isdigit()][-1][2])


def main() -> int:
    """Run CG three ways, print the table, compare."""
    options = parser("NAS CG under MPICH and under pysmpi", repeats=1)
    options.add_argument("--class", dest="name", default="A", choices="SWABC")
    options.add_argument("--platform", default="graphene", help="machine for pysmpi")
    chosen = options.parse_args()
    program = str(TOP / "apps" / "npb_cg.py")
    arguments = ["--class", chosen.name]
    real = [need("mpiexec", "pip install mpich"), "-n", "4", sys.executable, program, *arguments]
    runs = {"MPICH, 4 ranks": Measurement(real)}
    for ranks in (4, 128):
        command = pysmpi("-n", ranks, "--platform", chosen.platform, program, *arguments)
        runs[f"pysmpi, {ranks} ranks"] = Measurement(command)
    take_turns(list(runs.values()), chosen.repeats)

    lines, records, missed = [], [], []
    reference = zeta(next(iter(runs.values())))
    for name, measurement in runs.items():
        apart = abs(zeta(measurement) - reference) / reference
        if apart > TOLERANCE:
            missed.append(f"{name}: zeta differs by {apart:.1e}")
        lines.append(
            (
                name,
                f"{measurement.fastest:.2f}",
                f"{measurement.peak / 1e6:.0f}",
                f"{zeta(measurement):.13f}",
                f"{apart:.1e}",
            )
        )
        records.append({"name": name, **measurement.record(), "zeta": zeta(measurement)})
    print(table((f"CG class {chosen.name}", "wall s", "peak MB", "zeta", "apart"), lines))
    write_json(chosen.json, "against_mpich", records)
    for line in missed:
        print(f"missed: {line}", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    run(main)
